"""The library by which a worker fences its tensors in, compiled once for each torch."""

import hashlib
import subprocess
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from passnet.core.jobs.cache import cache_folder
from passnet.passes.compilation import find_compiler

_SOURCE = Path(__file__).parents[1] / "worker" / "fence.cpp"
_FLAGS = ("-std=c++20", "-O1", "-fPIC", "-shared")


@cache
def fence_library() -> Path | None:
    """The library, from the cache where it is there; None where it cannot be compiled.

    torch is not imported: where its headers are is asked of Python.
    """
    compiler = find_compiler()
    torch = find_spec("torch")
    if compiler is None or torch is None or torch.origin is None:
        return None
    source = _SOURCE.read_text(encoding="utf-8")
    text = "\0".join([source, *_FLAGS, compiler, torch.origin, _torch_version()])
    target = cache_folder("fence") / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.so"
    if not target.exists() and not _compile(compiler, Path(torch.origin).parent, target):
        return None
    return target


def _torch_version() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "unknown"


def _compile(compiler: str, torch: Path, target: Path) -> bool:
    """Compile the library and put it in its place at once; whether that worked."""
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        result = Path(folder) / "fence.so"
        where = (f"-I{torch / 'include'}", f"-L{torch / 'lib'}", "-lc10")
        command = [compiler, *_FLAGS, str(_SOURCE), "-o", str(result), *where]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
        result.replace(target)
        return True
