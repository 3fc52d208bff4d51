"""The unpacked size of a Parquet file's pages, by its footer and their headers, before it is read.

No class of pyarrow shows the footer: those abort the process if statistics contradict the schema.
"""

from collections.abc import Iterator
from itertools import chain, islice
from mmap import mmap
from typing import Any

_ENCODINGS = {5: {2: (0, 2, 8), 3: (3,), 4: (3,)}, 7: {2: (0, 2)}, 8: {4: (0, 2, 8)}}
"""Allowed encodings of each kind of page, by field: plain, dictionary and runs. The others build a
long text from the previous one and a few bytes."""

MAX_PAGES = 2**16
"""Most pages of a file; one holds a megabyte or 20,000 values."""

VALUE_BYTES = 16
"""Least memory of a value, even an empty one: an index, an offset and a pointer."""


MAX_FOOTER_BYTES = 2**22
"""Largest footer to read; those of the files that ship with passnet have up to 8 KB."""

MAX_HEADER_BYTES = 2**16
"""Largest page header to read; its statistics hold up to four values of 4 KB each."""

_FIXED_BYTES = {1: 1, 2: 1, 3: 1, 7: 8}
"""Bytes of a list's item, for the kinds of items of one size: truth values, bytes and doubles."""


def unpacked_bytes(data: bytes | mmap) -> int:
    """Return the bytes that all pages of a file unpack to, by the page headers.

    Readers allocate by these headers, not by the footer. Each value counts for `VALUE_BYTES` more,
    as a run of equal values is packed into a few bytes. `data` is the whole file. What does not fit
    together is a ValueError, LookupError or TypeError, after time in proportion to the file's size.

    Source:
        The Parquet format, parquet.thrift: `FileMetaData` (field 4: row groups), `RowGroup` (1:
        columns), `ColumnChunk` (3: its metadata), `ColumnMetaData` (5: number of values; 7: packed
        size; 9 and 11: where data and dictionary pages begin), `PageHeader` (2 and 3: sizes
        unpacked, packed; 5, 7 and 8: headers of data and dictionary pages, whose field 1 is the
        number of values).
    """
    size = int.from_bytes(data[-8:-4], "little")
    if size > min(MAX_FOOTER_BYTES, len(data) - 8):
        raise ValueError(f"a footer of {size} bytes")
    footer, end = _thrift_struct(data[-8 - size : -8], 0)
    if end != size:
        raise ValueError("a footer that ends early")
    chunks = [chunk[3] for group in footer[4] for chunk in group[1]]
    sizes = [chunk[7] for chunk in chunks if chunk[5]]
    if min(sizes, default=0) < 0 or sum(sizes) > len(data):  # one page could be read many times
        raise ValueError("columns that are larger than the file")
    pages = chain.from_iterable(_page_sizes(data, chunk) for chunk in chunks)
    total = sum(islice(pages, MAX_PAGES))
    if next(pages, None) is not None:
        raise ValueError(f"more than {MAX_PAGES} pages")
    return total


def _page_sizes(data: bytes | mmap, chunk: dict[int, Any]) -> Iterator[int]:
    """Yield the unpacked size of each page of a column chunk."""
    if not chunk[5]:  # then it is not read
        return
    offset = min(chunk[9], chunk.get(11) or chunk[9])
    end = offset + chunk[7]
    while offset < end:
        header, size = _thrift_struct(data[offset : offset + MAX_HEADER_BYTES], 0)
        offset += size
        for kind in _ENCODINGS.keys() & header.keys():
            for field, allowed in _ENCODINGS[kind].items():
                if header[kind].get(field) not in allowed:
                    raise ValueError(f"a page with encoding {header[kind].get(field)}")
        num_values = [header[kind][1] for kind in (5, 7, 8) if kind in header]
        if min(header[2], header[3], *num_values, offset) < 0:
            raise ValueError("a page of negative size")
        yield header[2] + VALUE_BYTES * sum(num_values)
        offset += header[3]
    if offset != end:
        raise ValueError("pages that do not fill their column")


def _thrift_struct(data: bytes, offset: int) -> tuple[dict[int, Any], int]:
    """Read a struct in Thrift's compact protocol; return its fields, and its end."""
    fields: dict[int, Any] = {}
    number = 0
    while data[offset]:
        step, kind = divmod(data[offset], 16)
        if not step:
            raise ValueError("a field number that is not used here")
        number += step
        if kind in (1, 2):  # truth values are part of the kind
            fields[number], offset = kind == 1, offset + 1
        else:
            fields[number], offset = _thrift_value(data, offset + 1, kind)
    return fields, offset + 1


def _thrift_value(data: bytes, offset: int, kind: int) -> tuple[Any, int]:
    """Read a value of a kind; a text is its length, a list holds only its structs."""
    if kind == 12:
        return _thrift_struct(data, offset)
    if kind in (4, 5, 6, 8):  # whole numbers, and texts after their length
        number, offset = _varint(data, offset)
        if kind == 8:
            return number, offset + number
        return (number >> 1) ^ -(number & 1), offset
    if kind == 3:
        return data[offset], offset + 1
    if kind == 7:
        return None, offset + 8
    if kind != 9:
        raise ValueError(f"a field of kind {kind}")
    length, kind = divmod(data[offset], 16)
    offset += 1
    if length == 15:
        length, offset = _varint(data, offset)
    # Every item has a byte at least, so that a list is never longer than the bytes that are left.
    if length * _FIXED_BYTES.get(kind, 1) > len(data) - offset:
        raise ValueError(f"a list of {length} items")
    if kind in _FIXED_BYTES:
        return [], offset + length * _FIXED_BYTES[kind]
    values = []
    for _ in range(length):
        value, offset = _thrift_value(data, offset, kind)
        if kind == 12:
            values.append(value)
    return values, offset


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    value = shift = 0
    while data[offset] > 127:
        value |= (data[offset] & 127) << shift
        shift += 7
        offset += 1
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
    return value | data[offset] << shift, offset + 1
