"""Tools for authors: run the chapters, check their rules, check the built pages."""
