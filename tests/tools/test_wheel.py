"""The wheel, installed where nothing but torch, NumPy and what these need is there."""

import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What the wheel is used for below, all by its own files.
USE = """
import sys
sys.path.insert(0, sys.argv[1])
import fairpg_lite
assert fairpg_lite.__file__.startswith(sys.argv[1]), fairpg_lite.__file__
from fairpg_lite import LinearScorer, TrainConfig, evaluate, fit, german_credit, mslr_sample
from fairpg_lite import save_letor, synthetic
german_credit(seed=0)
mslr_sample()
data = synthetic(6, seed=0)
scorer = LinearScorer(2, dtype=data.features.dtype)
fit(scorer, data, TrainConfig(lam=5.0, epochs=1), progress=False)
assert 0 < evaluate(scorer, data).means["ndcg"] <= 1
save_letor(data, "train.txt")
with open("train.groups", "w") as file:
    file.writelines(f"{int(group)}\\n" for group in data.groups)
from fairpg_lite.cli import main
words = ["train.txt", "--groups", "train.groups"]
assert main(["fit", *words, "--out", "model", "--epochs", "1", "-q"]) == 0
assert main(["evaluate", "model", *words]) == 0
assert main(["rank", "model", "train.txt"]) == 0
assert main(["sweep", *words, "--test", "train.txt", "--test-groups", "train.groups",
             "--lam", "0", "--out", "sweep"]) == 1
absent = ("pandas", "scipy", "sklearn", "matplotlib", "numba", "joblib", "tqdm", "pytest")
assert not [name for name in absent if name in sys.modules]
"""


def needed(*names):
    """Distributions by name, with all that they need on this machine."""
    found = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another system, or an extra
            continue
        for requirement in found[name].requires or []:
            if "extra ==" not in requirement:
                waiting.append(re.match(r"[\w.-]+", requirement)[0])
    return found.values()


def top_levels(distribution):
    """The files and folders of a distribution, directly in site-packages."""
    parts = {file.parts[0] for file in distribution.files or [] if ".." not in file.parts}
    return [Path(distribution.locate_file(part)) for part in parts if part != "__pycache__"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from a copy of what the repository has, so that nothing is left in it."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(
        ROOT / "fairpg_lite",
        source / "fairpg_lite",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for name in ("pyproject.toml", "README.md", "LICENSE", "LICENSE-TEXT"):
        shutil.copy(ROOT / name, source)
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    words += ["--no-build-isolation", "--wheel-dir", source / "dist", source]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = (source / "dist").iterdir()
    return built


@pytest.mark.slow
def test_the_wheel_works_beside_torch_and_numpy_alone(wheel, tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    for distribution in needed("torch", "numpy"):
        for path in top_levels(distribution):
            link = packages / path.name
            if path.exists() and not link.exists():
                link.symlink_to(path)
    done = subprocess.run(
        # Without site-packages, the user's or PYTHONPATH's.
        [sys.executable, "-I", "-S", "-c", USE, packages],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stderr  # what `sweep` is told
