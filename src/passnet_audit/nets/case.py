"""The cases of an audit: a file a net, with the calls that its example does not show.

A file defines:

    KIND                the kind of hazard, or "harmless"; a literal
    make()              the net, in evaluation mode; called after `torch.manual_seed(0)`
    example()           the arguments that passnet.optimize is shown: a tuple, or a dict by name
    calls()             further calls, each (label, arguments) or (label, function of the net)
    change(net)         optional: a change of the net after it was optimised
    state(net)          optional: a value that passnet.optimize must leave equal
    NEEDS               optional: packages without which the file is left out; a literal tuple

Its docstring says what is right. Expected values are those of a second net from `make()` that is
never optimised.
"""

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import torch

from passnet.errors import InputError, boundary

Given: TypeAlias = tuple[Any, ...] | Mapping[str, Any]
"""The arguments of a call, by position or by name."""

CaseCall: TypeAlias = Given | Callable[[Callable[..., Any]], Any]
"""A call of a net: its arguments, or a function that takes the net and returns a value."""

PARTS = ("KIND", "make", "example", "calls")


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The file of a case, and the literals in it, read without running it."""

    path: Path
    kind: str
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> str | None:
        """A package that the case needs and this Python lacks."""
        return next((name for name in self.needs if find_spec(name) is None), None)


@dataclass(frozen=True, slots=True)
class NetCase:
    """A net of a corpus with its calls."""

    path: Path
    kind: str
    make: Callable[[], Callable[..., Any]]
    example: Callable[[], Given]
    calls: Callable[[], Iterable[tuple[str, CaseCall]]]
    change: Callable[[Any], None] | None = None
    state: Callable[[Any], Any] | None = None

    def made(self) -> Any:
        """Return the net, the same at each call."""
        torch.manual_seed(0)
        return self.make()


def find_cases(paths: Sequence[Path]) -> list[CaseFile]:
    """Return the files of cases below some paths; InputError where there is none."""
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])
        if not file.name.startswith("_")
    ]
    absent = [file for file in files if not file.is_file() or file.suffix != ".py"]
    if absent or not files:
        where = ", ".join(map(str, absent or paths))
        raise InputError(f"{where}: no Python file of a net is there; see docs/optimize.md")
    return [_case_file(file) for file in dict.fromkeys(files)]


def _case_file(path: Path) -> CaseFile:
    with boundary(InputError, str(path)):
        values = {
            ast.unparse(node.targets[0]): node.value
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign)
        }
        literals = {
            name: ast.literal_eval(values[name]) for name in ("KIND", "NEEDS") if name in values
        }
    if not isinstance(literals.get("KIND"), str):
        raise InputError(_says_no(path, "KIND"))
    return CaseFile(path, literals["KIND"], tuple(literals.get("NEEDS", ())))


def read_case(path: Path) -> NetCase:
    """Import the file of a case; InputError where it fails or lacks a part."""
    name = f"audited_{path.stem}"  # Dynamo and pickle look modules up by name
    with boundary(InputError, str(path)):
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None, "it ends in .py"
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    names = vars(module)
    for part in PARTS:
        if part not in names:
            raise InputError(_says_no(path, part))
    functions = (names["make"], names["example"], names["calls"])
    return NetCase(path, names["KIND"], *functions, names.get("change"), names.get("state"))


def _says_no(path: Path, part: str) -> str:
    return f"{path}: defines no {part}; a case has {', '.join(PARTS)}, as in tests/nets of passnet"


def called(net: Callable[..., Any], use: CaseCall) -> Any:
    """Use a net as a call of a case says, without gradients."""
    with torch.no_grad():
        if callable(use):
            return use(net)
        return net(**use) if isinstance(use, Mapping) else net(*use)
