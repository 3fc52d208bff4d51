"""Foreign text: its lines, and its unprintable characters made visible."""

import re


def visible(text: str) -> str:
    """Return a text with unprintable characters as their numbers; keep line ends and tabs.

    Examples:
        >>> visible("a \\u202e b\\x1b[2K")
        'a \\\\u202e b\\\\u001b[2K'
    """
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or letter in "\n\t" else f"\\u{ord(letter):04x}"
        for letter in text
    )


def source_lines(text: str) -> list[str]:
    """Return the lines of a text as compilers and editors count them.

    `str.splitlines` counts more: after form feeds and U+2028, too.

    Examples:
        >>> source_lines("a\\u2028b\\r\\nc\\x0c\\rd\\n") == ["a\\u2028b", "c\\x0c", "d"]
        True
        >>> source_lines("a\\n\\n"), source_lines("")
        (['a', ''], [])
    """
    *lines, rest = re.split(r"\r\n|\r|\n", text)
    return [*lines, rest] if rest else lines
