"""The recipes of RECIPES.md, followed to the letter in a copy, leave the tests green.

A step is prose with code blocks. The words before a block say what to do with it ("Create `x`:",
"Append to `x`:", "In `x`, after the line `y`, insert:", "Run:"), so that the page which people read
is the programme which is run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "RECIPES.md").read_text(encoding="utf-8")
PAGES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8") + TEXT
BLOCK = re.compile(r"^   (`{3,})\w+\n(.*?)^   \1$", re.M | re.S)
ACTIONS = {
    "create": re.compile(r"Create `([^`]+)`:$"),
    "append": re.compile(r"Append to `([^`]+)`:$"),
    "after": re.compile(r"In `([^`]+)`, after the line `([^`]+)`, insert:$"),
    "run": re.compile(r"Run:$"),
}
# What is compiled comes along: it is the same code, with the same times of its files.
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "_build", ".*_cache", ".hypothesis", ".ipynb_checkpoints"
)
# What `make test` runs of the files that a recipe touches, and of those that look at all of a kind.
AFFECTED = {
    "a disparity": [
        "tests/module/test_demands.py",
        "tests/module/test_disparity.py",
        "tests/module/test_docstrings.py",
        "tests/module/test_evaluation.py",
        "tests/module/test_import.py",
        "tests/module/test_objective.py",
        "fairpg_lite/disparity.py",
    ],
    "a data set": [
        "tests/module/test_data_sets.py",
        "tests/module/test_data_shop.py",
        "tests/module/test_docstrings.py",
        "tests/module/test_import.py",
        "fairpg_lite/data",
    ],
    "a chapter": [
        "tests/book/test_book_chapters.py",
        "tests/book/test_paper_map.py",
        "tests/book/test_readme.py",
        "tests/module/test_docstrings.py",
        "book/19_example.ipynb",
        "book/_ext/chapter_links.py",
    ],
}
#: What must be noticed if somebody gets it wrong: file, right text, wrong text.
SLIPS = {
    "a disparity": ("fairpg_lite/disparity.py", "0.8 * due - exposure).relu()", "due).abs()"),
    "a data set": ("fairpg_lite/_data/shop.csv", "\n0,2", "\n\n0,2"),
    "a chapter": ("_toc.yml", "      - file: book/19_example\n", ""),
}


def blocks(recipe):
    """What a recipe asks for, in order: (action, arguments, code)."""
    section = TEXT.split(f"## Recipe: {recipe}\n")[1].split("\n## ")[0]
    start = 0
    for block in BLOCK.finditer(section):
        words = " ".join(section[start : block.start()].split())
        start = block.end()
        found = [(name, m.groups()) for name, p in ACTIONS.items() if (m := p.search(words))]
        assert len(found) == 1, f"what is to be done with the block after {words[-80:]!r}?"
        action, arguments = found[0]
        # Three spaces of list item, no more: an inserted line may be indented itself.
        yield action, arguments, re.sub(r"^ {3}", "", block[2], flags=re.M)


def follow(root, action, arguments, code):
    """Carry out one block in the copy."""
    if action == "run":
        for command in code.splitlines():
            run(root, command)
        return
    path = root / arguments[0]
    if action == "create":
        assert not path.exists(), f"{arguments[0]} is there already"
        path.write_text(code, encoding="utf-8")
        return
    old = path.read_text(encoding="utf-8")
    if action == "append":
        between = "\n\n" if path.suffix == ".py" else ""
        path.write_text(old + between + code, encoding="utf-8")
        return
    lines = old.splitlines(keepends=True)
    places = [k for k, line in enumerate(lines) if line.strip() == arguments[1].strip()]
    assert len(places) == 1, f"{arguments[0]} has {len(places)} lines {arguments[1]!r}"
    lines.insert(places[0] + 1, code)
    path.write_text("".join(lines), encoding="utf-8")


def run(root, command, *, fails=False):
    """A command of the page, with the Python that runs the tests in the place of .venv."""
    if command.startswith("make "):  # it is set up already
        command += f" VENV={sys.prefix} -o setup -o {sys.prefix}/.installed"
    command = command.replace(".venv/bin/", f"{sys.prefix}/bin/")
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True
    )
    assert (done.returncode != 0) == fails, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "repository"
    shutil.copytree(ROOT, root, ignore=LEFT_OUT)
    return root


@pytest.mark.thorough
@pytest.mark.parametrize("recipe", AFFECTED)
def test_a_recipe_leaves_the_tests_green_and_they_notice_a_slip(checkout, recipe):
    for block in blocks(recipe):
        follow(checkout, *block)
    run(checkout, ".venv/bin/python -m ruff check . && .venv/bin/python -m ruff format --check .")
    tests = " ".join(AFFECTED[recipe])
    run(checkout, f".venv/bin/python -m pytest -q -m 'not slow' {tests}")
    file, right, wrong = SLIPS[recipe]
    path = checkout / file
    assert path.read_text(encoding="utf-8").count(right) == 1, "the slip did not take"
    path.write_text(path.read_text(encoding="utf-8").replace(right, wrong), encoding="utf-8")
    run(checkout, f".venv/bin/python -m pytest -q -x -m 'not slow' {tests}", fails=True)


def test_no_recipe_is_left_out():
    assert re.findall(r"^## Recipe: (.*)$", TEXT, re.M) == list(AFFECTED)


def test_the_policy_of_ones_own_runs():
    section = TEXT.split("## A policy of your own\n")[1]
    code = re.search(r"```python\n(.*?)```", section, re.S)[1]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert re.match(r"Difference\(mean=0\.006\d+, low=0\.003\d+", done.stdout)


def test_commands_that_the_page_names_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M)
    assert set(re.findall(r"`make ([a-z-]+)", PAGES)) <= set(targets)


def test_files_that_the_page_names_exist():
    made = {block[1][0] for recipe in AFFECTED for block in blocks(recipe) if block[1]}
    named = set(re.findall(r"`((?:book|tools|tests|fairpg_lite)/[\w/]+\.\w+)`", PAGES))
    named |= {
        f"tools/{name}"
        for name in re.findall(
            r"`(\w+\.(?:py|sh))`", PAGES.split("## Tools")[1].split("# Recipes")[0]
        )
    }
    for name in named - made:
        if not name.startswith("book/NN_"):
            assert (ROOT / name).exists(), name
