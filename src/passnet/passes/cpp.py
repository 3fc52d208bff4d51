"""C++ kernels for passes on a CPU: compiled with one call of g++, cached by content, called bare.

A pass author writes a C++ function with C linkage that takes pointers and numbers, and gets a
Python callable::

    from passnet.passes import cpp

    scale = cpp.kernel(SOURCE, "scale", "ppnf")   # pointer, pointer, integer, float

    def replacement(x):
        out = torch.empty_like(x)
        scale(x.data_ptr(), out.data_ptr(), x.numel(), 2.0)
        return out

`cpp.kernels` gives one callable a dtype, for a source that defines the function for each.

The source may include `passnet_kernel.h`, which holds conversions of bfloat16, rounding as eager
torch rounds between ops, and `exp`, `tanh`, `erf` that a compiler can vectorise. More headers,
`inductor_kernel.h` and `inductor_vector.h`, are for code that Inductor generated. No header of
torch is needed (`design/009-own-vector-headers.md` compares), so that a kernel compiles in well
under a second where torch's own extension builder takes 6 to 22; a call costs about a microsecond.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from passnet.errors import PassError

INCLUDE = Path(__file__).parent / "include"
"""Folder of the headers that kernels may include."""

FLAGS = (
    "-std=c++17", "-mprefer-vector-width=512", "-O3", "-march=native", "-fopenmp",
    "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared",
)  # fmt: skip
"""Flags of every compilation. Not `-ffast-math`: infinities and NaN keep their meaning."""

CACHE_VARIABLE = "PASSNET_CACHE"

_TYPES: dict[str, Any] = {
    "p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double,
}  # fmt: skip


def kernel(source: str, name: str, signature: str) -> Callable[..., None]:
    """The function `name` of a piece of C++, ready to call.

    Args:
        source: C++ text; the function is `extern "C" void name(...)`.
        name: name of the function.
        signature: one letter an argument: p pointer (`tensor.data_ptr()`), n 64-bit integer,
            f float, d double.

    Raises:
        PassError: no compiler, the source does not compile, or it has no such function.
    """
    unknown = [letter for letter in signature if letter not in _TYPES]
    if unknown:
        raise PassError(
            f"kernel {name}: signature letter {unknown[0]!r} is none of {', '.join(_TYPES)}"
        )
    try:
        function = getattr(ctypes.CDLL(str(build(source))), name)
    except AttributeError as cause:
        raise PassError(f'kernel {name}: the source has no extern "C" function of that name') from (
            cause
        )
    function.argtypes = [_TYPES[letter] for letter in signature]
    function.restype = None
    return function


def kernels(source: str, name: str, signature: str) -> dict[torch.dtype, Callable[..., None]]:
    """The functions `<name>_float32` and `<name>_bfloat16` of a piece of C++, by dtype.

    The source defines both; signature and errors are those of `kernel`.
    """
    return {
        getattr(torch, dtype): kernel(source, f"{name}_{dtype}", signature)
        for dtype in ("float32", "bfloat16")
    }


def build(source: str) -> Path:
    """The shared object that a piece of C++ compiles to, from the cache where it is there.

    Raises:
        PassError: no compiler, or the source does not compile (the compiler's words are given).
    """
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise PassError("C++ kernels need g++; install it, or name another compiler in CXX")
    text = f"{source}\0{_surroundings(compiler)}"
    key = hashlib.sha256(text.encode()).hexdigest()[:32]
    target = _cache_folder() / f"{key}.so"
    if not target.exists():
        _compile(compiler, source, target)
    return target


def _compile(compiler: str, source: str, target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        text = Path(folder) / "kernel.cpp"
        text.write_text(source, encoding="utf-8")
        result = Path(folder) / "kernel.so"
        command = [compiler, *FLAGS, f"-I{INCLUDE}", str(text), "-o", str(result)]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiled.returncode:
            lines = compiled.stderr.replace(str(text), "kernel.cpp").strip().splitlines()
            errors = [line for line in lines if "error" in line] or lines
            raise PassError("kernel does not compile: " + " | ".join(errors[:5]))
        result.replace(target)


def _cache_folder() -> Path:
    folder = Path(os.environ.get(CACHE_VARIABLE) or Path.home() / ".cache" / "passnet") / "cpp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.gettempdir()) / "passnet" / "cpp"
        folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _surroundings(compiler: str) -> str:
    """What a compilation depends on beside its source: the text of every header that it may
    include, flags, compiler, and the processor for which `-march=native` compiles.
    """
    headers = [path.read_text(encoding="utf-8") for path in sorted(INCLUDE.glob("*.h"))]
    command = [compiler, "-dumpfullversion", "-dumpmachine"]
    version = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
    except OSError:
        lines = []
    cpu = [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return "\0".join([*headers, *FLAGS, version, "\n".join(cpu)])
