"""Words that a shell completes: suites, tasks, candidates and nets, found without torch."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
"""Completes the beginning of a value of a parameter."""


def _items(names: Iterable[str], begin: str, path: str = "") -> list[CompletionItem]:
    """Return the names with a beginning; where there is none, paths of a kind (file, dir)."""
    found = [CompletionItem(name) for name in names if name.startswith(begin)]
    return found or ([CompletionItem(begin, type=path)] if path else [])


def suites(ctx: click.Context, param: click.Parameter, begin: str) -> list[CompletionItem]:
    """Complete the name of a shipped suite, or a path."""
    from passnet.judge.suite.shipped import shipped_suites

    return _items(shipped_suites(), begin, "file")


def tasks(ctx: click.Context, param: click.Parameter, begin: str) -> list[CompletionItem]:
    """Complete the name of a task of the suite that the command names before."""
    from passnet.judge.suite.shipped import shipped_suites, task_names

    name = ctx.params.get("suite")
    path = shipped_suites().get(name) if isinstance(name, str) else None
    return _items(task_names(path), begin) if path else []


def candidates(ctx: click.Context, param: click.Parameter, begin: str) -> list[CompletionItem]:
    """Complete a baseline with its flags, or the path of a pass folder."""
    from passnet.judge.desk.candidates import BASELINES, FLAGS

    word, at, _ = begin.rpartition("@")
    return _items([f"{word}@{flag}" for flag in FLAGS] if at else BASELINES, begin, "dir")


def nets(ctx: click.Context, param: click.Parameter, begin: str) -> list[CompletionItem]:
    """Complete LIBRARY/NET of a library that was listed once, or a path."""
    from passnet.data.capture.known_nets import LIBRARIES, RECIPES, known_nets

    library, slash, _ = begin.partition("/")
    names = known_nets(library) if slash else [f"{name}/" for name in (*LIBRARIES, *RECIPES)]
    return _items(names, begin, "file")
