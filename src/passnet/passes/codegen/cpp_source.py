"""Generated code as one C++ source of a pass: its kernels, and a function that runs them in order.

The source includes no header of torch, but `inductor_kernel.h` or `inductor_vector.h` of passnet.
"""

import re
from collections.abc import Sequence

from passnet.errors import AuthorError
from passnet.inductor.generated_code import GeneratedCode, GeneratedKernel

ENTRY = "launch"
"""Name of the function that runs all kernels: pointers to the inputs, then to the outputs."""

LINKAGE = re.compile(r'extern "C"\s+void\s+kernel\(')

CHECKS = ("TORCH_CHECK", "_integral(", "integer_div_error")
"""Checks that can fail in a kernel: an index out of bounds, an integer division by zero."""

CPP_TYPES = {"float64": "double", "float32": "float", "bool": "bool"}
CPP_TYPES |= {"float16": "at::Half", "bfloat16": "at::BFloat16"}
CPP_TYPES |= {name: f"{name}_t" for name in ("int64", "int32", "int16", "int8", "uint8")}


def cpp_source(code: GeneratedCode, pragmas: Sequence[str] = ()) -> str:
    """Return the C++ of generated code with the entry `ENTRY`, after some `pragmas`.

    An unknown form or dtype of a kernel is an AuthorError.
    """
    head = '#include "inductor_kernel.h"'
    if code.vector_bytes:
        head = f'#define PASSNET_VECTOR_BYTES {code.vector_bytes}\n#include "inductor_vector.h"'
    kernels = [_kernel_text(kernel, _has_no_alias(code, kernel.name)) for kernel in code.kernels]
    return "\n".join([*pragmas, head, "", *kernels, _entry_text(code)])


def fails_in_threads(code: GeneratedCode) -> bool:
    """Return whether a kernel may fail inside a parallel loop, which no error can leave."""
    return any(_may_fail(kernel) and "omp parallel" in kernel.text for kernel in code.kernels)


def _may_fail(kernel: GeneratedKernel) -> bool:
    return any(check in kernel.text for check in CHECKS)


def _has_no_alias(code: GeneratedCode, kernel: str) -> bool:
    """Return whether a kernel's arguments never share memory, in any call."""
    calls = [
        [slot.memory for slot in call.arguments] for call in code.calls if call.kernel == kernel
    ]
    return all(len(set(memory)) == len(memory) for memory in calls)


def _kernel_text(kernel: GeneratedKernel, has_no_alias: bool) -> str:
    """Return a kernel in a namespace, with vectorising functions and, unaliased, `__restrict__`."""
    text = kernel.text.replace("#include <torch/csrc/inductor/cpp_prefix.h>", "")
    text = text.replace("std::", "inductor::").strip()
    if len(LINKAGE.findall(text)) != 1 or "#include" in text:
        raise AuthorError(f"{kernel.name}: the generated C++ has another form than known")
    before, after = LINKAGE.split(text)
    params, _, body = after.partition(")")
    if has_no_alias:
        params = re.sub(r"\*\s*(\w+)(?=,|$)", r"* __restrict__ \1", params)
    lines = f"{before}static void kernel({params}){body}".splitlines()
    dedented = [_dedent(line) for line in lines if not line.lstrip().startswith("//")]
    return "\n".join([f"namespace {kernel.name} {{", *dedented, "}", ""])


def _dedent(line: str) -> str:
    """Return a line with a fourth of its indentation."""
    bare = line.lstrip(" ")
    return " " * ((len(line) - len(bare)) // 4) + bare.rstrip()


def _entry_text(code: GeneratedCode) -> str:
    """Return the function that allocates scratch memory and calls the kernels."""
    types = {name: _cpp_type(layout.dtype) for name, layout in code.inputs.items()}
    types |= {name: _cpp_type(dtype) for name, (dtype, _) in code.buffers.items()}
    results = [name for name, _ in code.outputs]
    params = [f"const {types[name]}* {name}" for name in code.inputs]
    params += [f"{types[name]}* {name}" for name in results]
    may_fail = any(_may_fail(kernel) for kernel in code.kernels)
    result = "const char*" if may_fail else "void"
    lines = [f'extern "C" {result} {ENTRY}({", ".join(params)}) {{', *["try {"] * may_fail]
    for name, (_, count) in code.buffers.items():
        if name not in results:
            lines.append(f"  inductor::Scratch<{types[name]}> {name}_memory({count});")
            lines.append(f"  {types[name]}* {name} = {name}_memory.data;")
    signatures = {kernel.name: kernel.types for kernel in code.kernels}
    for call in code.calls:
        pointers = []
        for slot, pointer_type in zip(call.arguments, signatures[call.kernel], strict=True):
            if slot.memory in code.inputs and not pointer_type.startswith("const "):
                raise AuthorError(f"{call.kernel} writes into argument {slot.memory}")
            address = f"{slot.memory} + {slot.offset}" if slot.offset else slot.memory
            pointers.append(f"({pointer_type})({address})")
        lines.append(f"  {call.kernel}::kernel({', '.join(pointers)});")
    if may_fail:
        lines += ["} catch (const inductor::Failure& failure) {", "  return failure.text;", "}"]
        lines.append("return nullptr;")
    return "\n".join([*lines, "}", ""])


def _cpp_type(dtype: str) -> str:
    if dtype not in CPP_TYPES:
        raise AuthorError(f"there are no kernels in {dtype}")
    return CPP_TYPES[dtype]
