"""The authors that are programs: passnet's two, and any that other packages register."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TypeAlias

from passnet.agent.attempts.session import Session
from passnet.errors import InputError, no_such

Author: TypeAlias = Callable[[Session, int], None]
"""Writes passes in a session, with a seed, until it submits."""
AUTHORS = {
    "compiler": "passnet.agent.authors.compiler:compiler_author",
    "search": "passnet.agent.authors.search:search_author",
}
"""The authors of passnet, imported on use."""
GROUP = "passnet.authors"
"""The entry points of other packages; each opens an author from a checkpoint's folder."""


def program_author(name: str, most_evaluations: int) -> Author:
    """Return the author of a name: one of `AUTHORS`, or NAME:FOLDER for one with a checkpoint.

    Raises InputError for another name, or a missing or unusable checkpoint.
    """
    if name in AUTHORS:
        module, function = AUTHORS[name].split(":")
        author: Callable[..., None] = getattr(import_module(module), function)
        return partial(author, budget=most_evaluations) if name == "search" else author
    kind, _, folder = name.partition(":")
    trained = {entry.name: entry for entry in entry_points(group=GROUP)}
    if kind not in trained:
        known = ["library", *AUTHORS, *(f"{each}:FOLDER" for each in trained)]
        raise InputError(f"there is {no_such('author', name, known)}")
    if not folder:
        raise InputError(f"the author {kind} needs a checkpoint: give {kind}:FOLDER")
    opened: Author = trained[kind].load()(Path(folder))
    return opened
