"""Load the passes of a folder, which runs its code in this process."""

import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from passnet.errors import PassError, boundary
from passnet.passes.cpp import num_bare_kernels
from passnet.passes.folder import CALLABLES, PACKAGE, PassFolder
from passnet.passes.pattern import Pass, make_pass


def load_passes(folder: PassFolder) -> list[Pass]:
    """The passes of a folder, imported and traced.

    The folder becomes the package `pass_dir` of this process, in place of any folder loaded before.

    Raises:
        PassError: a module fails to import, or a pass cannot be traced.
    """
    _mount(PACKAGE, folder.path)
    for file in folder.passes:
        if file.package != PACKAGE:
            _mount(file.package, file.path.parent)
    passes: list[Pass] = []
    num_bare = num_bare_kernels()
    for file in folder.passes:
        with boundary(PassError, f"loading pass {file.name}"), _without_bytecode():
            module = importlib.import_module(f"{file.package}.{file.name}")
        callables = [getattr(module, name) for name in CALLABLES]
        guards, guard = getattr(module, "guards", ()), getattr(module, "guard", None)
        passes.append(make_pass(file.name, *callables, guards=guards, guard=guard))
    has_bare = num_bare_kernels() > num_bare
    return [replace(pass_, has_bare_kernels=has_bare) for pass_ in passes]


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Imports that neither leave nor read a `.pyc`: one may hide what its file says now, because it
    was written within the same second, or by somebody.
    """
    previous = sys.dont_write_bytecode, sys.pycache_prefix
    sys.dont_write_bytecode, sys.pycache_prefix = True, "/dev/null/none"
    try:
        yield
    finally:
        sys.dont_write_bytecode, sys.pycache_prefix = previous


def _mount(package: str, path: Path) -> None:
    """Make a folder importable as a package, forgetting what had that name before."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]
    module = types.ModuleType(package)
    module.__path__ = [str(path)]
    sys.modules[package] = module
    importlib.invalidate_caches()
