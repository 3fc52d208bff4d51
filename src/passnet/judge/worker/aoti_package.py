"""A package of AOTInductor for a graph: built, cached, and called without guards."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from passnet.core.records.folders import inductor_cache
from passnet.errors import BackendError, boundary
from passnet.inductor.compiler import build_package, load_package, write_cached


def packaged(
    module: torch.fx.GraphModule, program: str, arguments: Sequence[Any], by_torch: bool
) -> Callable[..., Any]:
    """Return a graph as a loaded package of AOTInductor for these arguments, or raise BackendError.

    Packages come from Inductor's cache, which only torch's own code writes to, or are compiled
    here. With `by_torch` they are called as torch does, in 10 to 40 microseconds of Python, else by
    their loader.
    """
    with boundary(BackendError, "AOTInductor"), tempfile.TemporaryDirectory() as folder:
        cached = _cache_path(program, arguments)
        if not cached.exists():
            exported = torch.export.export(module, tuple(arguments), strict=False)
            path = Path(folder, cached.name)
            # otherwise the first call reads a GPU's kernels from files
            settings = {"aot_inductor.embed_kernel_binary": _is_on_gpu(arguments)}
            build_package(exported, path, settings)
            write_cached(cached, path.read_bytes())
        package = _loaded(cached, folder)
    if by_torch:
        return package
    run = package.loader.boxed_run
    tensors = [n for n, value in enumerate(arguments) if isinstance(value, torch.Tensor)]
    if len(tensors) == len(arguments):
        return lambda *values: run(list(values))
    return lambda *values: run([values[n] for n in tensors])


def _loaded(path: Path, folder: str) -> Any:
    """Load a package from a folder that is removed at once: ended workers would fill the disk."""
    usual = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = folder  # the only way to say where
    try:
        return load_package(path)
    finally:
        del os.environ["TMPDIR"]
        if usual is not None:
            os.environ["TMPDIR"] = usual


def _cache_path(program: str, arguments: Sequence[Any]) -> Path:
    forms = [
        (tuple(value.shape), value.stride(), str(value.dtype), str(value.device))
        if isinstance(value, torch.Tensor)
        else value
        for value in arguments
    ]
    here = (torch.__version__, torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())
    digest = hashlib.sha256(repr((program, forms, here)).encode()).hexdigest()
    return inductor_cache() / "aoti_packages" / f"{digest}.pt2"


def _is_on_gpu(arguments: Sequence[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.is_cuda for value in arguments)
