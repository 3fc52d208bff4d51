"""Which passes to leave out of a folder that is wrong, found by halving."""

from collections.abc import Callable, Sequence

MOST_FOUND = 2
"""So many passes that are wrong are looked for; behind the last one all are left out."""


def to_leave_out(
    passes: Sequence[str], is_right_without: Callable[[frozenset[str]], bool]
) -> frozenset[str] | None:
    """Passes without which a folder is right, few of them if there are few wrong ones; None where
    none are found.

    Args:
        passes: all that matter, of which one at least is wrong, or more are wrong together.
        is_right_without: judges the folder without some of them. It is asked about twice
            `MOST_FOUND` times the logarithm of their number.

    Examples:
        >>> sorted(to_leave_out("abcdefgh", lambda without: "f" in without))
        ['f']
        >>> sorted(to_leave_out("abcdefgh", lambda without: {"b", "f"} <= without))
        ['b', 'f']
        >>> sorted(to_leave_out("abcd", lambda without: len(without) > 1))  # two are too many
        ['c', 'd']
        >>> to_leave_out("abcd", lambda without: False) is None
        True
    """
    right: frozenset[str] | None = None
    found: frozenset[str] = frozenset()
    rest = list(passes)
    while rest and len(found) < MOST_FOUND:
        low, high = 0, len(rest)  # the first `low` may stay, the first `high` may not
        while high - low > 1:
            middle = (low + high) // 2
            without = found | frozenset(rest[middle:])
            if is_right_without(without):
                low, right = middle, without
            else:
                high = middle
        found |= {rest[low]}
        if is_right_without(found):
            return found
        rest = rest[high:]
    return right
