"""Numbers and names as texts, for the cells of tables and for pages."""

from collections.abc import Mapping, Sequence

NOTHING = "–"
"""Shown where a value was not measured."""


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with some digits after the point.

    Examples:
        >>> number(1.5), number(2.0, 4), number(None)
        ('1.500', '2.0000', '–')
    """
    return formatted(value, f".{digits}f")


def formatted(value: float | None, form: str) -> str:
    """Return a number as a format specification says, such as ".1e"."""
    return NOTHING if value is None else format(value, form)


def in_ms(value: float | None) -> str:
    """Return milliseconds, without the unit."""
    return number(value, 4)


def percent(share: float | None) -> str:
    """Return a share in per cent, without the sign."""
    return NOTHING if share is None else f"{100 * share:.1f}"


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """Return a ratio with its interval.

    Examples:
        >>> interval(2.0, 1.9, 2.1), interval(2.0, None, None), interval(None, None, None)
        ('2.00 (1.90 to 2.10)', '2.00', '–')
    """
    if value is None:
        return NOTHING if low is None or high is None else f"{low:.2f} to {high:.2f}"
    return number(value, 2) + ("" if low is None or high is None else f" ({low:.2f} to {high:.2f})")


def bounds(low: float, high: float, digits: int = 3) -> str:
    """Return the bounds of an interval."""
    return f"{low:.{digits}f} – {high:.{digits}f}"


def counts_in_words(counts: Mapping[str, int]) -> str:
    """Return counts by name.

    Examples:
        >>> counts_in_words({"timeout": 2, "cheat": 1}), counts_in_words({})
        ('2 timeout, 1 cheat', '–')
    """
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or NOTHING


def failures_in_words(statuses: Mapping[str, int]) -> str:
    """Return the numbers of trials by status, without ok."""
    return counts_in_words({name: count for name, count in statuses.items() if name != "ok"})


def threads_in_words(num_threads: int) -> str:
    """Return a number of threads."""
    return "one thread" if num_threads == 1 else f"{num_threads} threads"


def ops_in_words(ops: Sequence[str], most: int = 4) -> str:
    """Return the first ops of a sequence by their short names, and the number of others.

    Examples:
        >>> ops_in_words(["torch.add", "operator.mul"]), ops_in_words(["torch.add"] * 3, most=1)
        ('add mul', 'add + 2')
    """
    words = [op.rpartition(".")[2] for op in ops[:most]]
    more = len(ops) - len(words)
    return " ".join(words) + (f" + {more}" if more > 0 else "")
