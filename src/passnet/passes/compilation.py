"""C++ compiled with one call of g++, cached by content, with precompiled headers.

Reading the headers takes half of a small kernel's time, 0.1 s; `make_headers` precompiles them once
for each compiler and processor, in 42 MB. A sandboxed process can only read them.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from passnet.core.hardware import processor_instructions, processor_name
from passnet.core.records.folders import cache_folder, cached_file, is_private, keep_file
from passnet.errors import PassError

INCLUDE = Path(__file__).parent / "include"
FLAGS = (
    "-std=c++17", "-mprefer-vector-width=512", "-O3", "-march=native", "-fopenmp",
    "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared",
)  # fmt: skip
"""Flags of every compilation. Not `-ffast-math`: infinities and NaN keep their meaning."""

HEADERS_VARIABLE = "PASSNET_HEADERS"
"""Variable that names the folder of precompiled headers to a process that cannot make them."""


def build(source: str, flags: Sequence[str] = ()) -> Path:
    """Return the shared object of C++ text, compiled or cached; `flags` come after `FLAGS`.

    Without a compiler, or if it refuses the source, a PassError gives its words.
    """
    compiler = find_compiler()
    if compiler is None:
        raise PassError("C++ kernels need g++; install it, or name another compiler in CXX")
    if "unique" in source:  # of <memory>, a quarter of the time of a small kernel
        flags = (*flags, "-include", "memory")
    text = "\0".join([source, *flags, _surroundings(compiler)])
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    kept = cache_folder("cpp")
    return cached_file(kept, key, ".so") or _compiled(compiler, source, flags, kept, key)


_watches: list[int] = []
"""The addresses of this process's watch of memory, as its libraries know it."""


def check_watch(library: Path) -> None:
    """Raise a PassError if a library that includes `memory_watch.h` has a watch of its own.

    To look is to forget: what one watch saw, another would not.
    """
    find = ctypes.CDLL(str(library)).passnet_watch
    find.restype = ctypes.c_size_t
    _watches.append(find())
    if _watches[0] != _watches[-1]:
        raise PassError("this compiler gives each library its own watch of weights; use g++")


def _compiled(compiler: str, source: str, flags: Sequence[str], kept: Path, key: str) -> Path:
    with tempfile.TemporaryDirectory(dir=kept) as folder:
        text = Path(folder) / "kernel.cpp"
        text.write_text(source, encoding="utf-8")
        result = Path(folder) / "kernel.so"
        headers = _known_headers(compiler)
        first = [] if headers is None else [f"-I{headers}"]
        command = [compiler, *FLAGS, *first, f"-I{INCLUDE}", str(text), "-o", str(result), *flags]
        compiled = subprocess.run(
            command, capture_output=True, text=True, errors="replace", check=False
        )
        if compiled.returncode:
            words = compiled.stderr.replace(str(text), "kernel.cpp").replace(f"{INCLUDE}/", "")
            lines = words.strip().splitlines()
            errors = [line for line in lines if "error" in line] or lines
            raise PassError("kernel does not compile: " + " | ".join(errors[:5]))
        return keep_file(result, kept, key)


def make_headers() -> Path | None:
    """Return the folder of precompiled headers, made if missing; None if it cannot be made."""
    compiler = find_compiler()
    if compiler is None:
        return None
    target = _headers_path(compiler)
    if not target.is_dir():
        with suppress(OSError), tempfile.TemporaryDirectory(dir=target.parent) as folder:
            headers = Path(folder, "made")
            if all(_read_ahead(compiler, name, macro, headers) for name, macro in _read_headers()):
                headers.replace(target)  # another process may have been faster
    return target if target.is_dir() and _is_own(target) else None


def _known_headers(compiler: str) -> Path | None:
    """Return the folder of precompiled headers, this process's or its sandbox's, or None."""
    named = os.environ.get(HEADERS_VARIABLE)
    folder = _headers_path(compiler) if named is None else Path(named)
    return folder if folder.is_dir() and (named or _is_own(folder)) else None


def _is_own(headers: Path) -> bool:
    return is_private(headers) and all(map(is_private, headers.iterdir()))


def _headers_path(compiler: str) -> Path:
    key = hashlib.sha256(_surroundings(compiler).encode()).hexdigest()[:32]
    return cache_folder("headers") / key


def _read_headers() -> tuple[tuple[str, str], ...]:
    """Return the headers to precompile, each with the macro before it in generated code."""
    width = 64 if "avx512f" in processor_instructions() else 32
    return (
        ("inductor_kernel.h", "PASSNET_HALF_IN_LOOPS="),
        ("inductor_vector.h", f"PASSNET_VECTOR_BYTES={width}"),
    )


def _read_ahead(compiler: str, name: str, macro: str, out: Path) -> bool:
    """Precompile a header with a macro into `out`; return whether that worked."""
    precompiled = out / f"{name}.gch"  # what it looks for first, beside where the header may be
    precompiled.parent.mkdir(mode=0o755, exist_ok=True)
    command = [compiler, *FLAGS, f"-D{macro}", "-x", "c++-header", str(INCLUDE / name)]
    run = subprocess.run([*command, "-o", str(precompiled)], capture_output=True, check=False)
    if run.returncode == 0:
        precompiled.chmod(0o644)
    return run.returncode == 0


def find_compiler() -> str | None:
    """Return the C++ compiler: g++, or the one that CXX names; None if there is none."""
    return shutil.which(os.environ.get("CXX", "g++"))


@cache
def _surroundings(compiler: str) -> str:
    """Return the headers, flags, compiler and processor that a compilation depends on."""
    headers = [path.read_text(encoding="utf-8") for path in sorted(INCLUDE.rglob("*.h"))]
    command = [compiler, "-dumpfullversion", "-dumpmachine"]
    version = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    processor = (processor_name(), *sorted(processor_instructions()))
    return "\0".join([*headers, *FLAGS, version, *processor])
