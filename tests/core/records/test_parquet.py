"""Dataclasses as Parquet rows: what goes in comes out; what cannot be a row is named."""

import subprocess
import sys
from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passnet.core.records.parquet import (
    ROW_GROUP_ROWS,
    FileLimits,
    Format,
    check_shards,
    write_shards,
)
from passnet.errors import InputError
from passnet.judge.suite.shipped import shipped_suites


@dataclass(frozen=True)
class Part:
    name: str
    size: int | None


@dataclass(frozen=True)
class Row:
    text: str
    number: int
    words: tuple[str, ...]
    kind: Literal["a", "b"]
    parts: tuple[Part, ...]
    share: float = 0.5


@dataclass(frozen=True)
class Optional:
    text: str | None


ROWS = Format(Row, "test rows")
SOME = [
    Row("x", 1, ("p", "q"), "a", (Part("m", 3), Part("n", None))),
    Row("", -(2**40), (), "b", (), 1e-9),
]


def test_rows_come_back_as_they_were(tmp_path):
    ROWS.write(tmp_path / "r.parquet", SOME)
    assert list(ROWS.read(tmp_path / "r.parquet")) == SOME
    ROWS.write(tmp_path / "again.parquet", SOME)
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "r.parquet").read_bytes()


def test_no_rows_are_a_file_too(tmp_path):
    ROWS.write(tmp_path / "r.parquet", [])
    assert list(ROWS.read(tmp_path / "r.parquet")) == []


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("kind", "c", "r.parquet: kind is 'c', and not one of a, b"),
        ("parts", "[{}]", "r.parquet: parts: not a valid"),
        ("number", None, "r.parquet: number is missing"),
    ],
)
def test_a_value_that_is_none_is_named(tmp_path, column, value, text):
    path = tmp_path / "r.parquet"
    ROWS.write(path, SOME)
    table = pq.read_table(path)
    index = table.schema.get_field_index(column)
    changed = pa.array([value] * len(table), table.schema.field(column).type)
    pq.write_table(table.set_column(index, table.schema.field(column), changed), path)
    with pytest.raises(InputError, match=text):
        list(ROWS.read(path))


def test_other_columns_are_refused(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, SOME)
    pq.write_table(pq.read_table(path).drop_columns(["share"]), path)
    with pytest.raises(InputError, match="not the columns of test rows"):
        list(ROWS.read(path))


def test_a_set_is_split_by_size_and_checked(tmp_path):
    rows = [Row(str(k), k, (), "a", ()) for k in range(5)]
    shards = write_shards(tmp_path, "part", rows, ROWS, lambda row: 150 * 2**20)
    assert [shard.num_rows for shard in shards] == [2, 2, 1]
    files = check_shards(tmp_path, shards, "manifest")
    assert [row for file in files for row in ROWS.read(file)] == rows
    write_shards(tmp_path, "part", rows[:1], ROWS, lambda row: 150 * 2**20)
    assert len(list(tmp_path.glob("part-*"))) == 1
    with pytest.raises(InputError, match=r"part-000\.parquet: not the file that manifest"):
        check_shards(tmp_path, shards, "manifest")


HASHED = Format(Row, "test rows", hashes=("text",))


def test_columns_of_hashes_have_no_dictionary(tmp_path):
    HASHED.write(tmp_path / "h.parquet", SOME)
    assert list(ROWS.read(tmp_path / "h.parquet")) == SOME
    group = pq.read_metadata(tmp_path / "h.parquet").row_group(0)
    assert [group.column(k).has_dictionary_page for k in range(2)] == [False, True]


def test_a_write_that_fails_leaves_nothing(tmp_path):
    with pytest.raises(OverflowError):
        ROWS.write(tmp_path / "r.parquet", [Row("", 2**70, (), "a", ())])
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(OSError):
        ROWS.write(tmp_path / "folder.parquet", SOME)
    assert [file.name for file in tmp_path.iterdir()] == ["folder.parquet"]


def test_a_damaged_file_is_named_wherever_it_is_damaged(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, [Row(f"text {k}" * 9, k, ("p",) * 9, "a", ()) for k in range(500)])
    data = path.read_bytes()
    refused = 0
    for start in range(0, len(data) - 8, 40):
        path.write_bytes(data[:start] + bytes(8) + data[start + 8 :])
        try:
            list(ROWS.read(path))
        except InputError as cause:
            assert str(path) in str(cause)
            refused += 1
    assert refused > 20


def test_a_list_with_a_part_that_is_missing_is_named(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, SOME)
    table = pq.read_table(path)
    words = pa.array([["p", None], []], table.schema.field("words").type)
    index = table.schema.get_field_index("words")
    pq.write_table(table.set_column(index, table.schema.field("words"), words), path)
    with pytest.raises(InputError, match="words has a part that is missing"):
        list(ROWS.read(path))


def test_a_text_that_rows_share_is_counted_for_each(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, [Row("x" * 10_000, 1, ("y" * 1000,) * 20, "a", ()) for _ in range(100)])
    assert path.stat().st_size < 100_000
    limited = Format(Row, "test rows", limits=FileLimits(batch_bytes=3_100_000))
    assert len(list(limited.read(path))) == 100
    limited = Format(Row, "test rows", limits=FileLimits(batch_bytes=2_900_000))
    with pytest.raises(InputError, match="100 rows have 300.... bytes, more than 2900000"):
        list(limited.read(path))
    limited = Format(Row, "test rows", limits=FileLimits(unpacked_bytes=2_900_000))
    with pytest.raises(InputError, match="unpacks to 300.... bytes, more than 2900000"):
        list(limited.read(path))


def test_an_encoding_that_makes_long_texts_of_few_bytes_is_not_read(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, [Row("a" * 1000, number, (), "a", ()) for number in range(20)])
    pq.write_table(
        pq.read_table(path),
        path,
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    )
    with pytest.raises(InputError, match="a page with encoding 7"):
        ROWS.check(path)


def test_what_would_unpack_to_too_much_is_not_unpacked(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, [Row(f"{k}" + "x" * 10_000, 1, (), "a", ()) for k in range(100)])
    limited = Format(Row, "test rows", limits=FileLimits(unpacked_bytes=1_000_000))
    with pytest.raises(InputError, match=r"unpacks to 10\d\d\d\d\d bytes, more than 1000000"):
        limited.check(path)
    limited = Format(Row, "test rows", limits=FileLimits(file_bytes=1000))
    with pytest.raises(InputError, match="larger than 1000 bytes, not read"):
        list(limited.read(path))


@pytest.mark.parametrize("words", ["", None])
def test_values_that_take_no_bytes_in_a_file_are_counted(tmp_path, words):
    path = tmp_path / "r.parquet"
    ROWS.write(path, [Row("", 1, (words,) * 100_000, "a", ())])
    assert path.stat().st_size < 10_000
    limited = Format(Row, "test rows", limits=FileLimits(unpacked_bytes=1_000_000))
    with pytest.raises(InputError, match=r"unpacks to 16\d\d\d\d\d bytes, more than 1000000"):
        limited.check(path)


@pytest.mark.parametrize("kind", range(1, 13))
def test_a_list_longer_than_its_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "r.parquet"
    ROWS.write(path, SOME * 50)
    data = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(0).column(0).dictionary_page_offset
    length = b"\xff" * 8 + b"\x3f"  # 2**62 - 1
    data[start : start + 11] = bytes([0x19, 0xF0 | kind]) + length  # field 1, a list of that kind
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"r\.parquet: damaged: ValueError: a list of 46116860"):
        ROWS.check(path)


def test_columns_that_share_their_pages_are_refused(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, [Row("x" * 1000, number, (), "a", ()) for number in range(20)])
    data = path.read_bytes()
    [size] = [pq.read_metadata(path).row_group(0).column(0).total_compressed_size]
    number = bytes([size << 1 & 127 | 128, size << 1 >> 7])
    assert data.count(b"\x16" + number) == 1, "the packed size, in the footer"
    path.write_bytes(data.replace(b"\x16" + number, b"\x16" + bytes([254, 127])))
    assert len(data) < 8191
    with pytest.raises(InputError, match="columns that are larger than the file"):
        ROWS.check(path)


def test_a_text_that_may_be_missing_comes_back_as_it_was(tmp_path):
    optional = Format(Optional, "test rows")
    optional.write(tmp_path / "r.parquet", [Optional("x"), Optional(None)])
    assert pq.read_table(tmp_path / "r.parquet")["text"].to_pylist() == ["x", None]
    assert list(optional.read(tmp_path / "r.parquet")) == [Optional("x"), Optional(None)]


def test_many_rows_are_groups_that_cores_share(tmp_path):
    rows = SOME * (ROW_GROUP_ROWS // len(SOME) + 1)
    ROWS.write(tmp_path / "r.parquet", rows)
    assert pq.read_metadata(tmp_path / "r.parquet").num_row_groups == 2
    assert list(ROWS.read(tmp_path / "r.parquet")) == rows


def test_lists_that_outgrow_their_dictionary_are_read(tmp_path):
    words = [tuple(f"{k} {n} " + "x" * 500 for n in range(9)) for k in range(999)]
    rows = [Row("", k, row_words, "a", ()) for k, row_words in enumerate(words)]
    ROWS.write(tmp_path / "r.parquet", rows)
    assert list(ROWS.read(tmp_path / "r.parquet")) == rows


def test_a_footer_that_contradicts_itself_is_refused_and_ends_no_process(tmp_path):
    data = bytearray(shipped_suites()["demo-small"].read_bytes())
    data[11308] ^= 1 << 6  # pyarrow's classes for metadata abort on it
    (tmp_path / "s.parquet").write_bytes(data)
    program = (
        "import sys; from passnet.judge.suite.suite import load_suite; load_suite(sys.argv[1])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "s.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "s.parquet: damaged: " in done.stderr
