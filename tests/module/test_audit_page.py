"""The report: names are text, nothing is asked of the network, it fits a phone and two sheets."""

import json
import re

import browser as looks
import numpy as np
import pandas as pd
import pytest
from pypdf import PdfReader

from fairpg_lite import audit
from fairpg_lite.auditing.words import compared, rounded_up, small, summary

NASTY = '<script>alert("x")</script> & <img src=http://example.org/x.png onerror=alert(1)>'


def log(groups=2, queries=30, draws=3, faults=True, seed=0):
    """A table of lists, grades and groups whose names would like to be a part of the page."""
    rng = np.random.default_rng(seed)
    names = [f"d{i}{NASTY if i == 0 else ''}" for i in range(12)]
    rows, grades = [], {}
    for number in range(queries):
        query = NASTY if number == 0 else f"a rather long name of a query, number {number}"
        judged = names[:10] if faults else names
        grades[query] = {d: int(rng.integers(-1 if faults else 1, 4)) for d in judged}
        for draw in range(draws):
            for rank, document in enumerate(rng.permutation(names)[: 9 if faults else 12], 1):
                score = float(rng.normal()) if faults else -float(rank)
                rows.append((query, str(document), rank, draw, score))
    frame = pd.DataFrame(rows, columns=["query", "document", "rank", "draw", "score"])
    if faults:
        grades["judged only"] = {"x": 1}
        frame.loc[len(frame)] = ("shown only", "x", 1, 0, 1.0)
        frame.loc[frame["query"].str.endswith("number 3") & (frame["rank"] == 9), "rank"] = 11
    labels = [f"group {number} {NASTY}" for number in range(groups)]
    table = {name: labels[i % groups] for i, name in enumerate(names[: -1 if faults else None])}
    return frame, grades, table


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of an audit with every kind of counted line."""
    folder = tmp_path_factory.mktemp("report")
    return audit(*log(), command=NASTY).save(folder)


def test_names_are_text(report):
    page = report.read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page
    numbers = json.loads(report.with_name("report.json").read_text(encoding="utf-8"))
    assert numbers["groups"][0]["name"] == f"group 0 {NASTY}"


def test_every_number_of_the_table_is_in_the_file(report):
    numbers = json.loads(report.with_name("report.json").read_text(encoding="utf-8"))
    page = report.read_text(encoding="utf-8")
    for measure in numbers["measures"].values():
        assert small(measure["value"]) in page
        assert measure["label"] in page
    assert set(numbers["per_query"]) == {row for row in numbers["per_query"] if row != "shown only"}
    for name in ("unjudged", "without_group", "only_shown", "only_judged", "with_gaps"):
        assert numbers["counts"][name], name


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_on_a_screen(chrome, report, scheme):
    """No scripts, no requests, no sideways scrolling, and axe finds nothing."""
    context = chrome.new_context(color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: requests.append(dialog.message))
    for width in (1100, 360):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(report.as_uri())
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth") <= page.evaluate(f"{root}.clientWidth")
        page.evaluate(looks.axe_script())
        found = page.evaluate("axe.run()")
        faults = [(fault["id"], fault["nodes"][0]["html"]) for fault in found["violations"]]
        assert faults == []
    assert set(requests) == {report.as_uri()}
    context.close()


@pytest.mark.parametrize("groups", [2, 7])
def test_the_page_on_paper(chrome, tmp_path, groups):
    page = chrome.new_page()
    page.goto(audit(*log(groups)).save(tmp_path).as_uri())
    page.pdf(path=str(tmp_path / "report.pdf"), prefer_css_page_size=True)
    page.close()
    sheets = PdfReader(tmp_path / "report.pdf").pages
    assert len(sheets) == 2
    text = "".join(sheet.extract_text() for sheet in sheets)
    assert "What was not tested" in re.sub(r"\s+", " ", text)


def test_clean_data_and_one_list_are_said_to_be_so(tmp_path):
    found = audit(*log(draws=1, faults=False))
    page = found.save(tmp_path).read_text(encoding="utf-8")
    assert "Every query was shown and judged" in page
    assert "which is taken for what everybody is shown" in page
    assert "at most" not in summary(found)[1]


def test_a_group_without_company_is_not_compared():
    frame, grades, _ = log(faults=False)
    only_one = dict.fromkeys(frame["document"], "everybody")
    assert "nothing to compare" in summary(audit(frame, grades, only_one))[0]


def test_numbers_in_words():
    assert [compared(x) for x in (-0.46, 0.123, 0.001)] == [
        "46 % less",
        "12 % more",
        "no more and no less",
    ]
    assert [small(x) for x in (0.0, 0.01234, 1.0, 0.63093, 12.3456, -0.5)] == [
        "0",
        "0.0123",
        "1.00",
        "0.631",
        "12.3",
        "-0.500",
    ]
    assert [rounded_up(x) for x in (7, 41, 100, 1234)] == [7, 50, 100, 2000]
