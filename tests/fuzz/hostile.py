"""What the fuzzing tests share: budgets, hostile texts, mutations, and the watch on effects."""

from __future__ import annotations

import re
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

T = TypeVar("T")

SLOW_FACTOR = 40
"""How many times as many examples the slow tests try."""

FSTRING_OF_LINES = "f\"\"\"{'''\n'''}\"\"\""
"""Python 3.11 reads this and cannot write it back."""

ARGUMENTS = [
    "(" * 300 + "a" + ")" * 300,
    "[" * 90 + "]" * 90,
    "(" * 5000,
    "-" * 1500 + "1",
    "a" + ".b" * 2000,
    "a" + "[0]" * 2000,
    "9" * 5000,
    "0x" + "f" * 5000,
    "-0x" + "f" * 5000,
    "1e999",
    "-nan",
    "- -inf",
    "float('-nan')",
    "'x' * 10**9",
    "10**10**10",
    "1 << 10**9",
    "f'{a}'",
    "f'{a!r:{b}}'",
    FSTRING_OF_LINES,
    FSTRING_OF_LINES + "(1)",
    "0x" + "f" * 5000 + "(1)",
    "lambda: a",
    "(y := a)",
    "[i for i in a]",
    "{**a}",
    "*a",
    "**a",
    "a if b else a",
    "a or b",
    "await a",
    "(yield)",
    "b'bytes'",
    "1j",
    "...",
    "'\\ud800'",
    "'\\x00'",
    "'\\d'",
    "'''a\nb'''",
    "__import__('os').system('true')",
    "eval('1')",
    "open('x', 'w')",
    "exec",
    "torch.load('x')",
    "torch.ops.load_library('x')",
    "torch.hub.load",
    "a.__class__.__bases__[0].__subclasses__()",
    "getattr(a, '__class__')",
    "getattr(a, 'ﬁ')",
    "device('cuda:" + "9" * 5000 + "')",
    "device('cuda', 99999999999999999999)",
    "device('cuda:٣')",
    "torch.Size(" * 40 + "[1]" + ")" * 40,
    "slice(" * 40 + "1" + ")" * 40,
    "𝐝𝐞𝐟",
    "torch.relu(a, 𝐢𝐟=1)",
    "a.𝐢𝐟",
    "名前",
    "1if a else b",
    "a is 1",
]
"""Expressions that must not be taken, or only as plain data."""

LINES = [
    "import os; os.system('true')",
    "from os import *",
    "@open('x', 'w')",
    "class Inner(open('x', 'w')): pass",
    "class Inner(metaclass=type('M', (type,), {})): x = open('x', 'w')",
    "async def forward(self): pass",
    "def forward(self, a=open('x', 'w')): return ()",
    "def forward(self, a: open('x', 'w')): return ()",
    f"def forward(self, a: {FSTRING_OF_LINES}, b: 0x{'f' * 5000}): return ()",
    "def forward(self, 𝐢𝐟): return ()",
    "match a:\n    case open('x'): pass",
    "with open('x', 'w') as f: pass",
    "while True: pass",
    "try: pass\nexcept* ValueError: pass",
    "global torch",
    "del a",
    "assert open('x', 'w')",
    "raise SystemExit",
    "𝐍𝐨𝐧𝐞 = a",
    "torch = a",
    "self = a",
    "x: open('x', 'w') = a",
    "a = " * 500 + "None",
    "x = torch.relu(" + "a, " * 5000 + ")",
    "operator.iadd(1, a)",
    "operator.setitem((1, 2), 0, a)",
    "x = '" + "y" * 100_000 + "'",
    "#" + "z" * 100_000,
    "\ufeffx = a",
    "\0",
    "\x0c\x0b\r",
    "\\",
    "\ud800 = a",
    "# coding: rot13",
    "if 1:\n\tx = a\n        y = a",
]
"""Statements that must not be taken, or do nothing."""

_TOKEN = re.compile(r"\n|[^\S\n]+|\w+|[^\w\s]")


@st.composite
def mutations(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text with some of its tokens or lines deleted, doubled, swapped, or made hostile."""
    text = draw(texts)
    for _ in range(draw(st.integers(1, 4))):
        is_line = draw(st.booleans())
        parts = text.splitlines(keepends=True) if is_line else _TOKEN.findall(text)
        if not parts:
            break
        index = draw(st.integers(0, len(parts) - 1))
        kind = draw(st.sampled_from(["hostile", "hostile", "delete", "double", "swap", "stray"]))
        indent = " " * draw(st.sampled_from([0, 4, 8]))
        if kind == "hostile" and is_line:
            parts.insert(index, indent + draw(st.sampled_from(LINES)) + "\n")
        elif kind == "hostile":
            parts[index] = draw(st.sampled_from(ARGUMENTS))
        elif kind == "delete":
            del parts[index]
        elif kind == "double":
            parts.insert(index, parts[index])
        elif kind == "swap":
            second = draw(st.integers(0, len(parts) - 1))
            parts[index], parts[second] = parts[second], parts[index]
        else:
            parts.insert(index, draw(st.text(max_size=3)))
        text = "".join(parts)
    return text


def fuzz(
    num_examples: int, *strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator: the claim holds for `num_examples`, and for many more as a slow test."""

    def decorate(claim: Callable[..., None]) -> Callable[..., None]:
        @pytest.mark.parametrize(
            "factor", [1, pytest.param(SLOW_FACTOR, marks=pytest.mark.slow)], ids=["quick", "slow"]
        )
        def test(factor: int, request: pytest.FixtureRequest) -> None:
            tries = settings(
                max_examples=num_examples * factor,
                derandomize=True,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            tries(given(*strategies)(claim))()

        test.__name__ = claim.__name__
        test.__doc__ = claim.__doc__
        return test

    return decorate


_WATCHED = ("exec", "import", "os.", "subprocess.", "socket.", "ctypes.", "shutil.", "pickle.")
_QUIET = ("os.listdir", "os.scandir", "os.walk")
_events: list[str] | None = None


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if _events is None:
        return
    if event == "open":
        path, mode, flags = args
        if (mode and set(mode) & set("wax+")) or (flags or 0) & 0o1103:  # write, create, truncate
            _events.append(f"open {path!r} {mode} {flags}")
    elif event == "compile":
        if args[1] != "<unknown>":  # what ast.parse calls its text
            _events.append(f"compile {args[1]!r}")
    elif event.startswith(_WATCHED) and event not in _QUIET:
        _events.append(f"{event} {args!r:.200}")


@contextmanager
def nothing_runs(may_write: bool = False) -> Iterator[None]:
    """Within, the test fails if code is run, imported or compiled, or anything else is touched."""
    global _events
    if not getattr(_hook, "installed", False):
        sys.addaudithook(_hook)
        _hook.installed = True  # type: ignore[attr-defined]
    _events = []
    try:
        yield
    finally:
        events, _events = _events, None
        if may_write:
            events = [event for event in events if not event.startswith("open ")]
        assert not events, f"reading ran something: {events}"


def peak_of(call: Callable[[], T]) -> tuple[T, int]:
    """What a call returns, and the most memory in bytes that Python held at once during it."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
