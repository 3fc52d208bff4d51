"""Load the passes of a folder, which runs its code in this process."""

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeAlias

from passnet.errors import PassError, boundary
from passnet.passes.cpp import kernel_ops, num_bare_kernels
from passnet.passes.folder import (
    CALLABLES,
    PACKAGE,
    PassFile,
    PassFolder,
    inspect_folder,
    missing_callable,
)
from passnet.passes.match.pattern import Pass, SkippedPass, make_pass

Folders: TypeAlias = str | Path | Sequence[str | Path]
"""One pass folder, or several in order."""

DIGITS = 16
"""Digits of a folder's hash that name its ops."""


def load_passes(folder: PassFolder) -> list[Pass | SkippedPass]:
    """Import and trace the passes of a folder, which becomes the package `pass_dir`.

    Passes that cannot be traced are skipped. It is a PassError if none can, or an import fails.
    """
    _mount(PACKAGE, folder.path)
    for file in folder.passes:
        if file.package != PACKAGE:
            _mount(file.package, file.path.parent)
    passes: list[Pass | SkippedPass] = []
    failures: list[PassError] = []
    num_bare, num_ops = num_bare_kernels(), len(kernel_ops())
    for file in folder.passes:
        with boundary(PassError, f"loading pass {file.name}"), _without_bytecode():
            module = _import(file)
        for name in CALLABLES:
            if not hasattr(module, name):
                raise PassError(missing_callable(file.path, name))
        callables = [getattr(module, name) for name in CALLABLES]
        guards, guard = getattr(module, "guards", ()), getattr(module, "guard", None)
        try:
            passes.append(make_pass(file.name, *callables, guards=guards, guard=guard))
        except PassError as failure:
            failures.append(failure)
            passes.append(SkippedPass(file.name, f"{file.name}: skipped: {failure}"))
    if failures and len(failures) == len(passes):
        raise failures[0]
    of_folder = {
        "has_bare_kernels": num_bare_kernels() != num_bare,
        "digest": folder.code_hash[:DIGITS],
        "kernel_ops": kernel_ops(num_ops),
    }
    return [replace(p, **of_folder) if isinstance(p, Pass) else p for p in passes]


def loaded_passes(paths: Folders | None) -> list[Pass | SkippedPass]:
    """Return the passes of one folder or several, in order; load equal content once."""
    folders = [paths] if isinstance(paths, (str, Path)) else paths or ()
    return [pass_ for path in folders for pass_ in _load_once(inspect_folder(Path(path)))]


@cache
def _load_once(folder: PassFolder) -> list[Pass | SkippedPass]:
    return load_passes(folder)


def _import(file: PassFile) -> types.ModuleType:
    """Import a pass's module, by its path if Python would look elsewhere for its name."""
    if "." not in file.name:
        return importlib.import_module(file.module)
    spec = importlib.util.spec_from_file_location(file.module, file.path)
    assert spec is not None and spec.loader is not None, "the path ends with .py"
    module = sys.modules[file.module] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Import without reading or writing `.pyc` files, which may hide a file's present text."""
    previous = sys.dont_write_bytecode, sys.pycache_prefix
    sys.dont_write_bytecode, sys.pycache_prefix = True, "/dev/null/none"
    try:
        yield
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = previous


def _mount(package: str, path: Path) -> None:
    """Make a folder importable as a package, forgetting what had that name before."""
    if package in sys.modules:  # to look at the names of all modules takes milliseconds
        for name in [name for name in sys.modules if name.split(".")[0] == package]:
            del sys.modules[name]
    module = types.ModuleType(package)
    module.__path__ = [str(path)]
    sys.modules[package] = module
    for folder in [folder for folder in sys.path_importer_cache if folder.startswith(str(path))]:
        del sys.path_importer_cache[folder]  # which may not know the files that are there now
