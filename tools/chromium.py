"""The Chromium on this machine: for the browser tests, the PDF and the slides."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find() -> str | None:
    """The path of the first browser of `NAMES` that is installed, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser (Playwright's `Browser`), closed at the end."""
    program = find()
    if program is None:
        raise RuntimeError(
            f"chromium: none of {', '.join(NAMES)} is on the PATH; install one, on Debian with "
            "`apt-get install chromium`."
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=FLAGS,
            timeout=600_000,  # against hanging only: a busy machine takes its time
        )
        yield browser
        browser.close()


def wait_for_formulas(page: Any) -> None:
    """Wait until MathJax, where the page has it, has drawn every formula."""
    page.wait_for_function("!window.MathJax || MathJax.startup?.promise !== undefined")
    page.evaluate("window.MathJax && MathJax.startup.promise")
