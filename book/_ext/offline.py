"""Sphinx extension: pages that load nothing from the web, with repository links where known.

By default a Jupyter Book takes MathJax, require.js, the widget manager and thebe from the web, and
a reader without a network sees raw TeX. Here MathJax comes out of the `sphinx-mathjax-offline`
package (one file, SVG output, all fonts inside), and the rest is left out: no page needs it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util.fileutil import copy_asset_file

ROOT = Path(__file__).resolve().parents[2]
MATHJAX = "tex-svg-full.js"
HOSTS = ("github.com", "gitlab.com")  # where both the theme's links and Binder's address are known


def mathjax_file() -> Path:
    """The MathJax bundle inside the installed `sphinx-mathjax-offline` package."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise RuntimeError(
            "offline.py: the package sphinx-mathjax-offline is missing, so formulas could not be "
            'shown without a network; install it with `pip install "fairpg-lite[book]"`.'
        )
    return Path(spec.origin).parent / "static" / "mathjax" / MATHJAX


def web_address(remote: str) -> str | None:
    """The page of a repository, or None where it is not an address of a known host.

    >>> web_address("git@github.com:owner/name.git")
    'https://github.com/owner/name'
    >>> web_address("ssh://git@gitlab.com/owner/name")
    'https://gitlab.com/owner/name'
    >>> web_address("/srv/git/name.git") is None
    True
    """
    start = r"(?:https?://(?:[^@/]+@)?|ssh://(?:git@)?|git@)"
    form = start + r"([\w.-]+)[:/]([\w.-]+)/([\w.-]+?)(?:\.git)?/?"
    match = re.fullmatch(form, remote.strip())
    if match is None or match[1] not in HOSTS:
        return None
    return f"https://{match[1]}/{match[2]}/{match[3]}"


def repository() -> str | None:
    """The repository's page: FAIRPG_REPOSITORY_URL, else git's `origin`, else None."""
    remote = os.environ.get("FAIRPG_REPOSITORY_URL")
    if remote is None:
        command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
        try:
            remote = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except OSError:  # a downloaded archive on a machine without git
            remote = ""
    return web_address(remote)


def launchers(address: str) -> dict[str, str]:
    """Where a chapter of the repository at `address` can be opened with a kernel.

    >>> sorted(launchers("https://github.com/owner/name"))
    ['binderhub_url', 'colab_url']
    >>> sorted(launchers("https://gitlab.com/owner/name"))  # Colab reads from GitHub only
    ['binderhub_url']
    """
    places = {"binderhub_url": "https://mybinder.org"}
    if address.startswith("https://github.com/"):
        places["colab_url"] = "https://colab.research.google.com"
    return places


def configure(app: Sphinx, config: Config) -> None:
    config.mathjax_path = f"mathjax/{MATHJAX}"
    config.nb_ipywidgets_js = {}  # frames() needs no library; live widgets need a kernel anyway
    address = repository()
    if address is not None:
        options = dict(config.html_theme_options)
        options.update(
            repository_url=address,
            repository_branch=os.environ.get("FAIRPG_REPOSITORY_BRANCH", "main"),
            use_repository_button=True,
            use_issues_button=True,
            launch_buttons={**options.get("launch_buttons", {}), **launchers(address)},
        )
        config.html_theme_options = options


def disconnect(app: Sphinx, *names: str) -> None:
    for event, listeners in app.events.listeners.items():
        kept = [x for x in listeners if getattr(x.handler, "__name__", "") not in names]
        app.events.listeners[event] = kept


def leave_thebe_out(app: Sphinx) -> None:
    """Undo Jupyter Book's loading of sphinx-thebe, which puts a web address into every page."""
    disconnect(app, "init_thebe_default_config", "init_thebe_core", "update_thebe_context")


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        target = Path(app.outdir) / "_static" / "mathjax"
        target.mkdir(parents=True, exist_ok=True)
        copy_asset_file(str(mathjax_file()), str(target))


def without_icon_font(style: str) -> str:
    """A style sheet without the rules of Font Awesome, a quarter of the theme's.

    >>> without_icon_font(".fa-x:before{content:'x'}.fab,.fas{color:red}p{color:blue}")
    'p{color:blue}'
    """
    icon = r"\.fa[srb]?(?=[-.:,{])[^,{}]*"
    return re.sub(rf"(?<=[}}/]){icon}(?:,{icon})*{{[^{{}}]*}}", "", "}" + style)[1:]


def lighten_theme(app: Sphinx, error: Exception | None) -> None:
    style = Path(app.outdir) / "_static" / "styles" / "pydata-sphinx-theme.css"
    if error is None and style.is_file():
        text = style.read_text(encoding="utf-8")
        style.write_text(without_icon_font(text), encoding="utf-8")


def setup(app: Sphinx) -> dict:
    # autodoc describes this checkout, installed or not, and what only the book has.
    sys.path[:0] = [str(ROOT), str(ROOT / "book"), str(ROOT / "book" / "coursework")]
    app.connect("config-inited", configure, priority=900)
    leave_thebe_out(app)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", lighten_theme)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
