"""Numbers of things in words."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun.

    Examples:
        >>> counted(1, "graph"), counted(2, "graph"), counted(1000, "pass", "passes")
        ('1 graph', '2 graphs', '1,000 passes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def times(number: int) -> str:
    """Return how often something happens.

    Examples:
        >>> times(1), times(4)
        ('once', '4 times')
    """
    return "once" if number == 1 else f"{number} times"
