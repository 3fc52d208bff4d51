"""C++ kernels as ops of torch, which tracers and Inductor see in place of their calls.

Such an op is called without Python in between: a shared object of its own takes the arguments from
torch's stack by the functions of torch's stable interface in C (`aoti_torch/c/shim.h`). A package
of AOTInductor calls C functions of one more shared object, which find the kernels, as they were
judged, in a table.
"""

import ctypes
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch

from passnet.core.records.folders import cache_folder, cached_file
from passnet.core.records.serialise import make_folder, read_json, write_json
from passnet.errors import PassError
from passnet.passes.compilation import build

_TORCH_FOLDER = Path(torch.__file__).parent / "lib"
_OF_TORCH = (
    "aoti_torch_get_data_ptr", "aoti_torch_get_dtype", "aoti_torch_delete_tensor_object",
    "aoti_torch_check",
)  # fmt: skip
"""Functions of torch that an op calls, by address: to link with torch takes half a second."""

_codes: dict[str, "KernelCode"] = {}
"""The kernel of each op, by name. State of the process, as ops of torch are: defined once."""

_makers: list[Callable[[], None]] = []
"""Makers of ops that the process knows by their source, should the cache have lost one."""

_SCHEMA_TYPES = {"f": "float", "d": "float", "?": "bool"} | dict.fromkeys("bhilBHIL", "SymInt")


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
def kernel_library() -> torch.library.Library:
    """Return the library that defines ops of kernels, and let torch find them by name."""
    vars(torch.ops.passnet_kernel)["__getattr__"] = _make_named  # of a module, so it is asked first
    return torch.library.Library("passnet_kernel", "FRAGMENT")


def _make_named(name: str) -> None:
    """Make the op of a kernel that another process compiled, if the cache has it."""
    parts = None if name in _codes else re.fullmatch("(.+)_([0-9a-f]{32})_[0-9a-f]{32}", name)
    library = cached_file(cache_folder("cpp"), parts[2], ".so") if parts else None
    with suppress(PassError, OSError):
        if parts and library:
            kernel_op(kernel_code(library, parts[1]))  # of this name, if the content is the same
        elif parts:
            for make in _makers:
                make()
    raise AttributeError(name)  # torch goes on to look among all ops


def add_maker(make: Callable[[], None]) -> None:
    """Add a function that makes ops, which is asked for one that the cache has lost."""
    if make not in _makers:
        _makers.append(make)


def kernel_code(library: Path, name: str) -> KernelCode:
    """Return a function with the letters that the compiler stated for it.

    Raises:
        PassError: the shared object has no such function.
    """
    letters = function_of(library, f"passnet_signature_of_{name}")
    letters.restype, letters.argtypes = ctypes.c_char_p, [ctypes.c_int]
    return KernelCode(name, library, letters(0).decode(), letters(1).decode(), letters(2) == b"e")


def function_of(library: Path, name: str) -> Any:
    """Return a function of a shared object; raise PassError if there is none."""
    try:
        return getattr(ctypes.CDLL(str(library)), name)
    except AttributeError as cause:
        raise PassError(f'kernel {name}: no extern "C" function has that name') from cause


def op_name(code: KernelCode) -> str:
    """Return the name of a kernel's op, which is of its content."""
    return f"{code.name}_{code.library.stem}".replace("-", "_")


def kernel_op(code: KernelCode) -> torch._ops.OpOverload:
    """Return the op that calls a kernel, made once.

    Raises:
        PassError: it takes a character, or writes into no argument, so that torch would leave it
            out.
    """
    name = op_name(code)
    if "w" not in code.kinds:
        raise PassError(f"kernel {code.name}: it takes no pointer to write to, so it is no op")
    if name not in _codes:
        params = [_param(code, number) for number in range(len(code.kinds))]
        boxed = ctypes.CDLL(str(build(_boxed(code))))  # first, as an op stays once it is defined
        _codes[name] = code
        tags = [torch.Tag.needs_exact_strides]  # those that the replacement gave
        kernel_library().define(f"{name}({', '.join(params)}) -> ()", tags=tags)
        _implement(name, code, boxed)
        fake_name, library = f"passnet_kernel::{name}", kernel_library()
        torch.library.register_fake(fake_name, lambda *args: None, lib=library)
    op: torch._ops.OpOverload = getattr(torch.ops.passnet_kernel, name).default
    return op


def _implement(name: str, code: KernelCode, boxed: ctypes.CDLL) -> None:
    kernel = ctypes.CDLL(str(code.library))
    torch_cpu, library = _torch_library()
    functions = getattr(kernel, code.name), *(getattr(torch_cpu, each) for each in _OF_TORCH)
    boxed.set_functions(*map(_address, functions))
    if torch_cpu.aoti_torch_library_impl(library, name.encode(), _address(boxed.passnet_boxed)):
        raise PassError(f"kernel {code.name}: torch takes no op of that name")


@cache
def _torch_library() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """Return torch's own functions, and its handle of our ops' kernels on a CPU."""
    torch_cpu, library = ctypes.CDLL(str(_TORCH_FOLDER / "libtorch_cpu.so")), ctypes.c_void_p()
    where = b"passnet_kernel", b"CPU", __file__.encode(), ctypes.c_uint32(1)
    if torch_cpu.aoti_torch_library_init_impl(*where, ctypes.byref(library)):
        raise PassError("this version of torch takes no kernels in C++")
    return torch_cpu, library


def _address(function: Any) -> ctypes.c_void_p:
    return ctypes.cast(function, ctypes.c_void_p)


def _boxed(code: KernelCode) -> str:
    """Return C++ text with a function that torch calls with an op's arguments on its stack.

    Tensors come as handles that are then ours, numbers as 64-bit integers, doubles or bools.
    """
    types, arguments, tensors, checks = [], [], [], []
    for number, (kind, element) in enumerate(zip(code.kinds, code.elements, strict=True)):
        if kind == "n":
            boxed = "bool" if element == "?" else _C_NUMBERS[element]
            types.append(C_TYPES[element])
            arguments.append(f"({C_TYPES[element]})as<{boxed}>(s[{number}])")
        else:
            types.append("void*")
            tensors.append(f"Tensor a{number}(s[{number}]);")
            arguments.append(f"a{number}.address")
            if element in _SCALAR_TYPES:
                checks.append(f"a{number}.dtype != {_SCALAR_TYPES[element]}")
    call = f"(({returned(code)} (*)({', '.join(types)}))kernel)({', '.join(arguments)});"
    return _BOXED.format(
        op=op_name(code),
        name=code.name,
        tensors="\n    ".join(tensors),
        checks=" || ".join(checks) or "false",
        call=f"error = {call}" if code.may_fail else call,
    )


def returned(code: KernelCode) -> str:
    """Return the C type of a kernel's result."""
    return "const char*" if code.may_fail else "void"


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
    ops = [op for op in called if isinstance(op, torch._ops.OpOverload)]
    return {op: _codes[name_of(op)] for op in ops if op.namespace == "passnet_kernel"}


def name_of(op: torch._ops.OpOverload) -> str:
    """Return the name of an op within its namespace."""
    return op._schema.name.rpartition("::")[2]


def kernel_named(name: str) -> KernelCode:
    """Return the kernel of an op of this process; raise PassError if there is none."""
    if name in _codes:
        return _codes[name]
    raise PassError(f"no kernel {name} is loaded; load the passes that it is of first")


KERNELS_FOLDER, RECORD_FILE = "kernels", "kernels.json"

_C_NUMBERS = {"f": "double", "d": "double", "?": "int32_t"} | dict.fromkeys("bhilBHIL", "int64_t")
"""C type of a number as AOTInductor passes it, by the kernel's letter."""

C_TYPES = {
    "f": "float", "d": "double", "?": "bool", "b": "int8_t", "h": "int16_t", "i": "int32_t",
    "l": "int64_t", "B": "uint8_t", "H": "uint16_t", "I": "uint32_t", "L": "uint64_t",
}  # fmt: skip

_SCALAR_TYPES = {
    "f": 6, "d": 7, "e": 5, "g": 15, "?": 11, "b": 1, "h": 2, "i": 3, "l": 4,
    "B": 0, "H": 27, "I": 28, "L": 29,
}  # fmt: skip
"""Dtype of a pointer as torch numbers it, which is `c10::ScalarType`, by the kernel's letter."""

_BOXED = """\
// {op}: a library of its own, as it holds the kernel's address
#include <cstdint>
#include <cstring>
namespace {{
void* kernel;
int32_t (*get_data_ptr)(void*, void**);
int32_t (*get_dtype)(void*, int32_t*);
int32_t (*delete_tensor)(void*);
void (*check)(bool, const char*, const char*, uint32_t, const char*);
template <typename T>
T as(uint64_t bits) {{
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}}
struct Tensor {{
  void *handle, *address = nullptr;
  int32_t dtype = -1;
  explicit Tensor(uint64_t bits) : handle(as<void*>(bits)) {{
    if (!get_data_ptr(handle, &address)) get_dtype(handle, &dtype);
  }}
  ~Tensor() {{ delete_tensor(handle); }}
}};
}}  // namespace
extern "C" void set_functions(void* own, void* address, void* dtype, void* remove, void* ensure) {{
  kernel = own;
  get_data_ptr = (decltype(get_data_ptr))address;
  get_dtype = (decltype(get_dtype))dtype;
  delete_tensor = (decltype(delete_tensor))remove;
  check = (decltype(check))ensure;
}}
extern "C" void passnet_boxed(uint64_t* s, uint64_t, uint64_t) {{
  const char* error = nullptr;
  {{
    {tensors}
    if ({checks}) error = "a tensor is of another dtype than its parameter";
    else {call}
  }}
  if (error == nullptr) return;
  char text[512] = "kernel {name}: ";
  std::strncat(text, error, sizeof text - std::strlen(text) - 1);
  check(false, "passnet_boxed", "kernel", 0, text);
}}
"""

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
    declared = {op: _declaration(name_of(op), code) for op, code in kernels.items()}
    parts = [
        _definition(number, declared[op], code) for number, (op, code) in enumerate(kernels.items())
    ]
    libraries = f"-L{_TORCH_FOLDER}", "-ltorch_cpu"
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
        types.append(C_TYPES[element] if kind == "n" else "void*")
        arguments.append(f"a{number}" if kind == "n" else f"p{number}")
        if kind != "n":
            lines += [
                f"  void* p{number};",
                f"  if (aoti_torch_get_data_ptr(a{number}, &p{number})) return 1;",
            ]
    call = f"(({returned(code)} (*)({', '.join(types)}))kernels[{index}])({', '.join(arguments)})"
    end = [f"  return {call} != nullptr;"] if code.may_fail else [f"  {call};", "  return 0;"]
    return "\n".join([*lines, *end, "}"])
