"""The files around the book: Binder's environment, citation, continuous integration."""

import os
import re
import subprocess

import pytest
import yaml

import fairpg_lite
from tools.check_chapters import ROOT

CONDA_NAMES = {"pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}


def read_yaml(name):
    return yaml.safe_load((ROOT / name).read_text())


def locked():
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {name.lower().replace("_", "-"): version for name, version in pairs}


def test_binder_installs_the_locked_releases():
    environment = read_yaml("binder/environment.yml")
    assert environment["channels"] == ["conda-forge"]
    pins = dict(line.split("=") for line in environment["dependencies"] if "=" in line)
    assert pins.pop("python") == "3.11"
    assert "pytorch-cpu" in pins
    lock = locked()
    for name, release in pins.items():
        version = lock[CONDA_NAMES.get(name, name)]
        assert f"{version}.".startswith(f"{release}."), f"{name}: {release} against {version}"


def test_binder_has_what_the_module_and_a_chapter_import():
    names = {re.split("=", line)[0] for line in read_yaml("binder/environment.yml")["dependencies"]}
    needed = {"numpy", "scipy", "scikit-learn", "lightgbm", "joblib", "tqdm", "matplotlib", "torch"}
    needed |= {"ipywidgets", "ipykernel", "jupytext", "jupyterlab"}
    needed |= {"distributed"}  # chapter 18 starts a cluster; it brings dask
    assert needed <= {CONDA_NAMES.get(name, name) for name in names}


@pytest.mark.parametrize("script", [".ci/run", "binder/postBuild"])
def test_scripts_can_be_run(script):
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_ci_says_when_something_fails(tmp_path):
    """`.ci/run` passes on the exit status of `make test`, here of a stand-in for make."""
    for name, body in {"make": 'echo "make $*"; exit 3', "chromium": ":"}.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    run = [ROOT / ".ci" / "run"]
    done = subprocess.run(run, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == 3
    assert "make test" in done.stdout
    assert "ci: FAILED" in done.stdout
    (tmp_path / "make").write_text("#!/bin/sh\nexit 0\n")
    assert (
        subprocess.run(run, env={**os.environ, "PATH": path}, capture_output=True).returncode == 0
    )


def test_the_workflow_runs_the_tests_before_it_publishes():
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    commands = [step.get("run", "") for step in jobs["test"]["steps"]]
    assert ".ci/run" in commands
    assert jobs["publish"]["needs"] == "test"
    assert "refs/heads/main" in jobs["publish"]["if"]
    upload = next(s for s in jobs["test"]["steps"] if "upload-pages" in s.get("uses", ""))
    assert upload["with"]["path"] == "_build/html"


def test_the_citation_names_the_paper_and_this_version():
    citation = read_yaml("CITATION.cff")
    assert str(citation["version"]) == fairpg_lite.__version__
    for entry in (citation["preferred-citation"], citation["references"][0]):
        assert entry["title"] == "Policy Learning for Fairness in Ranking"
        assert [a["family-names"] for a in entry["authors"]] == ["Singh", "Joachims"]
        assert entry["year"] == 2019
