"""C++ kernels for passes on a CPU: compiled with one call of g++, cached by content, called bare.

A pass author writes a C++ function with C linkage that takes pointers and numbers, and gets a
Python callable that takes tensors for the pointers::

    from passnet.passes import cpp

    scale = cpp.kernel(SOURCE, "scale")   # void scale(const float*, float*, int64_t, float)

    def replacement(x):
        out = torch.empty_like(x)
        scale(x, out, x.numel(), 2.0)
        return out

The compiler states the function's types, so that tensors of other dtypes are refused. The headers
`passnet_kernel.h` for authors, and `inductor_kernel.h` and `inductor_vector.h` for generated code,
include none of torch's (`design/009-own-vector-headers.md`), so that a kernel compiles in well
under a second; a call costs about a microsecond.
"""

import ctypes
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from passnet.errors import PassError
from passnet.inductor.compiler import empty_strided_cpu
from passnet.passes.compilation import build
from passnet.passes.epilogues import note_source, traced_op
from passnet.passes.kernel_op import KernelCode, function_of, kernel_code, kernel_op, op_name

_TYPES: dict[str, Any] = {
    "p": ctypes.c_void_p, "n": ctypes.c_int64, "f": ctypes.c_float, "d": ctypes.c_double,
}  # fmt: skip

_NUMBERS: dict[str, Any] = {
    "f": ctypes.c_float, "d": ctypes.c_double, "?": ctypes.c_bool, "c": ctypes.c_char,
    "b": ctypes.c_int8, "h": ctypes.c_int16, "i": ctypes.c_int32, "l": ctypes.c_int64,
    "B": ctypes.c_uint8, "H": ctypes.c_uint16, "I": ctypes.c_uint32, "L": ctypes.c_uint64,
}  # fmt: skip
_ELEMENTS: dict[str, torch.dtype | None] = {
    "f": torch.float32, "d": torch.float64, "e": torch.float16, "g": torch.bfloat16,
    "?": torch.bool, "b": torch.int8, "h": torch.int16, "i": torch.int32, "l": torch.int64,
    "B": torch.uint8, "H": torch.uint16, "I": torch.uint32, "L": torch.uint64, "c": None, "v": None,
}  # fmt: skip
"""Dtype of a pointer, by its letter; `char*` and `void*` are bytes of any dtype."""

_bare: list[str] = []
"""Kernels that take addresses: state of the process, whose count `load_passes` compares."""

_ops: list[Callable[[], torch._ops.OpOverload]] = []
"""Makers of the ops of this process's kernels, in order, of which `load_passes` takes the last."""

_is_traced: Callable[[], int] = torch._C._len_torch_dispatch_stack


def empty_strided(
    shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype
) -> torch.Tensor:
    """Return an uninitialised CPU tensor, in half the time of `torch.empty_strided`."""
    if _is_traced():
        return torch.empty_strided(shape, stride, dtype=dtype)
    return empty_strided_cpu(shape, stride, dtype)


def num_bare_kernels() -> int:
    """Return the number of this process's kernels that take unchecked addresses."""
    return len(_bare)


def kernel_ops(first: int = 0) -> tuple[Callable[[], torch._ops.OpOverload], ...]:
    """Return functions that make the ops of this process's kernels, from one on."""
    return tuple(_ops[first:])


def kernel(source: str, name: str, signature: str | None = None) -> Callable[..., None]:
    """Return the function `name` of C++ text, ready to call with CPU tensors and numbers.

    A pointer takes a tensor of its dtype (`char*` and `void*` of any); shapes and strides are the
    author's to guard.

    Args:
        source: C++ text with `extern "C" void name(...)`, or one that returns a `const char*`: null
            or the text of a RuntimeError.
        name: name of the function.
        signature: for old folders, one letter an argument: p address (`tensor.data_ptr()`), n
            64-bit integer, f float, d double. Such unchecked passes are judged, but not applied by
            `torch.compile(backend="passnet")`.

    Raises:
        PassError: no compiler, the source does not compile, or it has no such function.
    """
    if signature is None:
        return _typed(source, [name], name)
    unknown = [letter for letter in signature if letter not in _TYPES]
    if unknown:
        raise PassError(f"kernel {name}: {unknown[0]!r} of its signature is none of {[*_TYPES]}")
    function = function_of(build(source), name)
    function.argtypes = [_TYPES[letter] for letter in signature]
    function.restype = None
    if "p" in signature:
        _bare.append(name)
    return function


def kernels(
    source: str, name: str, signature: str | None = None
) -> dict[torch.dtype, Callable[..., None]]:
    """Return the functions `<name>_float32` and `<name>_bfloat16` of a source by dtype, and
    `<name>_float16` if it is there.
    """
    dtypes = [torch.float32, torch.bfloat16]
    if f"{name}_float16" in source:
        dtypes.append(torch.float16)
    names = [f"{name}_{str(dtype).removeprefix('torch.')}" for dtype in dtypes]
    if signature is None:
        callables = [_typed(source, names, function_name) for function_name in names]
    else:
        callables = [kernel(source, function_name, signature) for function_name in names]
    return dict(zip(dtypes, callables, strict=True))


def _typed(source: str, names: list[str], name: str) -> Callable[..., None]:
    """Return a function of a source whose types the compiler states."""
    lines = [
        f"PASSNET_SIGNATURE({function_name})" for function_name in names if function_name in source
    ]
    text = "\n".join([source, '#include "passnet_signature.h"', *lines, ""])
    path = build(text)
    function, code = function_of(path, name), kernel_code(path, name)
    note_source(op_name(code), text, name)
    pairs = list(zip(code.kinds, code.elements, strict=True))
    types, dtypes = [], {}
    for number, (kind, element) in enumerate(pairs):
        types_by_letter: dict[str, Any] = _NUMBERS if kind == "n" else _ELEMENTS
        if element not in types_by_letter:
            raise PassError(
                f"kernel {name}: parameter {number + 1} is of a type that no tensor or number has; "
                "use float, double, f16, bf16, bool, integers, or a pointer to one of these"
            )
        types.append(types_by_letter[element] if kind == "n" else ctypes.c_void_p)
        if kind != "n":
            dtypes[number] = types_by_letter[element]
    function.argtypes = types
    function.restype = ctypes.c_char_p if code.may_fail else None
    call = _checked_call(function, code, dtypes)
    _ops.append(partial(kernel_op, code))
    return call


def _checked_call(
    function: Any, code: KernelCode, dtypes: dict[int, torch.dtype | None]
) -> Callable[..., None]:
    """Return a function that checks tensors by position, and refuses other dtypes and devices.

    It is made as code, since a loop over the parameters costs more than many kernels. Tensors
    without memory, as tracers have, go to the kernel as an op.
    """
    name = code.name
    params = [f"a{number}" for number in range(len(function.argtypes))]
    arguments = [f"p{number}" if number in dtypes else param for number, param in enumerate(params)]
    lines = [f"        p{number} = a{number}.data_ptr()\n" for number in dtypes]
    addresses = " and ".join(f"p{number}" for number in dtypes)
    checks = [f"not a{number}.is_cpu" for number in dtypes]
    checks += [
        f"a{number}.dtype is not dtype_{number}" for number, dtype in dtypes.items() if dtype
    ]

    def trace(values: tuple[Any, ...]) -> None:
        traced_op(kernel_op(code))(*values)

    def is_fake(values: tuple[Any, ...]) -> bool:
        from torch._subclasses.fake_tensor import FakeTensor

        return any(isinstance(value, FakeTensor) for value in values)

    def refuse(values: tuple[Any, ...]) -> None:
        for number, dtype in dtypes.items():
            value = values[number]
            is_tensor = isinstance(value, torch.Tensor)
            if is_tensor and value.is_cpu and dtype in (None, value.dtype):
                continue
            expected = f"a tensor of {dtype}" if dtype else "a tensor"
            actual = (
                f"one of {value.dtype} on {value.device}" if is_tensor else type(value).__name__
            )
            raise TypeError(
                f"kernel {name}: argument {number + 1} must be {expected} on the CPU, not {actual}"
            )

    def fail(error: bytes) -> None:
        raise RuntimeError(f"kernel {name}: {error.decode()}")

    params_text = "".join(f"{param}, " for param in params)
    text = (
        f"def call({params_text}):\n"
        f"    try:\n"
        f"        if {' or '.join(checks) or False}:\n"
        f"            refuse(({params_text}))\n"
        f"    except AttributeError:\n"
        f"        refuse(({params_text}))\n"
        f"    try:\n"
        f"{''.join(lines) or '        pass'}\n"
        f"    except RuntimeError:\n"  # as functional tensors raise it
        f"        return trace(({params_text}))\n"
        f"    if not ({addresses or True}) and is_fake(({params_text})):\n"
        f"        return trace(({params_text}))\n"
        f"    {'' if function.restype is None else 'error = '}function({', '.join(arguments)})\n"
    )
    if function.restype is not None:
        text += "    if error is not None:\n        fail(error)\n"
    scope: dict[str, Any] = {"function": function, "refuse": refuse, "fail": fail}
    scope |= {"trace": trace, "is_fake": is_fake}
    scope |= {f"dtype_{number}": dtype for number, dtype in dtypes.items()}
    exec(text, scope)  # noqa: S102 (text of ours alone)
    call: Callable[..., None] = scope["call"]
    call.__name__ = call.__qualname__ = name
    return call
