"""Loop nests of a generated C++ kernel that only load and store.

If the kernel's name holds no op that moves values, such a nest is a copy that eager torch does not
make.
"""

import re
from collections.abc import Iterator

ASKED = ("clone", "copy", "cat", "contiguous", "stack", "repeat", "roll", "flip", "pad", "expand",
         "slice", "select", "index", "gather", "embedding", "permute", "transpose", "as_strided",
         "unfold", "tril", "triu", "fill", "full", "zeros", "ones", "pixel", "upsample", "split",
         "scatter", "where", "unbind", "view", "lift_fresh")  # fmt: skip
"""Parts of the names of ops that move values because the program asks for it."""

_HEAD = re.compile(r'extern "C"\s*void\s+\w+\([^)]*\)\s*\{')
_HEADER = re.compile(r"\b(?:for|if)\s*\(")
_PRAGMA = re.compile(r"^\s*#.*$", re.MULTILINE)

_POINTER = r"(?:in|in_out|out)_ptr\d+"
_LOAD = (
    rf"(?:{_POINTER}\[.*\]"
    rf"|at::vec::Vectorized<[\w:]+>::loadu\((?:{_POINTER}|tmp\d+) \+ .*\)"
    r"|tmp\d+(?:\[.*\])?)"
)
_MOVES = re.compile(
    rf"auto tmp\d+ = {_LOAD}"
    rf"|{_POINTER}\[.*\] = tmp\d+(?:\[.*\])?"
    rf"|tmp\d+\.store\((?:{_POINTER}|tmp\d+) \+ .*\)"
    r"|alignas\(.*\) \w+ tmp\d+\[[\d* ]+\]"
    r"|(?:at::vec::)?transpose_mxn<.*>\(.*\)",
    re.DOTALL,
)


def moves_only(name: str, text: str) -> bool:
    """Return whether a kernel only moves values, without an op that asks for it."""
    nests = list(loop_nests(text))
    return bool(nests) and not _is_asked(name) and all(map(is_move, nests))


def moving_part(name: str, text: str) -> str | None:
    """Return a kernel's text with only unrequested moves; None if they are none or all of it."""
    nests = list(loop_nests(text))
    moves = [nest for nest in nests if is_move(nest)]
    if _is_asked(name) or not moves or len(moves) == len(nests):
        return None
    for nest in nests:
        if nest not in moves:
            text = text.replace(nest, "", 1)
    return text


def _is_asked(name: str) -> bool:
    return any(word in name for word in ASKED)


def is_move(nest: str) -> bool:
    """Return whether a loop nest only loads and stores.

    Examples:
        >>> is_move("{ for(;;) { auto tmp0 = in_ptr0[x0 + 3L*x1]; out_ptr0[x0] = tmp0; } }")
        True
        >>> is_move("{ for(;;) { auto tmp0 = in_ptr0[x0]; auto tmp1 = tmp0 + tmp0; } }")
        False
    """
    statements = _without_headers(_PRAGMA.sub("", nest))
    words = [" ".join(text.split()) for text in re.split(r"[;{}]", statements)]
    words = [word for word in words if word]
    return bool(words) and all(map(_MOVES.fullmatch, words))


def _without_headers(text: str) -> str:
    """Return a text without the heads of its loops and conditions."""
    parts, position = [], 0
    while (head := _HEADER.search(text, position)) is not None:
        parts.append(text[position : head.start()])
        depth, end = 1, head.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        position = end
    return "".join([*parts, text[position:]])


def loop_nests(text: str) -> Iterator[str]:
    """Yield the loop nests of a kernel's body, in order."""
    head = _HEAD.search(text)
    if head is None:
        return
    depth, start = 0, head.end()
    for position in range(head.end(), len(text)):
        if text[position] == "{":
            if depth == 0:
                start = position
            depth += 1
        elif text[position] == "}":
            depth -= 1
            if depth == 0:
                yield text[start : position + 1]
            if depth < 0:
                return
