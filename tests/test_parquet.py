"""Dataclasses as Parquet rows: what goes in comes out; what cannot be a row is named."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from passnet.errors import InputError
from passnet.parquet import Format, check_shards, write_shards


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
    place = table.schema.get_field_index(column)
    changed = pa.array([value] * len(table), table.schema.field(column).type)
    pq.write_table(table.set_column(place, table.schema.field(column), changed), path)
    with pytest.raises(InputError, match=text):
        list(ROWS.read(path))


def test_other_columns_are_refused(tmp_path):
    path = tmp_path / "r.parquet"
    ROWS.write(path, SOME)
    pq.write_table(pq.read_table(path).drop_columns(["share"]), path)
    with pytest.raises(InputError, match="not the columns of test rows"):
        list(ROWS.read(path))


def test_a_set_is_split_by_size_and_checked(tmp_path, monkeypatch):
    monkeypatch.setattr("passnet.parquet.SHARD_TEXT_BYTES", 10)
    rows = [Row(str(k), k, (), "a", ()) for k in range(5)]
    shards = write_shards(tmp_path, "part", rows, ROWS, lambda row: 6)
    assert [item.num_rows for item in shards] == [2, 2, 1]
    files = check_shards(tmp_path, shards, "manifest")
    assert [row for file in files for row in ROWS.read(file)] == rows
    write_shards(tmp_path, "part", rows[:1], ROWS, lambda row: 6)
    assert len(list(tmp_path.glob("part-*"))) == 1
    with pytest.raises(InputError, match=r"part-000\.parquet: not the file that manifest"):
        check_shards(tmp_path, shards, "manifest")
