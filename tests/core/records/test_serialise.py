"""Records: strict when read, finite when written, and whole after a kill."""

import gzip
import math
import stat
from dataclasses import dataclass
from pathlib import Path

import pytest

from passnet.core.records.serialise import (
    MAX_LINE_BYTES,
    MAX_UNPACKED_BYTES,
    LineWriter,
    decode,
    drop_torn_line,
    encode,
    has_lines,
    pack_lines,
    packed,
    read_json,
    read_lines,
    replacing,
    write_json,
    write_text,
)
from passnet.errors import InputError


@dataclass(frozen=True)
class Inner:
    values: tuple[float, ...] = ()
    by_name: dict[str, float] | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    number: int
    inner: Inner = Inner()
    speedup: float | None = None


RECORD = Outer("ä\n", 3, Inner((1.5, -0.0), {"a": 2.0}), None)


def test_a_record_is_read_back_equal_and_is_one_line():
    data = encode(RECORD)
    assert decode(data, Outer) == RECORD == decode(data.decode(), Outer)
    assert b"\n" not in data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"name": "x"}',
        b'{"name": "x", "number": "3"}',
        b'{"name": "x", "number": 3.5}',
        b'{"name": "x", "number": true}',
        b'{"name": null, "number": 3}',
        b'{"name": "x", "number": 3, "speedup": "1"}',
        b'{"name": "x", "number": 3, "speedup": NaN}',
        b'{"name": "x", "number": 3, "inner": {"values": [null]}}',
        b'{"name": "x", "number": 3} {}',
        b'{"name": "\xff", "number": 3}',
        b'{"name": "x", "number": 3, "other": ' + b"[" * 99_999,
    ],
)
def test_what_is_no_valid_record_is_refused_with_its_place(data: bytes):
    with pytest.raises(InputError, match="^results: not a valid Outer: "):
        decode(data, Outer, "results")


def test_a_wrong_field_is_named():
    with pytest.raises(InputError, match=r"\$\.inner\.values\[1\]"):
        decode(b'{"name": "x", "number": 3, "inner": {"values": [1, "a"]}}', Outer)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "field, make",
    [
        ("Outer.speedup", lambda number: Outer("x", 1, speedup=number)),
        (r"Outer.inner.values\[1\]", lambda number: Outer("x", 1, Inner((0.0, number)))),
        ("Outer.inner.by_name.a", lambda number: Outer("x", 1, Inner((), {"a": number}))),
    ],
)
def test_what_is_not_finite_is_refused_with_its_field(number: float, field: str, make, tmp_path):
    record = make(number)
    with pytest.raises(ValueError, match=f"^{field} is {number}; a record holds None"):
        encode(record)
    with pytest.raises(ValueError, match=f"is {number}"):
        write_json(tmp_path / "record.json", record)
    assert list(tmp_path.iterdir()) == []


def test_lines_are_appended_and_read_in_order(tmp_path: Path):
    path = tmp_path / "new" / "trials.jsonl"
    records = [Outer("x", number) for number in range(3)]
    for part in (records[:2], records[2:]):
        with LineWriter(path) as writer:
            for record in part:
                writer.write(record)
    assert list(read_lines(path, Outer)) == records


def test_packed_lines_read_as_before_and_are_unpacked_where_a_writer_goes_on(tmp_path: Path):
    path = tmp_path / "trials.jsonl"
    with LineWriter(path) as writer:
        writer.write(RECORD)
    before = path.read_bytes()
    pack_lines(path)
    content = packed(path).read_bytes()
    assert not path.exists() and has_lines(path)
    assert list(read_lines(path, Outer)) == [RECORD]
    with LineWriter(path):
        assert path.read_bytes() == before and not packed(path).exists()
    pack_lines(path)
    assert packed(path).read_bytes() == content, "equal lines give equal bytes"


@pytest.mark.parametrize("damage", [slice(0, -9), slice(0, 12), slice(4, None)])
def test_a_damaged_copy_is_an_input_error_that_names_it(tmp_path: Path, damage: slice):
    path = tmp_path / "trials.jsonl"
    with LineWriter(path) as writer:
        writer.write(RECORD)
    pack_lines(path)
    packed(path).write_bytes(packed(path).read_bytes()[damage])
    with pytest.raises(InputError, match="trials"):
        list(read_lines(path, Outer))


def test_a_line_is_on_disk_when_write_returns(tmp_path: Path):
    with LineWriter(tmp_path / "lines") as writer:
        writer.write(RECORD)
        assert list(read_lines(tmp_path / "lines", Outer)) == [RECORD]


def test_a_refused_record_leaves_no_part_of_a_line(tmp_path: Path):
    path = tmp_path / "lines"
    with LineWriter(path) as writer:
        writer.write(RECORD)
        with pytest.raises(ValueError, match="Outer.speedup"):
            writer.write(Outer("x", 1, speedup=math.nan))
    assert path.read_bytes() == encode(RECORD) + b"\n"


@pytest.mark.parametrize("torn", [b"{", b'{"name": "x", "number": 3}', b"\xff\x00"])
def test_a_torn_last_line_is_cut_off_by_the_next_writer(tmp_path: Path, torn: bytes):
    path = tmp_path / "lines"
    path.write_bytes(encode(RECORD) + b"\n" + torn)
    with LineWriter(path) as writer:
        writer.write(Outer("next", 4))
    assert list(read_lines(path, Outer)) == [RECORD, Outer("next", 4)]


@pytest.mark.parametrize("torn", [b"{", b'{"name": "x", "number": 3}', b"\xff\x00"])
def test_a_reader_leaves_a_torn_last_line_out_and_the_file_alone(tmp_path: Path, torn: bytes):
    path = tmp_path / "lines"
    data = encode(RECORD) + b"\n" + torn
    path.write_bytes(data)
    assert list(read_lines(path, Outer, skip_torn=True)) == [RECORD]
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    "data, expected", [(b"a", b""), (b"", b""), (b"a\nb", b"a\n"), (b"a\n", b"a\n")]
)
def test_what_follows_the_last_newline_is_cut_off(tmp_path: Path, data: bytes, expected: bytes):
    path = tmp_path / "lines"
    path.write_bytes(data)
    drop_torn_line(path)
    assert path.read_bytes() == expected


def test_a_file_that_is_not_there_has_no_torn_line(tmp_path: Path):
    drop_torn_line(tmp_path / "missing")
    assert list(tmp_path.iterdir()) == []


def test_a_bad_line_is_named_by_its_number(tmp_path: Path):
    path = tmp_path / "lines"
    path.write_bytes(encode(RECORD) + b"\n\n" + b'{"name": 1}\n')
    lines = read_lines(path, Outer)
    assert next(lines) == RECORD
    with pytest.raises(InputError, match=f"^{path}:3: not a valid Outer"):
        next(lines)


def test_a_missing_file_is_an_input_error(tmp_path: Path):
    with pytest.raises(InputError, match="cannot read .*missing: No such file"):
        list(read_lines(tmp_path / "missing", Outer))
    with pytest.raises(InputError, match="cannot read .*missing: No such file"):
        read_json(tmp_path / "missing", Outer)


def test_a_json_file_is_replaced_whole(tmp_path: Path):
    path = tmp_path / "record.json"
    write_json(path, Outer("first", 1))
    write_json(path, RECORD)
    assert read_json(path, Outer) == RECORD
    assert list(tmp_path.iterdir()) == [path]
    path.write_text("{")
    with pytest.raises(InputError, match=f"^{path}: not a valid Outer"):
        read_json(path, Outer)


def test_a_packed_file_that_unpacks_to_too_much_is_not_read(tmp_path: Path):
    path = tmp_path / "lines"
    line = encode(RECORD) + b" " * (MAX_LINE_BYTES - 1000) + b"\n"
    with gzip.open(packed(path), "wb", compresslevel=1) as stream:
        for _ in range(MAX_UNPACKED_BYTES // len(line) + 1):
            stream.write(line)
    with pytest.raises(InputError, match=r"lines.gz: unpacks to more than \d+ bytes, not read"):
        list(read_lines(path, Outer))


def test_a_file_is_replaced_by_several_at_a_time_and_each_content_is_whole(tmp_path: Path):
    path = tmp_path / "record.json"
    with replacing(path) as first:
        first.write_text("first")
        with replacing(path) as second:
            second.write_text("second")
        assert path.read_text() == "second"
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_a_planted_link_is_not_followed_and_the_file_has_its_mode(tmp_path: Path):
    path, victim = tmp_path / "record.json", tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "record.json.partial").symlink_to(victim)
    path.symlink_to(victim)
    write_text(path, "text")
    assert victim.read_text() == "precious"
    assert path.read_text() == "text" and not path.is_symlink()
    with replacing(path, 0o600) as partial:
        partial.write_text("secret")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
