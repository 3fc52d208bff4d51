"""C++ kernels as custom ops of ONNX Runtime: nodes in its files, and a library that calls them.

An op takes one input for each parameter of its kernel: a tensor, a number as a tensor of one
element, or for a tensor that the kernel fills, its sizes. So sizes may vary from call to call.
"""

import operator
import shutil
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram

from passnet.core.records.serialise import make_folder
from passnet.errors import PassError
from passnet.passes.compilation import build
from passnet.passes.kernel_op import (
    C_TYPES,
    KernelCode,
    kernel_library,
    kernel_named,
    kernels_of,
    op_name,
    returned,
)

DOMAIN = "passnet"
"""The domain of the ops in ONNX files."""

_ELEMENT_TYPES = {
    "f": 1, "B": 2, "b": 3, "H": 4, "h": 5, "i": 6, "l": 7, "?": 9, "e": 10, "d": 11, "I": 12,
    "L": 13, "g": 16,
}  # fmt: skip
"""Dtype of a pointer as ONNX numbers it (`TensorProto.DataType`), by the kernel's letter."""

_INT64, _DOUBLE = 7, 11


def _input_types(code: KernelCode) -> list[int]:
    """Return the types of an op's inputs, as ONNX numbers them.

    Raises:
        PassError: a pointer is `char*` or `void*`, which takes any dtype.
    """
    types = []
    for kind, element in zip(code.kinds, code.elements, strict=True):
        if kind == "n":
            types.append(_DOUBLE if element in "fd" else _INT64)
        elif element not in _ELEMENT_TYPES:
            raise PassError(f"kernel {code.name}: ONNX has no pointer to bytes of any dtype")
        else:
            types.append(_INT64 if kind == "w" else _ELEMENT_TYPES[element])
    return types


def _output_types(code: KernelCode) -> list[int]:
    """Return the types of an op's outputs, as ONNX numbers them."""
    pairs = zip(code.kinds, code.elements, strict=True)
    return [_ELEMENT_TYPES[element] for kind, element in pairs if kind == "w"]


def onnx_program(program: ExportedProgram, **options: Any) -> Any:
    """Return an exported program as an ONNX program with a node for each call of a kernel.

    Args:
        program: as `torch.export.export` returns it.
        **options: those of `torch.onnx.export`.

    Raises:
        PassError: a kernel takes a tensor that is not contiguous, or writes into one that has
            values.
    """
    codes = kernels_of(program.graph)
    for code in codes.values():
        _input_types(code)
    for node in program.graph.nodes:
        if node.target in codes:
            _check_layouts(codes[node.target], node)
    if codes:
        program = program.run_decompositions({})
        table = _make_functional(program, codes)
        options["custom_translation_table"] = table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's of itself
        return torch.onnx.export(program, (), dynamo=True, verbose=False, **options)


def _check_layouts(code: KernelCode, node: torch.fx.Node) -> None:
    for number, value in enumerate(node.args):
        tensor = value.meta.get("val") if isinstance(value, torch.fx.Node) else None
        if isinstance(tensor, torch.Tensor) and not tensor.is_contiguous():
            raise PassError(
                f"kernel {code.name}: argument {number + 1} is not contiguous, as all tensors of "
                "ONNX are; call contiguous() in the replacement"
            )


def _make_functional(
    program: ExportedProgram, codes: Mapping[torch._ops.OpOverload, KernelCode]
) -> dict[Callable[..., Any], Callable[..., Any]]:
    """Turn calls of kernels into ops that return new tensors; return their translations."""
    table: dict[Callable[..., Any], Callable[..., Any]] = {}
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.target is not torch.ops.higher_order.auto_functionalized_v2:
            continue
        code = codes[node.args[0]]
        op = _functional_op(code)
        args, order = _functional_args(code, node.kwargs)
        with graph.inserting_before(node):
            call = graph.call_function(op, args)
        call.meta["val"] = [node.meta["val"][base + 1] for base in order]
        for getitem in list(node.users):
            base = getitem.args[1] - 1
            getitem.args = (call, order.index(base))
            assert getitem.target is operator.getitem, "a functionalised op returns a tuple"
        graph.erase_node(node)
        table[op] = _translation(code)
    program.graph_module.recompile()
    return table


def _functional_args(
    code: KernelCode, kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], list[int]]:
    """Return a kernel's arguments, and which of the filled tensors are the op's outputs."""
    args, order = [], []
    bases = kwargs["_all_bases"]
    for number, kind in enumerate(code.kinds):
        if kind != "w":
            args.append(kwargs[f"a{number}"])
            continue
        prefix = f"_a{number}_"
        place = kwargs[f"{prefix}base_index"]
        is_whole = sum(name.startswith(prefix) for name in kwargs) == 1
        if not is_whole or place in order or not _is_fresh(bases[place]):
            raise PassError(
                f"kernel {code.name}: argument {number + 1} is written and not a tensor of its "
                "own without values, as torch.empty makes it"
            )
        args.append(bases[place])
        order.append(place)
    return tuple(args), order


def _is_fresh(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and str(node.target).startswith(("aten.empty", "aten.new_e"))


@cache
def _functional_op(code: KernelCode) -> torch._ops.OpOverload:
    """Return the op of a kernel that makes the tensors to fill, and returns them."""
    params = []
    for number, (kind, element) in enumerate(zip(code.kinds, code.elements, strict=True)):
        is_float, is_tensor = element in "fd", kind != "n"
        type_ = "Tensor" if is_tensor else "float" if is_float else "SymInt"
        params.append(f"{type_} a{number}")
    name = op_name(code)
    kernel_library().define(f"{name}.functional({', '.join(params)}) -> Tensor[]")

    def fake(*args: Any) -> list[torch.Tensor]:
        pairs = zip(code.kinds, args, strict=True)
        return [torch.empty_like(value) for kind, value in pairs if kind == "w"]

    torch.library.register_fake(f"passnet_kernel::{name}.functional", fake, lib=kernel_library())
    op: torch._ops.OpOverload = getattr(torch.ops.passnet_kernel, name).functional
    return op


def _translation(code: KernelCode) -> Callable[..., list[Any]]:
    """Return a function that records the node of a kernel's op, and returns its outputs."""
    from onnxscript import opset20 as op

    def translated(*args: Any) -> list[Any]:
        inputs: list[Any] = []
        for kind, type_, value in zip(code.kinds, _input_types(code), args, strict=True):
            if kind == "w":
                made_by = value.producer()
                is_expand = made_by is not None and made_by.op_type == "Expand"
                inputs.append(made_by.inputs[1] if is_expand else op.Shape(value))
            elif kind == "n" and not isinstance(value, (int, float)):
                inputs.append(op.Cast(value, to=type_))
            else:
                inputs.append(value)
        outputs = _onnx_op(code)(*inputs)
        return [outputs] if len(_output_types(code)) == 1 else list(outputs)

    return translated


@cache
def _onnx_op(code: KernelCode) -> Any:
    import onnx
    from onnxscript.values import Op, Opset

    def params(prefix: str, types: list[int]) -> list[Any]:
        names = [onnx.TensorProto.DataType.Name(type_).lower() for type_ in types]
        return [
            onnx.defs.OpSchema.FormalParameter(f"{prefix}{number}", f"tensor({name})")
            for number, name in enumerate(names)
        ]

    schema = onnx.defs.OpSchema(
        op_name(code),
        DOMAIN,
        1,
        inputs=params("a", _input_types(code)),
        outputs=params("filled", _output_types(code)),
    )
    return Op(Opset(DOMAIN, 1), op_name(code), schema)


def write_library(model: Any, folder: Path) -> Path:
    """Write the kernels that an `onnx_ir.Model` calls as a library of custom ops; return its path.

    `SessionOptions.register_custom_ops_library` takes it. It finds the kernels in its folder.

    Raises:
        PassError: no compiler, or this process has not loaded a pass whose kernel is called.
    """
    names = {node.op_type for node in model.graph.all_nodes() if node.domain == DOMAIN}
    codes = [kernel_named(name) for name in sorted(names)]
    make_folder(folder)
    calls = "\n".join(_call(number, code) for number, code in enumerate(codes))
    rows = ",\n".join(_row(number, code) for number, code in enumerate(codes))
    source = _LIBRARY.replace("CALLS", calls).replace("ROWS", rows)
    library = build(source, ("-ldl",))
    for path in {library, *(code.library for code in codes)}:
        if not (folder / path.name).exists():  # its name is of its content
            shutil.copy(path, folder)
    return folder.resolve() / library.name


def _call(number: int, code: KernelCode) -> str:
    types, arguments = [], []
    for place, (kind, element) in enumerate(zip(code.kinds, code.elements, strict=True)):
        types.append("void*" if kind != "n" else C_TYPES[element])
        given = "double" if element in "fd" else "int64_t"
        value = f"p[{place}]" if kind != "n" else f"({C_TYPES[element]})*({given}*)p[{place}]"
        arguments.append(value)
    call = f"(({returned(code)} (*)({', '.join(types)}))kernel)({', '.join(arguments)});"
    end = f"  return {call}" if code.may_fail else f"  {call}\n  return nullptr;"
    return f"const char* call_{number}(void* kernel, void** p) {{\n{end}\n}}"


def _row(number: int, code: KernelCode) -> str:
    inputs, outputs = _input_types(code), _output_types(code)
    lists = ", ".join(f"{{{', '.join(map(str, types))}}}" for types in (inputs, outputs))
    counts = f"{len(inputs)}, {len(outputs)}"
    texts = f'"{op_name(code)}", "{code.library.name}", "{code.name}", "{code.kinds}"'
    return f"    {{{texts}, call_{number}, {counts}, {lists}}}"


_LIBRARY = (Path(__file__).parent / "include" / "onnxruntime_ops.cpp").read_text(encoding="utf-8")
