"""Changes of bytes by a seed: flipped bits, cut and doubled pieces, hostile words and numbers."""

import json
import re
from random import Random

from tests.fuzz.hostile import ARGUMENTS, LINES

WORDS = [
    *(text.encode(errors="surrogatepass") for text in [*ARGUMENTS, *LINES]),
    *(b"null", b"true", b"-1", b"0", b"1e999", b"NaN", b"9" * 5000, b"[" * 100_000, b'"' * 3),
    *(b"\x1b[2J", b"\xff\xfe", b"\xed\xa0\x80", b'"\\ud800"', b"\x00", b"\n" * 1000, b"{}", b"[]"),
    *(b"a" * 300, b"../../etc/passwd", b"f'{a}'" * 2000, b"a=a;" * 100_000, b"\r\n", b"<script>"),
    *(b'{"":' * 5000, b'[{},"",0],' * 20_000, b"18446744073709551616", b"-9223372036854775808"),
]
_PIECES = re.compile(rb"[\w.]+|\s+|[^\w\s]")


def changed(data: bytes, random: Random) -> bytes:
    """Return data with one to four changes."""
    for _ in range(random.choice([1, 1, 2, 4])):
        data = random.choice(_CHANGES)(data, random) if data else random.choice(WORDS)
    return data[: 2**23]


def _flip(data: bytes, random: Random) -> bytes:
    """Flip bits, most of them near the end, where Parquet has its footer."""
    flipped = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 3, 10])):
        first = random.choice([0, 0, max(0, len(data) - 5000), max(0, len(data) - 400)])
        flipped[random.randrange(first, len(data))] ^= 1 << random.randrange(8)
    return bytes(flipped)


def _byte(data: bytes, random: Random) -> bytes:
    place = random.randrange(len(data))
    return data[:place] + bytes([random.choice([0, 1, 127, 128, 255])]) + data[place + 1 :]


def _cut(data: bytes, random: Random) -> bytes:
    start, stop = sorted((random.randrange(len(data)), random.randrange(len(data))))
    return random.choice([data[:start] + data[stop:], data[:start], data[start:stop]])


def _double(data: bytes, random: Random) -> bytes:
    start = random.randrange(len(data))
    stop = min(len(data), start + random.choice([1, 10, 100, 1000]))
    times = random.choice([2, 2, 50, 5000])
    return data[:start] + data[start:stop] * times + data[stop:]


def _swap(data: bytes, random: Random) -> bytes:
    a, b, c, d = sorted(random.randrange(len(data)) for _ in range(4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _word(data: bytes, random: Random) -> bytes:
    """Put a hostile word in, or in the place of a piece of text."""
    word = random.choice(WORDS)
    pieces = _PIECES.findall(data[:100_000])
    if not pieces or random.random() < 0.3:
        place = random.randrange(len(data))
        return data[:place] + word + data[place:]
    pieces[random.randrange(len(pieces))] = word
    return b"".join(pieces) + data[100_000:]


def _value(data: bytes, random: Random) -> bytes:
    """Replace, remove or repeat a value of a line of JSON; other bytes are flipped."""
    lines = data.split(b"\n")
    number = random.randrange(len(lines))
    try:
        record = json.loads(lines[number])
    except (ValueError, RecursionError):
        try:
            record = json.loads(data)
        except (ValueError, RecursionError):
            return _flip(data, random)
        lines, number = [data], 0
    place = record
    while isinstance(place, dict | list) and place:
        key = random.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place[key], dict | list) and place[key] and random.random() < 0.8:
            place = place[key]
            continue
        kind = random.random()
        if kind < 0.1:
            del place[key]
        elif kind < 0.2 and isinstance(place, list):
            place *= random.choice([2, 100])
        else:
            place[key] = random.choice(_VALUES)
        break
    lines[number] = json.dumps(record).encode(errors="surrogatepass")
    return b"\n".join(lines)


_VALUES = [
    *(None, True, 0, -1, 1, 0.0, -0.5, 1e308, 5e-324, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63)),
    *(
        10**30,
        "",
        "a" * 300,
        "\ud800",
        "\x1b[2J",
        "9" * 5000,
        "../x",
        "/dev/zero",
        "x\x00y",
        [],
        {},
    ),
    *([[]], [None], {"": None}, "nan", "ok", "unstable", "cheat", [1] * 1000, "a=a;" * 50_000),
]
_CHANGES = [_flip, _flip, _flip, _byte, _cut, _double, _swap, _word, _word, _value, _value, _value]
