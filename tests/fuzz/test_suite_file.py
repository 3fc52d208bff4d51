"""Any file as a suite: a Suite or a SuiteError, and no more memory than stated."""

from __future__ import annotations

import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from passnet.errors import SuiteError
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import SUITES, Suite, load_suite
from tests.fuzz.hostile import ARGUMENTS, fuzz, nothing_runs, peak_of

MAX_FILE_BYTES = SUITES.limits.file_bytes
MAX_SUITE_BYTES = SUITES.limits.unpacked_bytes
DEMO = shipped_suites()["demo-small"]
FOLDER = Path(tempfile.mkdtemp())
POOL = pa.default_memory_pool()
COUNTED = pa.proxy_memory_pool(POOL)  # in which only the refused files are read, so that it counts
MEMORY = 2**24
"""What a refusal may take, whatever the file would unpack to."""


def load(data: bytes) -> Suite | None:
    """The suite that the bytes of a file hold, None if they are refused."""
    path = FOLDER / "fuzzed.parquet"
    path.write_bytes(data)
    try:
        return load_suite(str(path))
    except SuiteError as error:
        assert str(error).startswith((f"{path}: ", "suite fuzzed ", "task "))
        return None


def bytes_of(table: pa.Table, **options: Any) -> bytes:
    """The file of a table."""
    stream = io.BytesIO()
    pq.write_table(table, stream, **({"compression": "zstd"} | options))
    return stream.getvalue()


def of_rows(rows: list[dict[str, Any]], **options: Any) -> bytes:
    """A file of rows under the schema of a suite."""
    return bytes_of(pa.Table.from_pylist(rows, pq.read_schema(DEMO)), **options)


ROWS = pq.read_table(DEMO).to_pylist()[:4]
TEXTS = [key for key in ROWS[0] if key != "op_sequence"]
NUMBERS = st.sampled_from([-1, 0, 2**31, 2**60, 2**64, 10**30, 1e308, "x", None, [], [1], True])


@st.composite
def json_changes(draw: st.DrawFn, text: str) -> str:
    """JSON with some of its values replaced."""
    value = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        if isinstance(value, list) and value:
            fields = draw(st.sampled_from(value))
        else:
            fields = value
        if not isinstance(fields, dict) or not fields:
            break
        key = draw(st.sampled_from([*sorted(fields), "shape", "data", "keys", "name", "other"]))
        fields[key] = draw(NUMBERS | st.lists(NUMBERS, max_size=3) | st.sampled_from(ARGUMENTS))
    try:
        return json.dumps(value)
    except ValueError:
        return "[]"


@st.composite
def changed_rows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of a suite with fields swapped, cut, replaced, left out, or with changed JSON."""
    rows = [dict(row) for row in ROWS]
    for _ in range(draw(st.integers(1, 3))):
        row = draw(st.sampled_from(rows))
        key = draw(st.sampled_from(TEXTS))
        kind = draw(st.sampled_from(["swap", "cut", "hostile", "null", "other row", "json"]))
        if kind == "swap":
            second_key = draw(st.sampled_from(TEXTS))
            row[key], row[second_key] = row[second_key], row[key]
        elif kind == "cut":
            row[key] = (row[key] or "")[: draw(st.integers(0, 60))]
        elif kind == "null":
            row[key] = None
        elif kind == "other row":
            row[key] = draw(st.sampled_from(rows))[key]
        elif kind == "json":
            row["tensors"] = draw(json_changes(draw(st.sampled_from(ROWS))["tensors"]))
        else:
            hostile = draw(st.text(max_size=9) | st.sampled_from(ARGUMENTS))
            row[key] = hostile.replace("\ud800", "")
    return rows


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """What pyarrow imports on its first use is imported before the watch."""
    load(of_rows(ROWS))


def test_what_the_changes_start_from_is_a_suite():
    suite = load(of_rows(ROWS))
    assert suite is not None and sum(len(task.graphs) for task in suite.tasks) == len(ROWS)


@fuzz(150, changed_rows())
def test_changed_rows_are_a_suite_or_refused(rows: list[dict[str, Any]]):
    data = of_rows(rows)
    with nothing_runs_but_writing():
        suite = load(data)
    for task in suite.tasks if suite else ():
        for suite_graph in task.graphs:
            names = [param.name for param in suite_graph.graph.program.params]
            assert [spec.name for spec in suite_graph.graph.tensors] == names


def nothing_runs_but_writing() -> Any:
    """The watch; the file that `load` writes is written before."""
    (FOLDER / "fuzzed.parquet").write_bytes(b"")
    return nothing_runs(may_write=True)


PLAIN = {
    "zstd": of_rows(ROWS),
    "plain": of_rows(ROWS, compression="none", use_dictionary=False),
    "version 2": of_rows(ROWS, data_page_version="2.0", use_dictionary=["task"]),
}


@st.composite
def flipped(draw: st.DrawFn) -> bytes:
    """The bytes of a suite with some bits flipped, most of them in the footer, or cut off."""
    data = bytearray(PLAIN[draw(st.sampled_from(sorted(PLAIN)))])
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.sampled_from([0, len(data) - 5000, len(data) - 1000]))
        data[draw(st.integers(max(0, start), len(data) - 1))] ^= 1 << draw(st.integers(0, 7))
    if draw(st.integers(0, 4)) == 0:
        del data[draw(st.integers(0, len(data) - 1)) :]
    return bytes(data)


@fuzz(300, flipped() | st.binary(max_size=50).map(lambda inner: b"PAR1" + inner + b"PAR1"))
def test_flipped_bits_are_a_suite_or_refused(data: bytes):
    _, peak = peak_of(lambda: load(data))
    assert peak < MEMORY


def refusal(data: bytes, message: str) -> None:
    """The file is refused with this message, without unpacking it."""
    path = FOLDER / "bomb.parquet"
    path.write_bytes(data)

    def refused() -> None:
        with pytest.raises(SuiteError, match=message):
            load_suite(str(path))

    pa.set_memory_pool(COUNTED)
    try:
        assert peak_of(refused)[1] < MEMORY + len(data)
    finally:
        pa.set_memory_pool(POOL)
    assert COUNTED.max_memory() < MEMORY + len(data)


def lying(data: bytes) -> bytes:
    """The file with every size that its footer gives for what is unpacked made small."""
    changed = bytearray(data)
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    meta = pq.read_metadata(pa.BufferReader(data))
    for index in range(meta.num_columns):
        chunk = meta.row_group(0).column(index)
        size = varint(chunk.total_uncompressed_size * 2)
        packed = varint(chunk.total_compressed_size * 2)
        offset = data.find(b"\x16" + size + b"\x16" + packed, footer)
        if offset > 0:
            changed[offset + 1 : offset + 1 + len(size)] = b"\x80" * (len(size) - 1) + b"\x00"
    meta = pq.read_metadata(pa.BufferReader(bytes(changed)))
    sizes = [meta.row_group(0).column(n).total_uncompressed_size for n in range(meta.num_columns)]
    assert sum(sizes) < MAX_SUITE_BYTES < sum_unpacked(data)
    return bytes(changed)


def sum_unpacked(data: bytes) -> int:
    """What a file unpacks to by its footer."""
    group = pq.read_metadata(pa.BufferReader(data)).row_group(0)
    return sum(group.column(n).total_uncompressed_size for n in range(group.num_columns))


def varint(number: int) -> bytes:
    """A whole number in Thrift's compact protocol."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


@pytest.fixture(scope="module")
def bomb() -> bytes:
    """A file of kilobytes whose programs unpack to more than the limit, each its own text."""
    size = MAX_SUITE_BYTES // 4 + 1
    rows = [ROWS[0] | {"name": str(n), "program": str(n) + "#" * size} for n in range(4)]
    data = of_rows(rows, use_dictionary=False, write_statistics=False)
    assert len(data) < 2**18
    return data


def test_a_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(bomb: bytes):
    refusal(bomb, f"unpacks to [0-9]+ bytes, more than {MAX_SUITE_BYTES}")


def test_a_footer_that_denies_it_changes_nothing(bomb: bytes):
    refusal(lying(bomb), f"unpacks to [0-9]+ bytes, more than {MAX_SUITE_BYTES}")


def test_a_text_that_many_rows_share_counts_for_each():
    rows = [ROWS[0] | {"name": str(n), "program": "#" * 2**20} for n in range(300)]
    data = of_rows(rows)
    assert len(data) < 2**16 and sum_unpacked(data) < 2**22
    refusal(data, f"unpacks to [0-9]+ bytes, more than {MAX_SUITE_BYTES}")


def test_too_many_rows_are_refused():
    columns = [pa.nulls(MAX_SUITE_BYTES // 2**7, field.type) for field in pq.read_schema(DEMO)]
    data = bytes_of(pa.Table.from_arrays(columns, schema=pq.read_schema(DEMO)))
    assert len(data) < 2**20
    refusal(data, f"unpacks to [0-9]+ bytes, more than {MAX_SUITE_BYTES}")


def test_too_many_ops_are_refused():
    ops = pa.ListArray.from_arrays(
        [0, MAX_SUITE_BYTES // 2**4],
        pa.DictionaryArray.from_arrays(np.zeros(MAX_SUITE_BYTES // 2**4, np.int8), [""]),
    )
    columns = [pa.array([value]) for value in (ROWS[0] | {"op_sequence": None}).values()]
    columns[list(ROWS[0]).index("op_sequence")] = ops
    data = bytes_of(pa.Table.from_arrays(columns, list(ROWS[0])).cast(pq.read_schema(DEMO)))
    assert len(data) < 2**20
    refusal(data, f"unpacks to [0-9]+ bytes, more than {MAX_SUITE_BYTES}")


def test_a_large_file_is_not_read():
    path = FOLDER / "large.parquet"
    with path.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(SuiteError, match=f"larger than {MAX_FILE_BYTES} bytes, not read"):
        load_suite(str(path))


def test_a_version_that_is_no_text_is_refused():
    table = pq.read_table(DEMO).replace_schema_metadata({b"passnet_schema_version": b"\xff"})
    refusal(bytes_of(table), "schema version ")


def test_text_that_is_not_utf_8_is_refused():
    data = of_rows(ROWS, compression="none", use_dictionary=False, write_statistics=False)
    refusal(data.replace(b"import torch", b"import \xfforch"), "damaged: ")


def changed_tensors(change: tuple[str, str]) -> bytes:
    """A file whose first row has other specs; their fingerprints are not what is tested."""
    row = dict(ROWS[0])
    row["tensors"] = re.sub(*change, row["tensors"], count=1)
    assert row["tensors"] != ROWS[0]["tensors"]
    return of_rows([row])


CHANGES = {
    "a negative size": ((r'"shape":\[', '"shape":[-1,'), "expected a list of sizes"),
    "a huge shape": ((r'"shape":\[', f'"shape":[{2**60},'), "more than 1099511627776 elements"),
    "a dtype that is none": ((r'"dtype":"\w+"', '"dtype":"load"'), "dtype is 'load'|dtype is load"),
    "keys that are none": ((r'"keys":\[', '"keys":["__class__",'), "keys are"),
    "an order of its own": ((r"\[(\{.*?\}),(\{.*?\})", r"[\2,\1"), "and their specs differ"),
    "one spec more": ((r"\[(\{)(.*?\})", r'[\1\2,\1\2'), "and their specs differ"),
}  # fmt: skip


@pytest.mark.parametrize("claim", CHANGES)
def test_specs_are_refused_for(claim: str):
    change, message = CHANGES[claim]
    refusal(changed_tensors(change), message)
