"""Text that others wrote, made fit to be recorded and shown: one line, nothing that steers."""

import re

_STEERING = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)"
)
"""What a terminal obeys: ECMA-48's control sequences, control strings, and short escapes."""


def plain_text(text: str, most: int) -> str:
    """The first `most` characters of a text as one line: terminal escapes left out; whatever does
    not print (control characters, line ends, marks that turn the direction of writing) is a space.

    Examples:
        >>> plain_text("\\x1b[2K\\r\\x1b[32mall\\n correct \\u202e\\x1b]0;title\\x07", 100)
        'all correct'
    """
    kept = _STEERING.sub("", text[:most])
    if not kept.isprintable():
        kept = "".join(letter if letter.isprintable() else " " for letter in kept)
    return " ".join(kept.split())
