"""Pages from templates."""

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from passnet.core.terminal.visible_text import visible
from passnet.pages.site.text import coloured
from passnet.pages.tables.cells import formatted, in_ms, interval, ops_in_words

PACKAGE = Path(__file__).parent


def render(template: str, **facts: Any) -> str:
    """Return a page of HTML from a template; texts among `facts` are escaped and made visible."""
    return _templates().get_template(f"{template}.html.j2").render(**facts)


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(PACKAGE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalised,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"ms": in_ms, "formatted": formatted}
    functions: dict[str, Any] = {
        "coloured": lambda name, text: Markup(coloured(name, text)),
        "interval": interval,
        "words": ops_in_words,
    }
    templates.globals |= functions
    return templates


def _finalised(value: Any) -> Any:
    """Return a value for a page, with unprintable characters made visible."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
