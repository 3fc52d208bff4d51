"""Digests of attempts that are the same: of their code and their chats in a normal form."""

import ast
import hashlib
import json
import warnings
from collections.abc import Iterable
from typing import Any

import msgspec

from passnet.agent.attempts.attempt import Message
from passnet.passes.files import Files


def code_digest(files: Files) -> str:
    """SHA-256 of a pass folder in its normal form."""
    return _digest([(name, normal_text(name, text)) for name, text in sorted(files.items())])


def chat_digest(messages: Iterable[Message]) -> str:
    """SHA-256 of a chat, without the ids of its calls, which are made up anew each time."""
    rows = []
    for message in messages:
        calls = [(call.name, call_arguments(call.arguments)) for call in message.tool_calls]
        rows.append((message.role, message.content, calls, message.reasoning))
    return _digest(rows)


def normal_text(name: str, text: str) -> str:
    """The text of a file without what does not count.

    That is layout, comments and docstrings of Python, layout and order of JSON, and of other files
    empty lines and spaces at the ends of lines.

    Examples:
        >>> normal_text("a.py", "x = (1 +\\n  2)  # three") == normal_text("a.py", "x = 1 + 2")
        True
    """
    try:
        if name.endswith(".py"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of odd escapes in strings
                return ast.unparse(_without_docstrings(ast.parse(text)))
        if name.endswith(".json"):
            return json.dumps(json.loads(text), sort_keys=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass  # not what its name says, so taken as any other text
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if (
            isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return tree


def call_arguments(text: str) -> dict[str, Any] | None:
    """The arguments of a tool call; None where the text is no JSON object.

    Examples:
        >>> call_arguments('{"name": "a.py"}'), call_arguments(""), call_arguments('{"name": ')
        ({'name': 'a.py'}, {}, None)
    """
    try:
        arguments = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None


def _digest(value: object) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()
