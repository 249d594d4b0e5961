"""yahoo(): finding the files in every form, checking counts, and the cache."""

import gzip
import os
import shutil

import pytest
import torch

from experiments.stand_in import yahoo_like
from fairpg_lite.data import LetorError, save_letor, sets, yahoo
from fairpg_lite.data.sets import PUBLISHED_COUNTS, user_cache_directory

PARTS = ("train", "valid", "test")
QUERIES = {"train": 6, "valid": 3, "test": 4}


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
def test_every_form_gives_the_same_sets(tmp_path, miniature, lay_out):
    texts, sets, counts = miniature
    lay_out(tmp_path, texts)
    for _ in range(2):  # from the text, then from the cache
        loaded = yahoo(tmp_path, expected_counts=counts, progress=False)
        for part in PARTS:
            found = getattr(loaded, part)
            assert torch.equal(found.features, sets[part].features)
            assert torch.equal(found.relevance, sets[part].relevance)
            assert torch.equal(found.offsets, sets[part].offsets)
            assert found.n_features == 699


def test_the_second_load_reads_no_text(tmp_path, miniature, monkeypatch):
    texts, _, counts = miniature
    as_plain(tmp_path, texts)
    first = yahoo(tmp_path, expected_counts=counts, progress=False)

    def no_reading(*_args, **_kwargs):
        raise AssertionError("the text was read again")

    monkeypatch.setattr(sets, "load_letor", no_reading)
    again = yahoo(tmp_path, expected_counts=counts)
    assert torch.equal(again.train.features, first.train.features)
    with pytest.raises(ValueError, match="published are"):  # counts are checked there too
        yahoo(tmp_path)


def test_a_changed_text_is_read_again_and_a_damaged_cache_made_anew(tmp_path, miniature):
    texts, sets, counts = miniature
    as_plain(tmp_path, texts)
    yahoo(tmp_path, expected_counts=counts, progress=False)
    cached = tmp_path / ".fairpg_lite" / "set1.valid.safetensors"
    cached.write_bytes(cached.read_bytes()[:-3])
    loaded = yahoo(tmp_path, expected_counts=counts, progress=False)
    assert torch.equal(loaded.valid.relevance, sets["valid"].relevance)
    lines = texts["test"].splitlines(keepends=True)
    (tmp_path / "set1.test.txt").write_bytes(b"".join([*lines[:-1], b"4 qid:3 1:0.5\n"]))
    loaded = yahoo(tmp_path, expected_counts=counts, progress=False)
    assert loaded.test.relevance[-1] == 4


def test_the_cache_is_beside_the_data_or_elsewhere_when_that_is_read_only(
    tmp_path, miniature, monkeypatch
):
    texts, _, counts = miniature
    root = tmp_path / "data"
    root.mkdir()
    as_plain(root, texts)
    yahoo(root, expected_counts=counts, progress=False)
    assert sorted(p.name for p in (root / ".fairpg_lite").iterdir()) == [
        f"set1.{part}.safetensors" for part in ("test", "train", "valid")
    ]
    shutil.rmtree(root / ".fairpg_lite")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    (root / ".fairpg_lite").write_text("a file where the directory should be: cannot be written")
    yahoo(root, expected_counts=counts, progress=False)
    (place,) = (tmp_path / "home" / "fairpg-lite").iterdir()
    assert place.parent == user_cache_directory()
    assert (place / "set1.train.safetensors").exists()


def test_an_unwritable_cache_warns_and_still_loads(tmp_path, miniature, monkeypatch):
    texts, sets, counts = miniature
    as_plain(tmp_path, texts)
    (tmp_path / ".fairpg_lite").write_text("")
    (tmp_path / "blocked").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    with pytest.warns(UserWarning, match="could not be written"):
        loaded = yahoo(tmp_path, expected_counts=counts, progress=False)
    assert torch.equal(loaded.train.features, sets["train"].features)


def test_published_counts():
    assert PUBLISHED_COUNTS["train"] == (19_944, 473_134)
    assert PUBLISHED_COUNTS["valid"] == (2_994, 71_083)
    assert PUBLISHED_COUNTS["test"] == (6_983, 165_660)


def test_wrong_counts_name_the_file_and_nothing_is_cached(tmp_path, miniature):
    texts, _, counts = miniature
    as_plain(tmp_path, texts)
    short = b"".join(texts["valid"].splitlines(keepends=True)[:-1])
    (tmp_path / "set1.valid.txt").write_bytes(short)
    with pytest.raises(ValueError, match=r"set1\.valid\.txt has 3 queries and .* C14"):
        yahoo(tmp_path, expected_counts=counts, progress=False)
    assert not (tmp_path / ".fairpg_lite" / "set1.valid.safetensors").exists()
    with pytest.raises(ValueError, match=r"set1\.train\.txt .*published are 19,944 and 473,134"):
        yahoo(tmp_path, progress=False)
    loaded = yahoo(tmp_path, expected_counts=None, progress=False)
    assert loaded.valid.n_documents == counts["valid"][1] - 1


def test_missing_files_are_named_with_the_way_to_get_them(tmp_path, miniature, monkeypatch):
    texts, _, counts = miniature
    as_plain(tmp_path, texts)
    (tmp_path / "set1.valid.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"set1\.valid\.txt not found .*Webscope") as error:
        yahoo(tmp_path, expected_counts=counts)
    assert "set1.train" not in str(error.value)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        yahoo(tmp_path / "absent")
    monkeypatch.delenv("FAIRPG_YAHOO", raising=False)
    with pytest.raises(FileNotFoundError, match="FAIRPG_YAHOO"):
        yahoo()
    shutil.copy(tmp_path / "set1.test.txt", tmp_path / "set1.valid.txt")
    monkeypatch.setenv("FAIRPG_YAHOO", os.fspath(tmp_path))
    assert len(yahoo(expected_counts=None, progress=False).valid) == 4


def test_an_archive_is_to_be_unpacked_and_a_fault_names_its_line(tmp_path, miniature):
    texts, _, counts = miniature
    (tmp_path / "ltrc_yahoo.tgz").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"ltrc_yahoo\.tgz is a file; unpack it"):
        yahoo(tmp_path / "ltrc_yahoo.tgz")
    as_plain(tmp_path, {**texts, "train": b"1 qid:1 1:0.5\n1 qid:1 1:x\n"})
    with pytest.raises(LetorError, match=r"set1\.train\.txt, line 2"):
        yahoo(tmp_path, expected_counts=counts, progress=False)


def test_progress_on_the_first_load_only(tmp_path, miniature, capsys):
    texts, _, counts = miniature
    as_plain(tmp_path, texts)
    yahoo(tmp_path, expected_counts=counts)
    assert "set1.train.txt" in capsys.readouterr().err
    yahoo(tmp_path, expected_counts=counts)
    assert capsys.readouterr().err == ""
