"""Source on pages, with colours.

The lexers are our own: those that ship with pygments take quadratic time on some texts.
"""

from keyword import kwlist

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Generic, Keyword, Name, Number, String, Text

from passnet.core.terminal.visible_text import visible

MAX_SOURCE_CHARACTERS = 60_000
"""Most characters of a file that its page shows."""

_STRING = r"\"(?:\\[\s\S]?|[^\"\\\n])*+\"?|'(?:\\[\s\S]?|[^'\\\n])*+'?"
"""A string of one line; one without an end goes to the end of the line."""

_NUMBER, _REST = (r"\d(?:'?[\w.])*+", Number), [(r"\w+", Name), (r"\s+|[\s\S]", Text)]

_CPP_WORDS = (
    r"(?:alignas|auto|break|case|catch|class|const|consteval|constexpr|continue|default|delete|do"
    r"|else|enum|explicit|extern|for|friend|goto|if|inline|namespace|new|noexcept|operator|private"
    r"|protected|public|return|sizeof|static|static_cast|struct|switch|template|this|throw|try"
    r"|typedef|typename|union|using|virtual|volatile|while|__global__|__device__|__shared__"
    r"|__restrict__)\b"
)
_CPP_TYPES = (
    r"(?:bool|char|double|float|int|u?int(?:8|16|32|64)_t|long|short|signed|size_t|unsigned|void)\b"
)


class LinearPython(RegexLexer):
    """Colours of Python, in linear time."""

    tokens = {
        "root": [
            (r"#[^\n]*", Comment.Single),
            (r"(?i:[bfru]{0,2})(\"\"\"|''')(?:\\[\s\S]?|(?!\1)[^\\])*+(?:\1)?", String),
            (rf"(?i:[bfru]{{0,2}})(?:{_STRING})", String),
            (r"@[\w.]+", Name.Decorator),
            (rf"(?:{'|'.join(kwlist)})\b", Keyword),
            _NUMBER,
            *_REST,
        ]
    }


class LinearCpp(RegexLexer):
    """Colours of C++ and CUDA, in linear time."""

    tokens = {
        "root": [
            (r"//[^\n]*", Comment.Single),
            (r"/\*(?:(?!\*/)[\s\S])*+(?:\*/)?", Comment.Multiline),
            (r"#(?:\\\n|[^\n])*+", Comment.Preproc),
            (r"R\"([^()\\\s]{0,16})\((?:(?!\)\1\")[\s\S])*+(?:\)\1\")?", String),
            (_STRING, String),
            (_CPP_TYPES, Keyword.Type),
            (_CPP_WORDS, Keyword),
            _NUMBER,
            *_REST,
        ]
    }


class LinearJson(RegexLexer):
    """Colours of JSON, in linear time."""

    tokens = {
        "root": [
            (_STRING, String),
            (r"(?:true|false|null)\b", Keyword.Constant),
            _NUMBER,
            *_REST,
        ]
    }


class LinearDiff(RegexLexer):
    """Colours of the lines of a diff, in linear time."""

    tokens = {
        "root": [
            (r"\+[^\n]*\n?", Generic.Inserted),
            (r"-[^\n]*\n?", Generic.Deleted),
            (r"@[^\n]*\n?", Generic.Subheading),
            (r"[^\n]*\n|[^\n]+", Text),
        ]
    }


LEXERS = {
    "py": LinearPython,
    "json": LinearJson,
    **dict.fromkeys(("h", "hpp", "cpp", "cu", "cuh"), LinearCpp),
    "diff": LinearDiff,
}
"""The lexers by the endings of names of files."""


def shortened(text: str, most: int) -> str:
    """Return a text, or its first characters and the number of characters left out."""
    num_over = len(text) - most
    return f"{text[:most]}\n… {num_over:,} more characters are not shown" if num_over > 0 else text


def coloured(name: str, text: str) -> str:
    """Return the text of a file as HTML, coloured if its language is known."""
    text = shortened(visible(text), MAX_SOURCE_CHARACTERS)
    lexer = LEXERS.get(name.rpartition(".")[2], TextLexer)
    return highlight(text, lexer(stripnl=False), HtmlFormatter(nowrap=True))
