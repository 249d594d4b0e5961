"""What moves on a page: the explorables (JavaScript), and the sliders of chapters (Python)."""
