"""The book on paper: two pages printed by Chromium, read back by pypdf."""

import shutil

import browser as ask
import pypdf
import pytest
from bs4 import BeautifulSoup

from tools import built_page
from tools import make_pdf as printing
from tools.check_chapters import ROOT, files_in
from tools.make_pdf import make_pdf, one_page, parts_on_paper, sheet_numbers

PARTS = [("", ["book/intro"]), ("A part", ["book/01_ten_candidates"])]


def test_the_parts_hold_every_page_of_the_contents():
    import yaml

    pages = [name for _, names in built_page.parts_in_order() for name in names]
    assert len(pages) == len(set(pages))
    assert set(pages) == files_in(yaml.safe_load((ROOT / "_toc.yml").read_text()))
    assert pages[:2] == ["book/intro", "book/01_ten_candidates"]


def test_every_link_of_the_printed_page_has_its_place(built_book):
    soup = BeautifulSoup(one_page(PARTS, built_book), "html.parser")
    ids = [element["id"] for element in soup.select("[id]")]
    assert len(ids) == len(set(ids))
    inside = [a["href"] for a in soup.select("a[href]") if a["href"].startswith("#")]
    assert len(inside) >= 15
    assert {href[1:] for href in inside} <= set(ids)
    outside = [a["href"] for a in soup.select("a[href]") if not a["href"].startswith("#")]
    assert all(href.startswith(("https://", "http://")) for href in outside)


def test_nothing_that_needs_a_screen_is_printed(built_book):
    soup = BeautifulSoup(one_page(PARTS, built_book), "html.parser")
    assert not soup.select(".page button, .page script, .page input, .page details, [hidden]")
    # A definition that appears on a word would stand in the middle of the sentence, and the code of
    # a figure, folded on the screen, would fill a third of the sheets.
    assert (
        "An order of the candidate set" in (built_book / "book/01_ten_candidates.html").read_text()
    )
    assert "An order of the candidate set" not in soup.get_text()
    assert "plt.show()" not in soup.get_text()
    slider = BeautifulSoup(one_page([("", ["book/03_plackett_luce"])], built_book), "html.parser")
    assert len(slider.select("figure.frames .drawn")) == 1
    assert all(image["src"].startswith("data:") for image in soup.select("img"))


def test_the_answers_of_a_quiz_come_after_its_questions(built_book):
    soup = BeautifulSoup(one_page([("", ["book/quiz_1"])], built_book), "html.parser")
    questions, answers = soup.select("fieldset.quiz"), soup.select(".answers .answer")
    assert len(questions) > 3
    assert len(answers) == len(soup.select(".quiz-option"))
    assert not soup.select("fieldset .answer, fieldset .quiz-feedback")
    words = soup.get_text()
    assert words.index("Not so.") > words.rindex(questions[-1].legend.get_text()[:40])
    assert answers[0].get_text().split()[:2] == ["1", "(a)"]


@pytest.fixture(scope="module")
def printed(built_book, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pdf")
    # A copy: other tests count the pages of the built book while this one adds its own.
    html = shutil.copytree(built_book, folder / "html")
    overhang = make_pdf(PARTS, folder / "book.pdf", html)
    return pypdf.PdfReader(folder / "book.pdf"), folder / "book.pdf", overhang


@ask.needs_chromium
def test_the_printed_book_can_be_read(printed):
    reader, file, overhang = printed
    assert overhang == []
    sheets = [" ".join(sheet.extract_text().split()) for sheet in reader.pages]
    assert "Fairness of exposure in learning to rank" in sheets[0]
    assert "Contents" in sheets[1]
    text = " ".join(sheets)
    for words in (
        "Ten people apply for a job",
        "1.5. What it costs",
        "Solution",
        "less than her share",
    ):
        assert words in text
    for number, sheet in enumerate(sheets, 1):
        assert sheet.endswith(f" {number}"), f"sheet {number} has no number"
    assert not (file.parent / "html" / "print.html").exists()


@ask.needs_chromium
def test_the_contents_name_the_sheet_of_each_section(printed):
    reader, file, _ = printed
    place = sheet_numbers(file)["p-book-01_ten_candidates--what-it-costs"]
    assert "What it costs" in reader.pages[place - 1].extract_text()
    contents = " ".join(reader.pages[1].extract_text().split())
    assert f"What it costs {place}" in contents
    assert " 000" not in contents


@ask.needs_chromium
def test_the_printed_book_has_bookmarks(printed):
    reader, _, _ = printed
    assert any("Ten candidates" in getattr(item, "title", "") for item in flat(reader.outline))


def flat(items):
    for item in items:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield item


@ask.needs_chromium
@pytest.mark.parametrize(
    ("sheets", "megabytes", "overhang", "words"),
    [
        (99, 9, [], None),
        (1, 9, [], "nobody prints that"),
        (99, 1e-3, [], "nobody prints that"),
        (99, 9, ["DIV: far too wide"], "over the margin: DIV"),
    ],
)
def test_what_does_not_fit_on_paper_is_an_error(
    printed, monkeypatch, capsys, sheets, megabytes, overhang, words
):
    """It had grown to 351 sheets and 16 MB before anybody printed it again."""
    monkeypatch.setattr(printing, "make_pdf", lambda parts, target, folder: overhang)
    monkeypatch.setattr(printing, "SHEETS", sheets)
    monkeypatch.setattr(printing, "MEGABYTES", megabytes)
    assert printing.main(printed[1]) == (words is not None)
    assert words is None or words in capsys.readouterr().out


def test_the_whole_book_is_what_ci_prints():
    """Not this suite: it takes half a minute."""
    assert "make pdf" in (ROOT / ".ci" / "run").read_text()
    on_paper = {name for _, names in parts_on_paper() for name in names}
    everything = {name for _, names in built_page.parts_in_order() for name in names}
    assert everything - on_paper == {"book/api"}


@ask.needs_chromium
def test_what_reaches_over_the_margin_is_named(built_book, tmp_path):
    html = shutil.copytree(built_book, tmp_path / "html")
    page = html / "book" / "intro.html"
    wide = '<article class="bd-article"><div style="width:900px">far too wide</div>'
    page.write_text(page.read_text().replace('<article class="bd-article">', wide))
    assert make_pdf([("", ["book/intro"])], tmp_path / "x.pdf", html) == ["DIV: far too wide"]


def test_a_page_that_is_not_built_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"book/nowhere\.html is not built"):
        built_page.read("book/nowhere", tmp_path)
