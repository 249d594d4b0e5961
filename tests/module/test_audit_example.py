"""The example report of the book is what its script makes."""

import json

import pytest

from tools.example_report import COMMANDS, NUMBERS, PAGES, make


@pytest.mark.slow
def test_the_example_is_made_anew(tmp_path):
    """Another processor may grow another tree or two, so the numbers need not be the same."""
    temperature = make(tmp_path)
    for part in COMMANDS:
        fresh = json.loads((tmp_path / part / "report.json").read_text(encoding="utf-8"))
        stored = json.loads((NUMBERS / f"{part}.json").read_text(encoding="utf-8"))
        assert stored["counts"] == fresh["counts"]
        assert stored["made_by"] == "python tools/example_report.py"
        for name, measure in fresh["measures"].items():
            assert measure["value"] == pytest.approx(
                stored["measures"][name]["value"], rel=0.25, abs=0.005
            )
        assert fresh["utilities"]["ndcg"]["value"] == pytest.approx(
            stored["utilities"]["ndcg"]["value"], abs=0.02
        )
    assert temperature == pytest.approx(stored["temperature"])


@pytest.mark.parametrize("part", COMMANDS)
def test_the_page_shows_the_stored_numbers(part):
    page = (PAGES / f"{part}.html").read_text(encoding="utf-8")
    stored = json.loads((NUMBERS / f"{part}.json").read_text(encoding="utf-8"))
    assert COMMANDS[part] in page
    assert f"{stored['utilities']['ndcg']['value']:.3f}" in page
    for digest in stored["origin"]["sha256"].values():
        assert digest[:32] in page
