"""Foreign text with unprintable characters made visible."""


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
