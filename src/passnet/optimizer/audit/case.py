"""The cases of an audit: a file a net, with the calls that its example does not show.

A file defines:

    KIND                the kind of hazard, or "harmless"
    make()              the net, in evaluation mode; called after `torch.manual_seed(0)`
    example()           the arguments that passnet.optimize is shown: a tuple, or a dict by name
    calls()             further calls, each (label, arguments) or (label, function of the net)
    change(net)         optional: a change of the net after it was optimised
    state(net)          optional: a value that passnet.optimize must leave equal
    NEEDS               optional: packages without which the file is left out

Its docstring says what is right. Expected values are those of a second net from `make()` that is
never optimised.
"""

import runpy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import torch

from passnet.errors import InputError, boundary

Given: TypeAlias = tuple[Any, ...] | Mapping[str, Any]
"""The arguments of a call, by position or by name."""

Use: TypeAlias = Given | Callable[[Callable[..., Any]], Any]
"""A call of a net: its arguments, or a function that takes the net and returns a value."""

HARMLESS = "harmless"


@dataclass(frozen=True, slots=True)
class NetCase:
    """A net of a corpus with its calls."""

    path: Path
    says: str
    kind: str
    make: Callable[[], Callable[..., Any]]
    example: Callable[[], Given]
    calls: Callable[[], Iterable[tuple[str, Use]]]
    change: Callable[[Any], None] | None = None
    state: Callable[[Any], Any] | None = None
    needs: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.stem

    @property
    def missing(self) -> str | None:
        """A package that the case needs and this Python lacks."""
        return next((name for name in self.needs if find_spec(name) is None), None)

    def made(self) -> Any:
        """Return the net, the same at each call."""
        torch.manual_seed(0)
        return self.make()


def read_case(path: Path) -> NetCase:
    """Run the file of a case; InputError where it fails or lacks a part."""
    with boundary(InputError, str(path)):
        names = runpy.run_path(str(path), run_name=path.stem)
    absent = [name for name in ("KIND", "make", "example", "calls") if name not in names]
    if absent:
        raise InputError(f"{path}: defines no {absent[0]}; see passnet.optimizer.audit.case")
    return NetCase(
        path,
        (names["__doc__"] or path.stem).strip().partition("\n")[0],
        names["KIND"],
        names["make"],
        names["example"],
        names["calls"],
        names.get("change"),
        names.get("state"),
        tuple(names.get("NEEDS", ())),
    )


def find_cases(paths: Iterable[Path]) -> list[Path]:
    """Return the files of cases below some paths; InputError where there is none."""
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
        if not file.name.startswith("_")
    ]
    if not files or not all(file.is_file() for file in files):
        raise InputError("no file of a case is there; name files, or folders that hold some")
    return files


def called(net: Callable[..., Any], use: Use) -> Any:
    """Use a net as a call of a case says, without gradients."""
    with torch.no_grad():
        if callable(use):
            return use(net)
        return net(**use) if isinstance(use, Mapping) else net(*use)
