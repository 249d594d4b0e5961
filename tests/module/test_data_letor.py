"""The LETOR reader: equal to scikit-learn's on valid files, and never silent on others."""

import bz2
import gzip
import lzma
import math
import pickle
import re
import tracemalloc
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file
from test_data_dataset import make

from fairpg_lite.data import (
    LetorError,
    RankingDataset,
    letor,
    letor_lines,
    load_letor,
    save_letor,
)

GOOD = b"2 qid:7 1:0.5 3:1.25 # doc a\n\n# a comment\n0 qid:9 2:4\r\n1 qid:7 1:-3e-2\n"


def write(tmp_path, content, name="data.txt"):
    file = tmp_path / name
    file.write_bytes(content)
    return file


# --- valid files ---------------------------------------------------------------------------------


PACKED = [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]


@pytest.mark.parametrize(("suffix", "compress"), [("", bytes), *PACKED])
def test_plain_and_compressed(tmp_path, suffix, compress):
    file = write(tmp_path, compress(GOOD), f"data.txt{suffix}")
    ds = load_letor(file, dtype=torch.float64)
    assert ds.query_ids.tolist() == [7, 9]
    assert ds.offsets.tolist() == [0, 2, 3]  # the scattered query is gathered, in file order
    assert ds.document_ids.tolist() == [0, 2, 1]
    assert ds.relevance.tolist() == [2, 1, 0]
    assert ds.features.tolist() == [[0.5, 0, 1.25], [-0.03, 0, 0], [0, 4, 0]]


def test_feature_range(tmp_path):
    file = write(tmp_path, GOOD)
    assert load_letor(file, n_features=5).features.shape == (3, 5)
    assert load_letor(file, n_features=5).features[:, 3:].eq(0).all()
    with pytest.raises(LetorError, match=r"line 1: '3:1\.25' is not .* from 1 to n_features=2"):
        load_letor(file, n_features=2)


def test_ids_may_grow_from_block_to_block(tmp_path):
    lines = [f"{i % 3} qid:{i // 4} {i + 1}:{i + 0.5}\n".encode() for i in range(50)]
    with mock.patch.object(letor, "BLOCK_BYTES", 64):
        ds = load_letor(write(tmp_path, b"".join(lines)))
    assert torch.equal(ds.features, torch.diag(torch.arange(50) + 0.5))


def test_documents_without_features(tmp_path):
    ds = load_letor(write(tmp_path, b"1 qid:1\n0 qid:1\n"))
    assert ds.features.shape == (2, 0)
    assert load_letor(write(tmp_path, b"1 qid:1\n0 qid:2\n"), n_features=2).features.eq(0).all()


def test_names_of_documents_survive(tmp_path):
    text = b"1 qid:7 1:2 #docid = GX-1_a inc = 1 prob = 0.5\n0 qid:9 1:3 # no name\n"
    text += "2 qid:7 1:4 # x docid=\u00e9 2\n".encode()
    ds = load_letor(write(tmp_path, text))
    assert ds.documents.tolist() == ["GX-1_a", "\u00e9", ""]  # gathered with their query
    save_letor(ds, tmp_path / "again.txt.gz")
    again = load_letor(tmp_path / "again.txt.gz")
    assert again.fingerprint() == ds.replace(document_ids=[0, 1, 2]).fingerprint()
    assert load_letor(write(tmp_path, GOOD)).documents is None
    with pytest.raises(ValueError, match=r"the document name 'a b' cannot stand in LETOR text"):
        save_letor(ds.replace(documents=["a b", "c", "d"]), tmp_path / "x.txt")


def test_query_ids_may_be_texts(tmp_path):
    file = write(tmp_path, b"1 qid:GX_1 1:2\n0 qid:7 1:3\n2 qid:GX_1 1:4\n")
    ds = load_letor(file)
    assert (ds.query_ids.tolist(), ds.lengths.tolist()) == (["GX_1", "7"], [2, 1])
    save_letor(ds, tmp_path / "again.txt")
    assert load_letor(tmp_path / "again.txt").query_ids.tolist() == ["GX_1", "7"]
    numbers_first = write(tmp_path, b"1 qid:007 1:2\n0 qid:a 1:3\n", "mixed.txt")
    with pytest.raises(LetorError, match=r"line 2: 'qid:a' is not .* a whole number, as the file"):
        load_letor(numbers_first)
    for wrong in (b"1 qid:a:b 1:2\n", b"1 qid: 1:2\n"):
        with pytest.raises(LetorError, match=r"'qid:.* is not qid:<id> with a text"):
            load_letor(write(tmp_path, wrong))
    for name in ("a b", "a:b", "a#", ""):
        with pytest.raises(ValueError, match=f"the query id '{name}' cannot stand in LETOR text"):
            save_letor(make([2]).replace(query_ids=[name]), tmp_path / "x.txt")


def test_null_is_absent(tmp_path):
    ds = load_letor(write(tmp_path, b"1 qid:1 1:NULL 2:5 3:NULL#\n0 qid:1 1:2 4:NULL\n"))
    assert ds.features.tolist() == [[0, 5, 0, 0], [2, 0, 0, 0]]
    for wrong in (b"1:NULL.5", b"1:NULLs", b"1:null", b"NULL", b":NULL"):
        with pytest.raises(LetorError, match=f"line 1: '{wrong.decode()}' is not"):
            load_letor(write(tmp_path, b"1 qid:1 " + wrong + b"\n"))


def test_lightgbm_keeps_the_queries_in_a_file_beside(tmp_path):
    file = write(tmp_path, b"1 1:2 3:4\n# note\n0 2:1\n2\n0 1:9\n", "rank.train")
    with pytest.raises(LetorError, match=r"line 1: '1:2' is not qid:<id>"):
        load_letor(file)
    side = write(tmp_path, b"3\n1\n", "rank.train.query")
    ds = load_letor(file)
    assert (ds.query_ids.tolist(), ds.lengths.tolist()) == ([0, 1], [3, 1])
    assert ds.features.tolist() == [[2, 0, 4], [0, 1, 0], [0, 0, 0], [9, 0, 0]]
    for sizes, message in (
        (b"3\n2\n", "query: the counts add up to 5; .*rank.train has 4 documents"),
        (b"", "query: the counts add up to 0; .*rank.train has 4 documents"),
        (b"3\n0\n1\n", "query, entry 2: '0' is not the number of documents"),
        (b"3\nx\n", "query, entry 2: 'x' is not the number of documents"),
        (b"5\n-1\n", "query, entry 2: '-1' is not the number of documents"),
    ):
        side.write_bytes(sizes)
        with pytest.raises(LetorError, match=message):
            load_letor(file)
    side.write_bytes(b"3\n1\n")
    file.write_bytes(b"1 1:2\n1 qid:3 1:2\n0 1:3\n0 1:3\n")
    with pytest.raises(LetorError, match="line 2: 'qid:3' is not <id>:<value>"):
        load_letor(file)
    write(tmp_path, b"9\n", "both.query")  # ids in the lines come first
    assert load_letor(write(tmp_path, b"1 qid:7 1:2\n", "both")).query_ids.tolist() == [7]


def test_several_files_are_read_as_one(tmp_path):
    a = write(tmp_path, b"1 qid:7 1:2 #docid = A\n0 qid:9 1:3\n0 qid:7 1:1\n", "a.txt")
    b = write(tmp_path, gzip.compress(b"# b\n2 qid:8 3:5\n"), "b.txt.gz")
    ds = load_letor([a, b])
    assert (ds.query_ids.tolist(), ds.document_ids.tolist()) == ([7, 9, 8], [0, 2, 1, 3])
    assert ds.features.tolist() == [[2, 0, 0], [1, 0, 0], [3, 0, 0], [0, 0, 5]]
    assert ds.documents.tolist() == ["A", "", "", ""]
    assert ds.info["name"] == "a.txt + b.txt.gz"
    again = write(tmp_path, b"2 qid:5 3:5\n# x\n1 qid:9 1:1\n", "c.txt")
    with pytest.raises(LetorError, match=r"c\.txt: query 9 is in an earlier file"):
        load_letor([a, again])
    with pytest.raises(LetorError, match=r"b\.txt, line 1: 'x' is not a grade"):
        load_letor([a, write(tmp_path, b"x qid:1\n", "b.txt")])
    for name in ("d", "e"):
        write(tmp_path, b"1 1:1\n0 1:2\n", name)
    write(tmp_path, b"2\n", "d.query")
    with pytest.raises(LetorError, match=r"e, line 1: '1:1' is not qid:<id>"):
        load_letor([tmp_path / "d", tmp_path / "e"])
    write(tmp_path, b"1\n1\n", "e.query")
    both = load_letor([tmp_path / "d", tmp_path / "e"])
    assert (both.query_ids.tolist(), both.lengths.tolist()) == ([0, 1, 2], [2, 1, 1])


def test_one_stray_id_does_not_ask_for_gigabytes(tmp_path):
    """96 kB took 3.4 GB: 8,000 lines, a column for every id up to 99999."""
    lines = [b"1 qid:1 1:2\n"] * 8000
    lines[4321] = b"1 qid:1 99999:2\n"
    file = write(tmp_path, b"".join(lines))
    tracemalloc.start()
    with pytest.raises(
        LetorError, match=r"8,000 documents and a feature id of 99999 .* pass n_features"
    ):
        load_letor(file)
    assert tracemalloc.get_traced_memory()[1] < 5e7
    tracemalloc.stop()
    few = write(tmp_path, b"".join(lines[4300:4400]))
    assert load_letor(few).n_features == 99_999  # 40 MB for those who have them
    with mock.patch.object(letor, "MAX_VALUES", 10):
        assert load_letor(few, n_features=99_999).n_features == 99_999


# --- faults, each with file, line and text -------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"x qid:1 1:2", "x"),
        (b"-1 qid:1 1:2", "-1"),
        (b"nan qid:1 1:2", "nan"),
        (b"1e39 qid:1 1:2", "1e39"),
        (b"1 1:2 2:3", "1:2"),
        (b"1", ""),
        (b"1 qidx:5 1:2", "qidx:5"),
        (b"1 qid 1:2", "qid"),
        (b"1 qid:1.5 1:2", "qid:1.5"),
        (b"1 qid:1_0 1:2", "qid:1_0"),
        (b"1 qid: 1:2", "qid:"),
        (b"1 qid:9223372036854775808 1:2", "qid:9223372036854775808"),
        (b"1 qid:1 1:2:3", "1:2:3"),
        (b"1 qid:1 1:", "1:"),
        (b"1 qid:1 1:1_000", "1:1_000"),
        (b"1 qid:1 1:0x10", "1:0x10"),
        (b"1 qid:1 1:NaN", "1:NaN"),
        (b"1 qid:1 1:-inf", "1:-inf"),
        (b"1 qid:1 1:1e400", "1:1e400"),
        (b"1 qid:1 1:1e39", "1:1e39"),
        (b"1 qid:1 12", "12"),
        (b"1 qid:1 a:2", "a:2"),
        (b"1 qid:1 1_0:2", "1_0:2"),
        (b"1 qid:1 -1:2", "-1:2"),
        (b"1 qid:1 0:2", "0:2"),
        (b"1 qid:1 2:1 2:3", "2:3"),
        (b"1 qid:1 2:1 1:3", "1:3"),
        (b"1 qid:1 4294967297:1", "4294967297:1"),
        (b"1 qid:1 1:2 qid:2", "qid:2"),
        (b"1 qid:1 1:2\x00", "1:2\x00"),
        (b"\xef\xbb\xbf1 qid:1 1:2", "\ufeff1"),
    ],
)
def test_a_fault_names_file_line_word_and_what_was_meant(tmp_path, line, word):
    file = write(tmp_path, b"1 qid:1 1:2\n" * 9 + b"# comment\n" + line + b"\n1 qid:1 1:2\n")
    place = line.split().index(word.encode()) if word else 1
    meant = ("a grade: a number, zero or more, that float32", "qid:<id> with a whole number")
    meant = meant[place] if place < 2 else "<id>:<value> with ids that rise from 1 on and numbers"
    for block in (letor.BLOCK_BYTES, 16, 40):  # all lines in one block, one in each, some in each
        with mock.patch.object(letor, "BLOCK_BYTES", block), pytest.raises(LetorError) as caught:
            load_letor(file)
        assert str(caught.value).startswith(f"{file}, line 11: {word!r} is not {meant}")
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_right_lines_are_not_read_word_by_word(tmp_path):
    """A fault after four thousand right lines of 136 pairs once took half a minute."""
    right = b"1 qid:1" + b"".join(b" %d:2" % j for j in range(1, 51)) + b"\n"
    file = write(tmp_path, right * 200 + b"x qid:1\n")
    with (
        mock.patch.object(letor_lines, "parse", wraps=letor_lines.parse) as parse,
        pytest.raises(LetorError, match="line 201: 'x' is not a grade"),
    ):
        load_letor(file)
    assert parse.call_count < 210


def test_float64_accepts_what_float32_cannot_hold(tmp_path):
    file = write(tmp_path, b"1 qid:1 1:1e39\n")
    assert load_letor(file, dtype=torch.float64).features[0, 0] == 1e39


def test_a_long_line_is_quoted_in_part(tmp_path):
    with pytest.raises(LetorError) as caught:
        load_letor(write(tmp_path, b"1 qid:1 1:" + b"x" * 5000 + b"\n"))
    assert len(str(caught.value)) < 400


def test_empty_files(tmp_path):
    with pytest.raises(LetorError, match="the file is empty"):
        load_letor(write(tmp_path, b""))
    for content in (b"\n", b"# only this\n\n"):
        with pytest.raises(LetorError, match="the file has no documents, only comments"):
            load_letor(write(tmp_path, content))


def test_a_cut_plain_file(tmp_path):
    file = write(tmp_path, GOOD[:-3])  # ends in a number that looks whole
    with pytest.raises(LetorError, match="line 5: it has no line end; add one if"):
        load_letor(file)


@pytest.mark.parametrize(("suffix", "compress"), PACKED)
def test_a_cut_or_damaged_compressed_file(tmp_path, suffix, compress):
    content = compress(GOOD * 100)
    for cut in (len(content) - 1, len(content) // 2):
        with pytest.raises(LetorError, match="compressed file is"):
            load_letor(write(tmp_path, content[:cut], f"a{suffix}"))
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    with pytest.raises(LetorError):
        load_letor(write(tmp_path, bytes(damaged), f"a{suffix}"))


def test_a_missing_file_stays_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_letor(tmp_path / "absent.txt")


# --- fuzz: a second, independent reader ----------------------------------------------------------


def reference(data: bytes, largest: float):
    """LETOR by the book, slowly: a dict of queries in order of appearance, or ValueError."""
    text = data.decode("latin-1")
    if not text.endswith("\n"):
        raise ValueError("cut")
    number = r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"
    queries: dict[int | str, list] = {}
    whole = None
    for line in text.split("\n"):
        words = re.split("[ \t\r\x0b\x0c]+", line.split("#", 1)[0].strip(" \t\r\x0b\x0c"))
        if words == [""]:
            continue
        if not re.fullmatch(number, words[0], re.ASCII):
            raise ValueError("grade")
        if len(words) < 2 or not re.fullmatch(r"qid:[^:]+", words[1]):
            raise ValueError("qid")
        qid, row = words[1][4:], {}
        if whole is None:  # the first document decides whether ids are numbers or texts
            whole = re.fullmatch(r"[+-]?\d{1,18}", qid, re.ASCII) is not None
        if whole:
            if not re.fullmatch(r"[+-]?\d{1,18}", qid, re.ASCII):
                raise ValueError("qid")
            qid = int(qid)
        else:
            qid = qid.encode("latin-1").decode("utf-8", "backslashreplace")
        for word in words[2:]:
            if not re.fullmatch(rf"[+-]?\d+:({number}|NULL)", word, re.ASCII):
                raise ValueError("feature")
            index, value = word.split(":")
            if int(index) <= max(row, default=0) or int(index) > 999_999_999:
                raise ValueError("id")
            row[int(index)] = 0.0 if value == "NULL" else float(value)
        numbers = [float(words[0]), *row.values()]
        if any(not math.isfinite(v) or abs(v) > largest for v in numbers) or numbers[0] < 0:
            raise ValueError("number")
        queries.setdefault(qid, []).append((numbers[0], row))
    if not queries:
        raise ValueError("empty")
    rows = [row for documents in queries.values() for _, row in documents]
    if len(rows) * max(max(row, default=0) for row in rows) > max(2**24, 50 * len(data)):
        raise ValueError("size")
    return queries


def agree(ds: RankingDataset, queries) -> None:
    assert ds.query_ids.tolist() == list(queries)
    for query, documents in zip(ds, queries.values(), strict=True):
        assert query.relevance.tolist() == [grade for grade, _ in documents]
        for features, (_, row) in zip(query.features.tolist(), documents, strict=True):
            assert {j + 1: v for j, v in enumerate(features) if v} == {
                j: v for j, v in row.items() if v
            }


finite = st.floats(allow_nan=False, allow_infinity=False, width=64)
space = st.sampled_from([" ", "  ", "\t", " \t"])
end = st.sampled_from(["\n", " \n", "\r\n", " # note_1 2:3\n", "\n\n", "\n# qid:4\n"])


@st.composite
def lines(draw):
    ids = sorted(draw(st.sets(st.integers(1, 30), max_size=6)))
    form = draw(st.sampled_from(["{!r}", "{:.17g}", "{:.17e}", "{:+.17g}"]))
    words = [f"{draw(st.integers(0, 4))}", f"qid:{draw(st.integers(-3, 5))}"]
    words += [f"{j}:{form.format(draw(finite))}" for j in ids]
    return draw(space).join(words) + draw(end)


valid_files = st.lists(lines(), min_size=1, max_size=12).map(lambda ls: "".join(ls).encode())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz") / "data.txt"


@settings(deadline=None, max_examples=200)
@given(data=valid_files, block=st.sampled_from([8, 40, 1 << 20]))
def test_valid_files_equal_scikit_learn(scratch, data, block):
    scratch.write_bytes(data)
    with mock.patch.object(letor, "BLOCK_BYTES", block):
        ds = load_letor(scratch, dtype=torch.float64, n_features=30)
    x, y, qid = load_svmlight_file(str(scratch), n_features=30, zero_based=False, query_id=True)
    order = np.argsort([list(dict.fromkeys(qid)).index(q) for q in qid], kind="stable")
    np.testing.assert_array_equal(ds.features.numpy(), x.toarray()[order])
    np.testing.assert_array_equal(ds.relevance.numpy(), y[order])
    np.testing.assert_array_equal(ds.query_ids.repeat_interleave(ds.lengths).numpy(), qid[order])
    agree(ds, reference(data, math.inf))


def check(scratch, data, block):
    """Either both readers refuse, ours by its own error, or both give the same numbers."""
    scratch.write_bytes(data)
    try:
        expected = reference(data, 1.7976931348623157e308)
    except ValueError:
        expected = None
    with mock.patch.object(letor, "BLOCK_BYTES", block):
        if expected is None:
            with pytest.raises(LetorError):
                load_letor(scratch, dtype=torch.float64)
        else:
            agree(load_letor(scratch, dtype=torch.float64), expected)


# What tends to go wrong in a file, or tempts a reader.
PIECES = [b"", b":", b" ", b"\n", b"#", b"_", b"-", b"+", b".", b"e", b"0", b"9", b"nan", b"inf"]
PIECES += [
    b"qid:",
    b"\x00",
    b"\xff",
    b"\r",
    b"1e999",
    b"99999999999",
    b" 7:1",
    b"NULL",
    b":NULL ",
    b"x",
]


@st.composite
def damaged_files(draw):
    data = bytearray(draw(valid_files))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        width = draw(st.integers(0, 3))
        piece = draw(st.sampled_from(PIECES))
        data[at : at + width] = piece
    return bytes(data)


@settings(deadline=None, max_examples=400)
@given(data=damaged_files(), block=st.sampled_from([8, 1 << 20]))
def test_damaged_files_are_refused_or_read_right(scratch, data, block):
    check(scratch, data, block)


@settings(deadline=None, max_examples=200)
@given(
    data=st.one_of(
        st.binary(max_size=60),
        st.text("0123456789:.-+e_ #\nqidna", max_size=60).map(str.encode),
    )
)
def test_arbitrary_bytes_never_crash(scratch, data):
    check(scratch, data, 1 << 20)


# --- writing -------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=100)
@given(
    values=st.lists(finite, min_size=1, max_size=12),
    grades=st.lists(st.floats(0, 2.0**100, width=32), min_size=12, max_size=12),
    single=st.booleans(),
)
def test_round_trip_is_exact(scratch, values, grades, single):
    dtype = torch.float32 if single else torch.float64
    limit = torch.finfo(dtype).max
    features = torch.tensor(values, dtype=torch.float64).clamp(-limit, limit).to(dtype)[:, None]
    features = torch.cat([features, features.flip(0)], dim=1)
    n = len(features)
    ds = RankingDataset(
        features, torch.tensor(grades[:n]).to(dtype), [0, *range(n // 2 + 1, n + 1)]
    )
    save_letor(ds, scratch)
    again = load_letor(scratch, dtype=dtype, n_features=2)
    assert torch.equal(again.features, ds.features)
    assert torch.equal(again.relevance, ds.relevance)
    assert torch.equal(again.offsets, ds.offsets)
    assert torch.equal(again.query_ids, ds.query_ids)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_round_trip_keeps_the_last_bit(tmp_path, dtype):
    g = torch.Generator().manual_seed(0)
    features = torch.randn(500, 8, generator=g, dtype=dtype) * 10.0 ** torch.arange(-8, 8, 2)
    features = features.to(dtype)
    relevance = torch.rand(500, generator=g, dtype=dtype)
    save_letor(RankingDataset(features, relevance, [0, 200, 500]), tmp_path / "x.txt")
    again = load_letor(tmp_path / "x.txt", dtype=dtype, n_features=8)
    assert torch.equal(again.features, features)
    assert torch.equal(again.relevance, relevance)


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz"])
def test_writing_compressed_and_atomically(tmp_path, suffix):
    ds = make([2, 1, 3])
    file = tmp_path / f"out.txt{suffix}"
    save_letor(ds, file)
    assert torch.equal(load_letor(file, dtype=torch.float64).features, ds.features)
    assert [p.name for p in tmp_path.iterdir()] == [file.name]
    opened = load_svmlight_file(str(file)) if suffix != ".xz" else None
    if opened is not None:
        np.testing.assert_allclose(opened[0].toarray(), ds.features.numpy())


def test_two_queries_with_one_id_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="share an id"):
        save_letor(make([2, 1]).subset([0, 0]), tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []
