"""Figures and names as texts, for the cells of tables and for pages."""

from collections.abc import Sequence

NOTHING = "–"
"""Shown where a value was not measured."""


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with some digits after the point.

    Examples:
        >>> number(1.5), number(2.0, 4), number(None)
        ('1.500', '2.0000', '–')
    """
    return NOTHING if value is None else f"{value:.{digits}f}"


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


def ops_in_words(ops: Sequence[str], most: int = 4) -> str:
    """Return the first ops of a sequence by their short names, and the number of others.

    Examples:
        >>> ops_in_words(["torch.add", "operator.mul"]), ops_in_words(["torch.add"] * 3, most=1)
        ('add mul', 'add + 2')
    """
    words = [op.rpartition(".")[2] for op in ops[:most]]
    more = len(ops) - len(words)
    return " ".join(words) + (f" + {more}" if more > 0 else "")
