"""The recipes of CONTRIBUTING.md, followed to the letter in a copy of the repository.

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

from tools.check_chapters import problems

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = ["add a disparity", "add a data set", "add a chapter"]
BLOCK = re.compile(r"^( *)(`{3,})(\w+)\n(.*?)^\1\2$", re.M | re.S)
ACTIONS = {
    "create": re.compile(r"Create `([^`]+)`:$"),
    "append": re.compile(r"Append to `([^`]+)`:$"),
    "after": re.compile(r"In `([^`]+)`, after the line `([^`]+)`, insert:$"),
    "before": re.compile(r"In `([^`]+)`, before the line `([^`]+)`, insert:$"),
    "run": re.compile(r"Run:$"),
}
# What is compiled comes along: it is the same code, with the same times of its files.
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "_build", ".*_cache", ".hypothesis", ".ipynb_checkpoints"
)


def steps(recipe, text=TEXT):
    """The steps of a recipe: for each, a list of (action, arguments, code)."""
    section = text.split(f"## Recipe: {recipe}\n")[1].split("\n## ")[0]
    parts = re.split(r"^\d\. ", section, flags=re.M)[1:]
    return [list(actions(part)) for part in parts]


def actions(step):
    start = 0
    for block in BLOCK.finditer(step):
        words = " ".join(step[start : block.start()].split())
        start = block.end()
        found = [(name, m.groups()) for name, p in ACTIONS.items() if (m := p.search(words))]
        assert len(found) == 1, f"what is to be done with the block after {words[-80:]!r}?"
        # Three spaces of list item, no more: an inserted line may be indented itself.
        code = re.sub(r"^ {3}", "", block[4], flags=re.M)
        yield *found[0], code


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
        path.write_text(old + code, encoding="utf-8")
        return
    lines = old.splitlines(keepends=True)
    places = [k for k, line in enumerate(lines) if line.strip() == arguments[1].strip()]
    assert len(places) == 1, f"{arguments[0]} has {len(places)} lines {arguments[1]!r}"
    lines.insert(places[0] + (action == "after"), code)
    path.write_text("".join(lines), encoding="utf-8")


def run(root, command, expect=0):
    """A command of the page, with the Python that runs the tests in the place of .venv."""
    if command.startswith("make "):  # it is set up already
        command += f" VENV={sys.prefix} -o setup -o {sys.prefix}/.installed"
    command = command.replace(".venv/bin/", f"{sys.prefix}/bin/")
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["bash", "-c", command], cwd=root, env=environment, capture_output=True, text=True
    )
    said = f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    assert (done.returncode == 0) == (expect == 0), said
    return said


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "repository"
    shutil.copytree(ROOT, root, ignore=LEFT_OUT)
    return root


def test_the_page_has_these_recipes_of_five_steps():
    assert re.findall(r"^## Recipe: (.*)$", TEXT, re.M) == RECIPES
    for recipe in RECIPES:
        assert len(steps(recipe)) == 5
        assert all(steps(recipe)), "a step without anything to do"


def test_no_block_of_a_recipe_is_overlooked():
    """As many fences as blocks that were understood."""
    for recipe in RECIPES:
        section = TEXT.split(f"## Recipe: {recipe}\n")[1].split("\n## ")[0]
        opened = re.findall(r"^   `{3,}\w+$", section, re.M)
        assert len(opened) == sum(map(len, steps(recipe)))


@pytest.mark.parametrize(
    ("recipe", "file", "right", "wrong", "complaint"),
    [
        ("add a disparity", "shortfall.py", ".relu()", ".abs()", "test_against_a_loop"),
        ("add a data set", "_data/shop.csv", "\n", "\n\n", "was changed or damaged"),
    ],
)
def test_the_recipe_works_and_its_own_test_catches_a_slip(
    checkout, recipe, file, right, wrong, complaint
):
    for step in steps(recipe):
        for block in step:
            follow(checkout, *block)
    made = checkout / "fairpg_lite" / file
    made.write_text(made.read_text().replace(right, wrong, 1))
    last = block[2].splitlines()[-1]
    assert "pytest" in last
    assert complaint in run(checkout, f"{last} -x", expect=1)


def test_the_recipe_for_a_chapter_works_and_needs_its_second_step(checkout):
    for step in steps("add a chapter"):
        for block in step:
            follow(checkout, *block)
    page = (checkout / "book" / "16_example.md").read_text()
    assert page.count("\n# An example\n") == 1
    assert "NN" not in page
    ((_, _, listed),) = steps("add a chapter")[1]
    toc = checkout / "_toc.yml"
    toc.write_text(toc.read_text().replace(listed, ""))
    found = problems(checkout / "book" / "16_example.md", checkout)
    assert found == ["is not in _toc.yml (file: book/16_example)"]


def test_the_loop_names_commands_that_exist():
    loop = TEXT.split("## The loop")[1].split("\n## ")[0]
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)
    named = re.findall(r"make ([a-z-]+)", loop)
    assert {"run-chapters", "test"} <= set(named) <= set(targets)


def test_files_that_the_page_names_exist():
    made = {b[1][0] for recipe in RECIPES for step in steps(recipe) for b in step if b[0] != "run"}
    named = re.findall(r"`((?:book|tools|tests|fairpg_lite)/[\w/]+\.\w+|[A-Z]+\.md)`", TEXT)
    for name in set(named) - made:
        if not name.startswith("book/NN_"):
            assert (ROOT / name).exists(), name
