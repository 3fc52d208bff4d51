"""Kernels for a package of AOTInductor: the C functions by which its code calls them, and the files
that a process needs before it loads the package.

The kernels stay the shared objects that were judged. What AOTInductor calls are functions of one
more shared object, which take its handles of tensors and find the kernels in a table.
"""

import ctypes
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from passnet.core.records.serialise import make_folder, read_json, write_json
from passnet.passes.compilation import build
from passnet.passes.kernel_op import KernelCode

KERNELS_FOLDER, RECORD_FILE = "kernels", "kernels.json"

_NUMBERS = {"f": "double", "d": "double", "?": "int32_t"} | dict.fromkeys("bhilBHIL", "int64_t")
"""What AOTInductor gives for a number, by the letter of what the kernel takes."""

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
    """What lies in a folder: the shared object with the table, and for each place of the table the
    shared object of the kernel and its name there.
    """

    shims: str
    kernels: tuple[tuple[str, str], ...]


def write_kernels(
    kernels: Mapping[torch._ops.OpOverload, KernelCode], folder: Path
) -> dict[torch._ops.OpOverload, list[str]]:
    """Leave some kernels in a folder, and load them.

    Returns:
        AOTInductor's `custom_ops_to_c_shims`: of each op the C declarations.
    """
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
    """Load the kernels in a folder, if it has any, for the packages that are loaded after.

    Raises:
        InputError: their record is damaged.
        OSError: a shared object is missing or damaged.
    """
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
        f"{'AtenTensorHandle' if kind != 'n' else _NUMBERS[element]} a{number}"
        for number, (kind, element) in enumerate(zip(code.kinds, code.elements, strict=True))
    ]
    # last comes what it returns, which is nothing
    return f"int32_t aoti_torch_cpu_{name}({', '.join([*params, 'void*'])})"


def _definition(place: int, declaration: str, code: KernelCode) -> str:
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
    call = f"(({returned} (*)({', '.join(types)}))kernels[{place}])({', '.join(arguments)})"
    end = [f"  return {call} != nullptr;"] if code.may_fail else [f"  {call};", "  return 0;"]
    return "\n".join([*lines, *end, "}"])
