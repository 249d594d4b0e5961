"""The project's worked examples: what they say of the first seed comes out, and marks add up."""

import json
import re

import pytest
import torch

from tools.check_chapters import ROOT

TEXT = (ROOT / "book" / "project.md").read_text()


@pytest.fixture
def lines():
    """The functions that the page defines."""
    (source,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)
    names = {}
    exec(source, names)
    yield names
    torch.set_default_dtype(torch.float32)


def three(value):
    return f"{value:.3f}".removeprefix("0")


@pytest.mark.slow
def test_the_reports_say_what_both_examples_say(lines, tmp_path):
    before, after = (
        lines["report"]("sex", 0, lam, tmp_path / f"{lam:g}").measures for lam in (0.0, 25.0)
    )
    d, gap = "d_group", "group_gap"
    ends = [(three(m[d].value), three(m[d].low), three(m[d].high)) for m in (before, after)]
    (value, low, high), (less, left, right) = ends
    assert f"from {value} (95 % interval over queries: {low} to {high})" in TEXT
    assert f"to {less} ({left} to {right})" in TEXT
    assert f"the two-sided gap from {before[gap].value:.2f} to {after[gap].value:.2f}" in TEXT
    hidden = after[gap].value - after[d].value
    assert f"{hidden:.2f} of the {after[gap].value:.2f} is a group of less merit" in TEXT
    stored = json.loads((tmp_path / "25" / "report.json").read_text())
    assert (tmp_path / "25" / "report.html").exists()
    defined = [query["signed_gap"] for query in stored["worst"]]
    ahead = sum(value > 0 for value in defined)  # the group named first
    assert f"Both rest on {len(defined)} of the 100 queries." in TEXT
    assert f"in {ahead} of the {len(defined)}" in TEXT
    assert f"in {ahead} of the {len(defined)} queries that can be compared" in TEXT
    share = len(defined) / 100
    assert f"falls from {three(before[d].value * share)} to {three(after[d].value * share)}" in TEXT
    assert f"say {less} where the text says {three(after[d].value * share)}" in TEXT
    assert f"the {100 - len(defined)} queries without an answer" in TEXT


@pytest.mark.slow
def test_the_result_that_was_left_out_comes_out(lines):
    age = [lines["study"]("age", 0, lam).d_group for lam in (0.0, 25.0)]
    assert f"*rises*, from {three(age[0])} to {three(age[1])}" in TEXT


def test_the_marks_add_up():
    points = [int(n) for n in re.findall(r"\| (\d+) \|$", TEXT, re.M)]
    assert sum(points) == 40
    parts = re.split(r"\*\*The \w+, (\d+) of 40\.\*\*", TEXT)
    assert len(parts) == 5
    for total, example in ((parts[1], parts[2]), (parts[3], parts[4])):
        reasons = example.split("*Why these marks.*")[1]
        words = r"\b(?:question|data|method|report|argument) (\d+)"
        marks = re.findall(words, reasons, re.I)
        assert len(marks) == 5
        assert sum(map(int, marks)) == int(total)
