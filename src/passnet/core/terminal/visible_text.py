"""Text that others wrote, shown as it is: what would steer a page or a terminal is made visible."""


def visible(text: str) -> str:
    """A text in which whatever does not print (control characters, marks that turn the direction of
    writing, halves of surrogate pairs) stands as its number; line ends and tabs stay.

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
