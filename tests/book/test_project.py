"""The project's worked examples: what they say of one seed comes out, and marks add up."""

import re

import pytest
import torch

from tools.check_chapters import ROOT

TEXT = (ROOT / "book" / "project.md").read_text()


@pytest.fixture
def study():
    (source,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)
    names = {}
    exec(source, names)
    yield names["study"]
    torch.set_default_dtype(torch.float32)


def three(value):
    return f"{value:.3f}".removeprefix("0")


@pytest.mark.slow
def test_the_numbers_of_the_flawed_example_come_out(study):
    age = [study("age", 0, lam).d_group for lam in (0.0, 25.0)]
    assert f"*rises*, from {three(age[0])} to {three(age[1])}" in TEXT
    sex = study("sex", 0, 0.0)
    assert f"it is {three(sex.d_group)}" in TEXT
    defined = int(sex.defined["d_group"])
    assert f"the {100 - defined} queries without an answer" in TEXT
    assert f"falls from {three(sex.d_group * defined / 100)} to" in TEXT


def test_the_marks_add_up():
    points = [int(n) for n in re.findall(r"\| (\d+) \|$", TEXT, re.M)]
    assert sum(points) == 40
    parts = re.split(r"\*\*The \w+, (\d+) of 40\.\*\*", TEXT)
    assert len(parts) == 5
    for total, example in ((parts[1], parts[2]), (parts[3], parts[4])):
        reasons = example.split("*Why these marks.*")[1]
        words = r"\b(?:question|data|method|measure|argument) (\d+)"
        marks = re.findall(words, reasons, re.I)
        assert len(marks) == 5
        assert sum(map(int, marks)) == int(total)
