"""Native code with its macros expanded, and text that Python puts together."""

import ast
import re
import subprocess
import tempfile
from functools import cache, partial
from pathlib import Path

from passnet.core.records.untrusted import read_untrusted
from passnet.errors import PassFolderError
from passnet.judge.inspection.names import assigned, resolve, texts
from passnet.judge.inspection.sources import Code
from passnet.passes.compilation import find_compiler
from passnet.passes.folder import MAX_FILE_BYTES

MAX_EXPANDED_BYTES = 4 * MAX_FILE_BYTES
MAX_SECONDS = 5
MAX_STEPS = 40
"""Most names and operators of a text to follow through each other."""
_INCLUDE = re.compile(
    r'^[ \t]*(?:#|%:|\?\?=)[ \t]*include(?:_next)?\b[ \t]*(?:"([^"\n]*)")?.*$', re.M
)
_DIRECTIVE = re.compile(r"(?:#|%:|\?\?=)\s*define\b")
_JOINT = re.compile(r'(?<!\\)"\s*(?:u8|[uUL])?"')
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u00([0-9a-fA-F]{2})|([0-7]{1,3}))")
_FIELD = re.compile(r"\{[^{}]*\}|%[-+#0-9.]*[sdifgrx]")


def expanded(text: str, folder: Path | None = None) -> str:
    """Return native code with its macros expanded and adjacent literals joined.

    Headers of the folder are read too, others are left out. Raises ValueError for macros that take
    too long or grow too large.
    """
    text = _with_headers(text.replace("\\\r\n", "").replace("\\\n", ""), folder, 0)
    if _DIRECTIVE.search(text):
        text = _preprocessed(text)
    return _ESCAPE.sub(_character, _JOINT.sub("", text))


def _with_headers(text: str, folder: Path | None, depth: int) -> str:
    def header(match: re.Match[str]) -> str:
        path = (folder / (match[1] or "")).resolve() if folder else Path()
        if folder is None or folder.resolve() not in path.parents or not path.is_file():
            return ""
        inner = read_untrusted(path, MAX_FILE_BYTES, PassFolderError).decode("utf-8", "replace")
        return _with_headers(inner.replace("\\\n", ""), path.parent, depth + 1)

    return "" if depth > MAX_STEPS else _INCLUDE.sub(header, text)[:MAX_EXPANDED_BYTES]


@cache
def _preprocessed(text: str) -> str:
    compiler = find_compiler()
    if compiler is None:
        return re.sub(r"\s*##\s*", "", text)
    kib = MAX_EXPANDED_BYTES >> 10
    limits = f'ulimit -t {MAX_SECONDS} -f {kib} -v 1048576; exec "$@"'
    command = ["bash", "-c", limits, "sh", compiler, "-E", "-P", "-nostdinc", "-x", "c++", "-"]
    with tempfile.TemporaryFile() as out:
        encoded = text.encode("utf-8", "replace")
        run = subprocess.run(
            command, input=encoded, stdout=out, stderr=subprocess.PIPE, check=False
        )
        out.seek(0)
        found = out.read()
    if b"terminated program" in run.stderr or run.returncode < 0:
        raise ValueError("its macros take too long to expand, or too much room")
    return found.decode("utf-8", "replace")


def _character(match: re.Match[str]) -> str:
    number = match.lastindex or 0
    return chr(int(match[number], 8 if number == 3 else 16) % 256)


def folded(code: Code, scope: str, node: ast.AST, steps: int = 0) -> str | None:
    """Return the text that an expression puts together from constants, its unknown parts empty.

    None is something that is no text, as far as can be told.
    """
    within = partial(folded, code, scope, steps=steps + 1)
    match node:
        case _ if steps > MAX_STEPS:
            return None
        case ast.Constant(str(text)):
            return text
        case ast.Constant(bytes(content)):
            return content.decode("latin-1")
        case ast.Name(name):
            values = assigned(code, scope, name)
            if len(values) == 1:
                return folded(code, *values[0], steps + 1)
            return next(iter(texts(resolve(code, scope, node)) or ()), None)
        case ast.BinOp(left, ast.Add(), right):
            parts = [within(left), within(right)]
            return None if parts == [None, None] else "".join(filter(None, parts))
        case ast.JoinedStr(values):
            return "".join(within(value) or "" for value in values)
        case ast.FormattedValue(value):
            return within(value)
        case ast.BinOp(left, ast.Mod(), right):
            parts = right.elts if isinstance(right, ast.Tuple) else [right]
            return _filled(within(left), [within(part) for part in parts])
        case ast.Subscript(owner, ast.Slice(None, None, ast.UnaryOp(ast.USub(), ast.Constant(1)))):
            text = within(owner)
            return None if text is None else text[::-1]
        case ast.Call(ast.Attribute(owner, "join"), [ast.List(parts) | ast.Tuple(parts)]):
            return (within(owner) or "").join(within(part) or "" for part in parts)
        case ast.Call(ast.Attribute(owner, "format"), parts, keywords):
            values = [*parts, *(keyword.value for keyword in keywords)]
            return _filled(within(owner), [within(part) for part in values])
        case ast.Call(ast.Attribute(owner, "replace"), [old, new]):
            text, was = within(owner), within(old)
            return text.replace(was, within(new) or "") if text and was else text
        case ast.Call(ast.Attribute(owner, "decode" | "encode" | "strip" | "lower"), _):
            return within(owner)
    return None


def _filled(text: str | None, parts: list[str | None]) -> str | None:
    values = iter(parts)
    return text and _FIELD.sub(lambda _: next(values, None) or "", text)
