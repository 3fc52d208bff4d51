"""C++ kernels as ops of torch, which tracers and AOTInductor see in place of their calls.

A package of AOTInductor calls C functions of one more shared object, which find the kernels, as
they were judged, in a table.
"""

import ctypes
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from passnet.core.records.serialise import make_folder, read_json, write_json
from passnet.errors import PassError
from passnet.passes.compilation import build

_codes: dict[torch._ops.OpOverload, "KernelCode"] = {}
"""The kernel of each op. State of the process, as ops of torch are: they are defined once."""

_SCHEMA_TYPES = {"f": "float", "d": "float", "?": "bool"} | dict.fromkeys("bhilBHIL", "int")


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A compiled function: its name, shared object, and letters (see `passnet_signature.h`).

    A function that `may_fail` returns the text of an error.
    """

    name: str
    library: Path
    kinds: str
    elements: str
    may_fail: bool


@cache
def _library() -> torch.library.Library:
    return torch.library.Library("passnet_kernel", "FRAGMENT")


def kernel_op(code: KernelCode, call: Callable[..., None]) -> torch._ops.OpOverload:
    """Return the op that calls a kernel, made once; raise PassError if it takes a character."""
    name = f"{code.name}_{code.library.stem}".replace("-", "_")
    if not hasattr(torch.ops.passnet_kernel, name):
        params = [_param(code, number) for number in range(len(code.kinds))]
        tags = [torch.Tag.needs_exact_strides]  # those that the replacement gave
        _library().define(f"{name}({', '.join(params)}) -> ()", tags=tags)
        _library().impl(name, call, "CPU")
        torch.library.register_fake(f"passnet_kernel::{name}", lambda *args: None, lib=_library())
        _codes[getattr(torch.ops.passnet_kernel, name).default] = code
    op: torch._ops.OpOverload = getattr(torch.ops.passnet_kernel, name).default
    return op


def _param(code: KernelCode, number: int) -> str:
    kind, element = code.kinds[number], code.elements[number]
    if kind != "n":
        return f"Tensor(a{number}!) a{number}" if kind == "w" else f"Tensor a{number}"
    if element not in _SCHEMA_TYPES:
        raise PassError(f"kernel {code.name}: parameter {number + 1} is a char; take an int8_t")
    return f"{_SCHEMA_TYPES[element]} a{number}"


def kernels_of(graph: torch.fx.Graph) -> dict[torch._ops.OpOverload, KernelCode]:
    """Return the kernels that a traced graph calls, by their ops."""
    called: list[Any] = [value for node in graph.nodes for value in (node.target, *node.args)]
    return {
        op: _codes[op] for op in called if isinstance(op, torch._ops.OpOverload) and op in _codes
    }


KERNELS_FOLDER, RECORD_FILE = "kernels", "kernels.json"

_C_NUMBERS = {"f": "double", "d": "double", "?": "int32_t"} | dict.fromkeys("bhilBHIL", "int64_t")
"""C type of a number as AOTInductor passes it, by the kernel's letter."""

_C_TYPES = {
    "f": "float", "d": "double", "?": "bool", "b": "int8_t", "h": "int16_t", "i": "int32_t",
    "l": "int64_t", "B": "uint8_t", "H": "uint16_t", "I": "uint32_t", "L": "uint64_t",
}  # fmt: skip

_HEAD = """\
#include <cstdint>
using AtenTensorHandle = void*;
extern "C" int32_t aoti_torch_get_data_ptr(AtenTensorHandle, void**);
static void* kernels[{count}];
extern "C" void set_kernel(int number, void* kernel) {{ kernels[number] = kernel; }}
"""


@dataclass(frozen=True, slots=True)
class KernelFiles:
    """The table's shared object, and each kernel's shared object and name."""

    shims: str
    kernels: tuple[tuple[str, str], ...]


def write_kernels(
    kernels: Mapping[torch._ops.OpOverload, KernelCode], folder: Path
) -> dict[torch._ops.OpOverload, list[str]]:
    """Write kernels into a folder and load them; return AOTInductor's `custom_ops_to_c_shims`."""
    if not kernels:
        return {}
    home = folder / KERNELS_FOLDER
    make_folder(home)
    names = {op: op._schema.name.removeprefix("passnet_kernel::") for op in kernels}
    declared = {op: _declaration(names[op], code) for op, code in kernels.items()}
    parts = [
        _definition(number, declared[op], code) for number, (op, code) in enumerate(kernels.items())
    ]
    libraries = f"-L{Path(torch.__file__).parent / 'lib'}", "-ltorch_cpu"
    shims = build("\n".join([_HEAD.format(count=len(kernels)), *parts]), libraries)
    for path in {shims, *(code.library for code in kernels.values())}:
        shutil.copy(path, home)
    files = tuple((code.library.name, code.name) for code in kernels.values())
    write_json(home / RECORD_FILE, KernelFiles(shims.name, files))
    load_kernels(folder)
    return {op: [text] for op, text in declared.items()}


def load_kernels(folder: Path) -> None:
    """Load a folder's kernels for later packages; raise InputError or OSError if damaged."""
    home = (folder / KERNELS_FOLDER).resolve()
    if not home.is_dir():
        return
    files = read_json(home / RECORD_FILE, KernelFiles)
    # a package finds the functions that it calls among those that are global
    shims = ctypes.CDLL(str(home / files.shims), ctypes.RTLD_GLOBAL)
    for number, (library, name) in enumerate(files.kernels):
        kernel = getattr(ctypes.CDLL(str(home / library)), name)
        shims.set_kernel(number, ctypes.cast(kernel, ctypes.c_void_p))


def _declaration(name: str, code: KernelCode) -> str:
    params = [
        f"{'AtenTensorHandle' if kind != 'n' else _C_NUMBERS[element]} a{number}"
        for number, (kind, element) in enumerate(zip(code.kinds, code.elements, strict=True))
    ]
    # last comes what it returns, which is nothing
    return f"int32_t aoti_torch_cpu_{name}({', '.join([*params, 'void*'])})"


def _definition(index: int, declaration: str, code: KernelCode) -> str:
    types, arguments, lines = [], [], [f'extern "C" {declaration} {{']
    for number, (kind, element) in enumerate(zip(code.kinds, code.elements, strict=True)):
        types.append(_C_TYPES[element] if kind == "n" else "void*")
        arguments.append(f"a{number}" if kind == "n" else f"p{number}")
        if kind != "n":
            lines += [
                f"  void* p{number};",
                f"  if (aoti_torch_get_data_ptr(a{number}, &p{number})) return 1;",
            ]
    returned = "const char*" if code.may_fail else "void"
    call = f"(({returned} (*)({', '.join(types)}))kernels[{index}])({', '.join(arguments)})"
    end = [f"  return {call} != nullptr;"] if code.may_fail else [f"  {call};", "  return 0;"]
    return "\n".join([*lines, *end, "}"])
