"""The unpacked size of a Parquet file's pages, by their headers, before anything is unpacked."""

from mmap import mmap
from typing import Any

import pyarrow.parquet as pq

_ENCODINGS = {5: {2: (0, 2, 8), 3: (3,), 4: (3,)}, 7: {2: (0, 2)}, 8: {4: (0, 2, 8)}}
"""Allowed encodings of each kind of page, by field: plain, dictionary and runs. The others build a
long text from the previous one and a few bytes."""

VALUE_BYTES = 16
"""Least memory of a value, even an empty one: an index, an offset and a pointer."""


def unpacked_bytes(data: bytes | mmap, chunk: pq.ColumnChunkMetaData) -> int:
    """Return the bytes that a column chunk's pages unpack to, by the page headers.

    Readers allocate by these headers, not by the footer. Each value counts for `VALUE_BYTES` more,
    as a run of equal values is packed into a few bytes. `data` is the whole file. Pages that do not
    fit the chunk are a ValueError or IndexError.

    Source:
        The Parquet format, `PageHeader` in parquet.thrift (fields 2 and 3: sizes unpacked, packed;
        5, 7 and 8: headers of data and dictionary pages, whose field 1 is the number of values).
    """
    if not chunk.num_values:  # then it is not read
        return 0
    offset = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        offset = min(offset, chunk.dictionary_page_offset)
    end = offset + chunk.total_compressed_size
    total = 0
    while offset < end:
        header, offset = _thrift_struct(data, offset)
        for kind in _ENCODINGS.keys() & header.keys():
            for field, allowed in _ENCODINGS[kind].items():
                if header[kind].get(field) not in allowed:
                    raise ValueError(f"a page with encoding {header[kind].get(field)}")
        num_values = [header[kind][1] for kind in (5, 7, 8) if kind in header]
        if min(header[2], header[3], *num_values, offset) < 0:
            raise ValueError("a page of negative size")
        total += header[2] + VALUE_BYTES * sum(num_values)
        offset += header[3]
    if offset != end:
        raise ValueError("pages that do not fill their column")
    return total


def _thrift_struct(data: bytes | mmap, offset: int) -> tuple[dict[int, Any], int]:
    """Read a struct in Thrift's compact protocol; return its integers and structs, and its end."""
    fields: dict[int, Any] = {}
    number = 0
    while data[offset]:
        step, kind = divmod(data[offset], 16)
        offset += 1
        if not step:
            raise ValueError("a field number that is not used here")
        number += step
        if kind == 12:
            fields[number], offset = _thrift_struct(data, offset)
        elif kind in (4, 5, 6, 8):  # whole numbers, and texts after their length
            value, offset = _varint(data, offset)
            fields[number] = (value >> 1) ^ -(value & 1)
            offset += value if kind == 8 else 0
        elif kind not in (1, 2):  # truth values are part of the kind
            raise ValueError(f"a field of kind {kind}")
    return fields, offset + 1


def _varint(data: bytes | mmap, offset: int) -> tuple[int, int]:
    value = shift = 0
    while data[offset] > 127:
        value |= (data[offset] & 127) << shift
        shift += 7
        offset += 1
    return value | data[offset] << shift, offset + 1
