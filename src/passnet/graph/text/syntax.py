"""Syntax trees of untrusted Python text, made within limits and quoted in errors."""

import ast
import gc
import keyword
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from passnet.errors import GraphError

MAX_TEXT_BYTES = 16 * 2**20
"""Longest file to read; the largest known graph file has 4 MB."""

MAX_TOKENS = 550_000
"""Most tokens in a text to parse: a syntax tree takes up to 744 bytes for each, so at most 0.4 GB.
The largest captured graph has 525,677."""

MAX_BRACE_WORK = 2**33
"""Most braces times length of a text: Python reads an f-string anew at each, 3 GB a second."""

_TOKEN = re.compile(r"\w+|[^\w\s]|\n")
_NAME_FIELDS = ("id", "attr", "arg", "name")


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection, which costs a fifth of the time: a syntax tree holds no garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def parse_tree(text: str, where: str) -> ast.Module:
    """Parse Python text within limits; raise GraphError for other, deeper or longer text."""
    _check_size(text, where)
    try:
        with warnings.catch_warnings():  # what Python finds odd about foreign text is not shown
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except SyntaxError as cause:
        raise GraphError(f"{where}:{cause.lineno or '?'}: not Python: {cause.msg}") from cause
    except (RecursionError, MemoryError, ValueError) as cause:
        raise GraphError(f"{where}: cannot be parsed: {type(cause).__name__}: {cause}") from cause
    if not text.isascii():
        _check_names(tree, where)
    return tree


def _check_size(text: str, where: str) -> None:
    if len(text) > MAX_TEXT_BYTES:
        raise GraphError(f"{where}: {len(text)} characters, more than {MAX_TEXT_BYTES}")
    if has_costly_braces(text.count("{"), len(text)):
        raise GraphError(f"{where}: too many braces for its length")
    if len(text) <= MAX_TOKENS:  # then it has no more tokens either
        return
    num_tokens = sum(1 for _ in _TOKEN.finditer(text))
    if num_tokens > MAX_TOKENS:
        raise GraphError(f"{where}: {num_tokens} words and signs, more than {MAX_TOKENS}")


def has_costly_braces(num_braces: int, length: int) -> bool:
    """Return whether Python could take seconds for f-strings in a text.

    Examples:
        >>> has_costly_braces(10_000, 500_000), has_costly_braces(10_000, 5_000_000)
        (False, True)
    """
    return num_braces * length > MAX_BRACE_WORK


def _check_names(tree: ast.Module, where: str) -> None:
    """Refuse keywords as names: Python accepts 𝐢𝐟 as a name, and then reads it as `if`."""
    for node in ast.walk(tree):
        for field in _NAME_FIELDS:
            name = getattr(node, field, None)
            if isinstance(name, str) and keyword.iskeyword(name):
                raise error_at(where, node, f"the keyword {name} in other letters is no name")


def dotted_name(node: ast.expr) -> str | None:
    """Return the text of a dotted name such as `torch.Tensor`; None for anything else."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(path)]) if isinstance(node, ast.Name) else None


def annotation_text(node: ast.expr, where: str) -> str:
    """Return an annotation's text, or raise GraphError if it does not parse to the same again."""
    try:
        text = ast.unparse(node)
        function: Any = parse_tree(f"def f(x: {text}): pass", where).body[0]
        again = ast.unparse(function.args.args[0].annotation)
    except ValueError as cause:
        raise error_at(where, node, "cannot be written back") from cause
    if again != text:
        raise error_at(where, node, "reads differently when written back")
    return text


def construct(node: ast.AST) -> str:
    """Return a construct as the user wrote it, shortened."""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        text = ""
    first = text.split("\n", 1)[0]
    return f"{type(node).__name__} `{first[:80]}{'…' if len(first) > 80 else ''}`"


def error_at(where: str, node: ast.AST, why: str) -> GraphError:
    """Return an error that names file, line, reason and construct."""
    line = getattr(node, "lineno", "?")
    return GraphError(f"{where}:{line}: {why}: {construct(node)}")
