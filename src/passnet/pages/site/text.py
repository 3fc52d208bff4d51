"""Source on pages, with colours."""

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from passnet.core.terminal.visible_text import visible

MAX_SOURCE_CHARACTERS = 60_000
"""Most characters of a file that its page shows."""

_LEXERS = {
    "py": "python",
    "json": "json",
    "h": "cpp",
    "hpp": "cpp",
    "cpp": "cpp",
    "cu": "cuda",
    "cuh": "cuda",
    "md": "markdown",
    "diff": "diff",
}


def coloured(name: str, text: str) -> str:
    """Return the text of a file as HTML, coloured if its language is known."""
    text = visible(text)
    if len(text) > MAX_SOURCE_CHARACTERS:
        num_over = len(text) - MAX_SOURCE_CHARACTERS
        text = f"{text[:MAX_SOURCE_CHARACTERS]}\n… {num_over:,} more characters are not shown"
    lexer = get_lexer_by_name(_LEXERS.get(name.rpartition(".")[2], "text"), stripnl=False)
    return highlight(text, lexer, HtmlFormatter(nowrap=True))
