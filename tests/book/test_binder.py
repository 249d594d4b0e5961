"""Binder: repo2docker accepts the files in binder/, and a notebook opens with its text beside it.

The releases are compared with requirements.lock in tests/book/test_book_project.py.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.check_chapters import ROOT

PLACES = [str(Path(sys.executable).parent), None]  # this environment, then the PATH
PROGRAM = next(filter(None, (shutil.which("jupyter-repo2docker", path=p) for p in PLACES)), None)
needs_repo2docker = pytest.mark.skipif(
    PROGRAM is None, reason="jupyter-repo2docker is not installed"
)


@pytest.fixture
def repository(tmp_path):
    shutil.copytree(ROOT / "binder", tmp_path / "binder")
    return tmp_path


def dry_run(repository):
    """What repo2docker would hand to Docker; it needs no Docker for that."""
    return subprocess.run(
        [PROGRAM, "--no-build", "--debug", str(repository)],
        capture_output=True,
        text=True,
        check=False,
    )


@needs_repo2docker
def test_repo2docker_uses_the_environment_and_installs_the_module(repository):
    done = dry_run(repository)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-3000:]
    assert "Building conda environment for python=3.11" in said
    assert '--file "binder/environment.yml"' in said
    assert "RUN ./binder/postBuild" in said


@needs_repo2docker
@pytest.mark.parametrize("spoil", ["- not\n- a mapping\n", "dependencies: [python=3.11"])
def test_repo2docker_refuses_a_spoilt_environment(repository, spoil):
    (repository / "binder" / "environment.yml").write_text(spoil)
    assert dry_run(repository).returncode != 0


def test_a_notebook_opens_with_its_text_paired():
    from jupytext.config import load_jupytext_config
    from jupytext.paired_paths import paired_paths

    notebooks = sorted((ROOT / "book").glob("[0-9]*.ipynb"))
    assert notebooks
    for notebook in notebooks:
        formats = load_jupytext_config(str(notebook)).default_formats(str(notebook))
        pairs = paired_paths(str(notebook), {"extension": ".ipynb"}, formats)
        assert {Path(path) for path, _ in pairs} == {notebook, notebook.with_suffix(".md")}
