"""yahoo(): finding the files in every form, checking counts, and the cache."""

import gzip
import os

import pytest
import torch

from experiments import yahoo_files
from experiments.stand_in import yahoo_like
from experiments.yahoo_files import PUBLISHED_COUNTS, yahoo
from fairpg_lite.data import LetorError, save_letor

PARTS = ("train", "valid", "test")
QUERIES = {"train": 6, "valid": 3, "test": 4}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """An empty cache directory of the user."""
    place = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    return place / "fairpg-lite"


@pytest.fixture
def published(miniature, monkeypatch):
    """The miniature's counts as if they were Yahoo's."""
    monkeypatch.setattr(yahoo_files, "PUBLISHED_COUNTS", miniature[2])


@pytest.fixture(scope="module")
def miniature(tmp_path_factory):
    """Three small files in the real format, filled with the stand-in: texts, sets, counts."""
    directory = tmp_path_factory.mktemp("miniature")
    sets = {part: yahoo_like(n, part=part) for part, n in QUERIES.items()}
    for part, ds in sets.items():
        save_letor(ds, directory / f"set1.{part}.txt")
    texts = {part: (directory / f"set1.{part}.txt").read_bytes() for part in PARTS}
    counts = {part: (len(ds), ds.n_documents) for part, ds in sets.items()}
    return texts, sets, counts


def as_plain(root, texts):
    for part, text in texts.items():
        (root / f"set1.{part}.txt").write_bytes(text)


def as_nested_gz(root, texts):
    folder = root / "Learning to Rank Challenge" / "ltrc_yahoo"
    folder.mkdir(parents=True)
    for part, text in texts.items():
        (folder / f"set1.{part}.txt.gz").write_bytes(gzip.compress(text))


@pytest.mark.parametrize("lay_out", [as_plain, as_nested_gz])
def test_every_form_gives_the_same_sets(tmp_path, miniature, published, lay_out):
    texts, sets, _ = miniature
    lay_out(tmp_path, texts)
    for _ in range(2):  # from the text, then from the cache
        for part, found in zip(PARTS, yahoo(tmp_path), strict=True):
            assert torch.equal(found.features, sets[part].features)
            assert torch.equal(found.relevance, sets[part].relevance)
            assert torch.equal(found.offsets, sets[part].offsets)
            assert found.n_features == 699


def test_the_second_load_reads_no_text(tmp_path, miniature, published, cache, monkeypatch):
    as_plain(tmp_path, miniature[0])
    first = yahoo(tmp_path)
    assert sorted(p.name[:-20] for p in cache.iterdir()) == sorted(f"yahoo-{p}" for p in PARTS)

    def no_reading(*_args, **_kwargs):
        raise AssertionError("the text was read again")

    monkeypatch.setattr(yahoo_files, "load_letor", no_reading)
    again = yahoo(tmp_path)
    assert torch.equal(again[0].features, first[0].features)
    monkeypatch.setattr(yahoo_files, "PUBLISHED_COUNTS", PUBLISHED_COUNTS)
    with pytest.raises(ValueError, match="published are"):  # counts are checked there too
        yahoo(tmp_path)


def test_a_changed_text_is_read_again_and_a_damaged_cache_made_anew(
    tmp_path, miniature, published, cache
):
    texts, sets, _ = miniature
    as_plain(tmp_path, texts)
    yahoo(tmp_path)
    (cached,) = cache.glob("yahoo-valid-*")
    cached.write_bytes(cached.read_bytes()[:-3])
    loaded = yahoo(tmp_path)
    assert torch.equal(loaded[1].relevance, sets["valid"].relevance)
    lines = texts["test"].splitlines(keepends=True)
    qid = lines[-1].split()[1]
    (tmp_path / "set1.test.txt").write_bytes(b"".join([*lines[:-1], b"4 %b 1:0.5\n" % qid]))
    assert yahoo(tmp_path)[2].relevance[-1] == 4


def test_an_unwritable_cache_warns_and_still_loads(tmp_path, miniature, published, monkeypatch):
    texts, sets, _ = miniature
    as_plain(tmp_path, texts)
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    with pytest.warns(UserWarning, match="could not be written"):
        loaded = yahoo(tmp_path)
    assert torch.equal(loaded[0].features, sets["train"].features)


def test_published_counts():
    assert PUBLISHED_COUNTS["train"] == (19_944, 473_134)
    assert PUBLISHED_COUNTS["valid"] == (2_994, 71_083)
    assert PUBLISHED_COUNTS["test"] == (6_983, 165_660)


def test_wrong_counts_name_the_file(tmp_path, miniature, published):
    texts, _, _ = miniature
    as_plain(tmp_path, texts)
    yahoo(tmp_path)
    short = b"".join(texts["valid"].splitlines(keepends=True)[:-1])
    (tmp_path / "set1.valid.txt").write_bytes(short)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"set1\.valid\.txt has \(3, .* published are .* C14"):
            yahoo(tmp_path)


def test_missing_files_are_named_with_the_way_to_get_them(
    tmp_path, miniature, published, monkeypatch
):
    as_plain(tmp_path, miniature[0])
    (tmp_path / "set1.valid.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"no set1\.valid\.txt in .*Webscope"):
        yahoo(tmp_path)
    (tmp_path / "ltrc_yahoo.tgz").write_bytes(b"")
    for place in ("absent", "ltrc_yahoo.tgz"):
        with pytest.raises(FileNotFoundError, match=f"{place}.* Unpack the archive"):
            yahoo(tmp_path / place)
    monkeypatch.delenv("FAIRPG_YAHOO", raising=False)
    with pytest.raises(FileNotFoundError, match="FAIRPG_YAHOO"):
        yahoo()
    as_plain(tmp_path, miniature[0])
    monkeypatch.setenv("FAIRPG_YAHOO", os.fspath(tmp_path))
    assert len(yahoo()[1]) == QUERIES["valid"]


def test_a_fault_names_its_line(tmp_path, miniature):
    as_plain(tmp_path, {**miniature[0], "train": b"1 qid:1 1:0.5\n1 qid:1 1:x\n"})
    with pytest.raises(LetorError, match=r"set1\.train\.txt, line 2"):
        yahoo(tmp_path)
