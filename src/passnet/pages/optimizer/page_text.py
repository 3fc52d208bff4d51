"""How texts and figures stand on a page; a text that others wrote stays text."""

from html import escape

from passnet.core.terminal.visible_text import visible
from passnet.optimizer.record import FormRecord


def shown(text: str) -> str:
    """A text as HTML that shows it as it is: what does not print, as marks that turn the direction
    of writing, by its number.

    Examples:
        >>> shown("a < b \\u202e")
        'a &lt; b \\\\u202e'
    """
    return escape(visible(text))


def in_ms(value: float | None) -> str:
    """Milliseconds, without the unit."""
    return "–" if value is None else f"{value:.4f}"


def interval(value: float | None, low: float | None, high: float | None) -> str:
    """A ratio with its interval.

    Examples:
        >>> interval(2.0, 1.9, 2.1), interval(2.0, None, None), interval(None, None, None)
        ('2.00 (1.90 to 2.10)', '2.00', '–')
    """
    if value is None:
        return "–" if low is None or high is None else f"{low:.2f} to {high:.2f}"
    return f"{value:.2f}" + ("" if low is None or high is None else f" ({low:.2f} to {high:.2f})")


def link(target: str, words: str) -> str:
    """A link within the page; both are HTML already."""
    return f'<a href="#{target}">{words}</a>'


def short_ops(ops: tuple[str, ...], most: int = 5) -> str:
    """What a range calls, in a few words; it is not yet HTML.

    Examples:
        >>> short_ops(("torch.relu", "Tensor.mul", "Tensor.add"), most=2)
        'relu mul …'
    """
    names = [op.rpartition(".")[2] for op in ops]
    return " ".join(names[:most]) + (" …" if len(names) > most else "")


def way_link(form: FormRecord, number: int, engine: str) -> str:
    """A link to the row of a way, of the form of a number."""
    found = [each for each, way in enumerate(form.engines) if way.engine == engine]
    return link(f"form-{number}-way-{found[0]}", shown(engine)) if found else shown(engine)


def what_is_used(form: FormRecord, number: int) -> str:
    """Whether the passes that were chosen for the form of a number are in use, as a sentence."""
    if form.uses_passes is None:
        return ""
    if form.uses_passes:
        return " Those chosen are in use."
    return (
        " <b>None of these passes is in use: the fastest way, "
        f"{way_link(form, number, form.chosen)}, has none.</b>"
    )
