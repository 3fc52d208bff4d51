"""The first difference between two records, in words."""

from typing import Any

import msgspec

MOST_CHARACTERS = 60
"""The most of a value that is shown."""


def first_difference(old: object, new: object) -> str | None:
    """Return the first field in which two records differ, with both values; None for none.

    Examples:
        >>> first_difference({"judge": {"seed": 0}}, {"judge": {"seed": 1}})
        'judge.seed was 0 and is 1'
    """
    return _difference(msgspec.to_builtins(old), msgspec.to_builtins(new), "")


def _difference(old: Any, new: Any, path: str) -> str | None:
    if old == new:
        return None
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old | new:
            inner = f"{path}.{name}" if path else str(name)
            if found := _difference(old.get(name), new.get(name), inner):
                return found
    return f"{path or 'it'} was {_shown(old)} and is {_shown(new)}"


def _shown(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "not given", True: "on", False: "off"}[value]
    text = str(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"
