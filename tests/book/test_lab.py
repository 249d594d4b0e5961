"""`make lab`: JupyterLab opens the assignment, with MyST, and the lock has what that takes."""

import json
import os
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest

from tools.check_chapters import ROOT

BIN = Path(sys.prefix) / "bin"


def test_the_lock_holds_the_extra():
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {line.split(">")[0] for line in extra["lab"]} - {"fairpg-lite[book]"}
    lock = {
        line.split("==")[0].replace("_", "-")
        for line in (ROOT / "requirements.lock").read_text().splitlines()
    }
    assert names == {"jupyterlab", "jupyterlab-myst"}
    assert names <= lock


def test_make_lab_opens_the_assignment_in_the_folder_of_the_chapters():
    command = ["make", "-n", "lab", f"VENV={sys.prefix}", "-o", "setup"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "cd book && " in done.stdout
    assert "default_url=/lab/tree/coursework/assignment.ipynb" in done.stdout
    assert (ROOT / "book" / "coursework" / "assignment.ipynb").exists()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def lab(tmp_path):
    """JupyterLab as `make lab` starts it, but without a browser."""
    port = free_port()
    settings = {key: str(tmp_path / key) for key in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")}
    options = [f"--port={port}", "--no-browser", "--IdentityProvider.token=test"]
    options += ["--allow-root", "--ServerApp.port_retries=0"]
    server = subprocess.Popen(
        [BIN / "jupyter-lab", "--ServerApp.root_dir=.", *options],
        cwd=ROOT / "book",
        env={**os.environ, **settings, "HOME": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield port, server
    finally:
        server.terminate()
        server.wait(30)


def get(port, path):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{path}", headers={"Authorization": "token test"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


@pytest.mark.slow
def test_the_server_shows_the_assignment_and_has_the_myst_extension(lab):
    port, server = lab
    for _ in range(240):
        assert server.poll() is None, "jupyter-lab ended"
        try:
            get(port, "api")
            break
        except OSError:
            time.sleep(0.5)
    page = json.loads(get(port, "api/contents/coursework/assignment.ipynb?content=0"))
    assert page["type"] == "notebook"
    assert "jupyterlab-myst" in get(port, "lab")
