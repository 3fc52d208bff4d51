"""Inductor's generated code for a graph, as data: kernels, calls and memory.

Lowering stops before the module is written, so that no compiler, GPU or Triton is needed.
"""

import ast
import re
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any
from unittest.mock import patch

import torch
import torch.fx

from passnet.errors import AuthorError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, retarget
from passnet.graph.values.fake import SYMBOL_ANNOTATION
from passnet.inductor.cpu_decisions import deciding_for_one_core
from passnet.inductor.schedule import GPU_SETTINGS, SETTINGS, TargetDevice, lower
from passnet.inductor.simulated_gpu import DevicelessMode, answering_for_gpu

DEVICE_SETTINGS: dict[TargetDevice, dict[str, Any]] = {
    "cpu": {"cpp.threads": 1, "cpp.vec_isa_ok": True, "triton.mix_order_reduction": False},
    "cuda": {
        **GPU_SETTINGS,
        "combo_kernels": False,
        "triton.cooperative_reductions": False,
        "triton.mix_order_reduction": False,
        "triton.multi_kernel": 0,
    },
}
"""More settings by device. On a CPU no test program is compiled, and no two-layer reduction is
tried, which fails for few terms. On CUDA no kernel waits for another or is chosen by timing."""


@dataclass(frozen=True, slots=True)
class TensorLayout:
    """Shape, strides in elements, and dtype of a tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class BufferSlot:
    """The place of a value: elements into the memory of an argument or a buffer."""

    memory: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class GeneratedKernel:
    """A kernel: C++ of a function `kernel` that takes `types`, or a Triton module with `name`."""

    name: str
    types: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A call of a kernel with its arguments in order, without sizes."""

    kernel: str
    arguments: tuple[BufferSlot, ...]


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """Inductor's code for a graph.

    `inputs` are by argument name, in order. `buffers` has dtype and number of elements of allocated
    memory; each of `outputs` fills the buffer that it names. `vector_bytes` is 0 without vectors.
    """

    device: TargetDevice
    inputs: dict[str, TensorLayout]
    buffers: dict[str, tuple[str, int]]
    outputs: tuple[tuple[str, TensorLayout], ...]
    kernels: tuple[GeneratedKernel, ...]
    calls: tuple[KernelCall, ...]
    vector_bytes: int


def generate(
    graph: Graph,
    strides: Mapping[str, tuple[int, ...]] | None = None,
    options: Mapping[str, Any] | None = None,
    where: str = "graph",
    device: TargetDevice = "cpu",
) -> GeneratedCode:
    """Generate a graph's code: C++ for a CPU, Triton for CUDA; neither device needs to be present.

    `strides` are those of arguments that are not contiguous, `options` more settings of Inductor.
    Library calls, arguments that are no tensors, and results that share memory are AuthorErrors.
    """
    from torch._inductor import config
    from torch.utils import _triton

    if any(param.annotation == SYMBOL_ANNOTATION for param in graph.program.params):
        raise AuthorError(f"{where}: an argument is a number, and code is made for tensors only")
    inputs = {}
    for spec in graph.tensors:
        stride = (strides or {}).get(spec.name, contiguous(spec.shape))
        inputs[spec.name] = TensorLayout(spec.shape, stride, spec.dtype)
    mode = DevicelessMode()
    with ExitStack() as stack:
        stack.enter_context(boundary(AuthorError, f"{where}: Inductor cannot lower it"))
        stack.enter_context(torch.no_grad())
        stack.enter_context(config.patch(SETTINGS | DEVICE_SETTINGS[device] | dict(options or {})))
        if device == "cpu":
            stack.enter_context(deciding_for_one_core())
        else:
            stack.enter_context(answering_for_gpu())
            # Inductor then does not ask Triton's driver of a GPU for the key of a cache.
            stack.enter_context(patch.object(_triton, "triton_hash_with_backend", lambda: ""))
        module = build(retarget(graph, device, None if device == "cpu" else 0).program, where)
        with mode, torch.device(device if device == "cpu" else "cuda:0"):
            fakes = [fake_tensor(layout) for layout in inputs.values()]
            expected = fake_results(module, fakes, where)
        read = partial(_ModuleReader, inputs=inputs, where=where, device=device)
        reader = lower(module, fakes, mode, read)
        if reader is None:
            raise AuthorError(f"{where}: there is nothing to compute")
    code = reader.code()
    _check_outputs(code, expected, where)
    return code


def fake_tensor(layout: Any) -> torch.Tensor:
    """Return a tensor of a layout: its shape, stride and dtype."""
    return torch.empty_strided(layout.shape, layout.stride, dtype=getattr(torch, layout.dtype))


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor.

    Examples:
        >>> contiguous((2, 3, 4))
        (12, 4, 1)
    """
    return torch.empty(tuple(shape), device="meta").stride()


def fake_results(module: torch.fx.GraphModule, fakes: list[Any], where: str) -> list[torch.Tensor]:
    """Run a graph under fake tensors, and return its results."""
    results = list(module(*fakes))
    if not all(isinstance(result, torch.Tensor) for result in results):
        raise AuthorError(f"{where}: it returns something that is no tensor")
    memory = {tensor.untyped_storage()._cdata for tensor in (*fakes, *results)}
    if len(memory) < len(fakes) + len(results):
        raise AuthorError(f"{where}: it returns a view of an argument, or two of one value")
    return results


def _check_outputs(code: GeneratedCode, expected: Sequence[torch.Tensor], where: str) -> None:
    """Check that the code returns what the graph does, in the same memory order."""
    for (_, actual), tensor in zip(code.outputs, expected, strict=True):
        dtype = str(tensor.dtype).removeprefix("torch.")
        layout = TensorLayout(tuple(tensor.shape), tuple(tensor.stride()), dtype)
        differing = [
            axis
            for axis, size in enumerate(actual.shape)
            if size != 1 and actual.stride[axis] != layout.stride[axis]
        ]
        if actual.shape != layout.shape or actual.dtype != dtype or differing:
            raise AuthorError(f"{where}: Inductor returns {actual} where torch returns {layout}")


_IGNORED = ("AssertSizeStrideLine", "GroupedAssertSizeStrideLine", "CommentLine")
_IGNORED += ("FreeIfNotReusedLine", "FreeLine")
_IGNORED += ("EnterDeviceContextManagerLine", "ExitDeviceContextManagerLine")
_IGNORED += ("LineContext", "NullLine")
"""Lines that free, describe, or make a GPU the current one."""

_ALIGNING = re.compile(r"(\w+) = copy_if_misaligned\(\1\)")
"""Generated line that copies an argument to a multiple of 16 bytes; our kernels do not need it."""


@dataclass
class _ModuleReader:
    """A reader of a generated module's lines; `lowering` is Inductor's state after planning."""

    lowering: Any
    inputs: dict[str, TensorLayout]
    where: str
    device: TargetDevice
    buffers: dict[str, tuple[str, int]] = field(default_factory=dict)
    kernels: list[GeneratedKernel] = field(default_factory=list)
    calls: list[KernelCall] = field(default_factory=list)

    def __post_init__(self) -> None:
        from torch._inductor.cpu_vec_isa import pick_vec_isa

        wrapper = self.lowering.wrapper_code
        wrapper.push_codegened_graph(self.lowering)
        self.lowering.scheduler.codegen()
        wrapper.run_wrapper_ir_passes(self.lowering.is_inference)
        self.storage = {
            line.node.get_name(): int(self.lowering.get_allocation_storage_size(line.node))
            for line in wrapper.lines
            if type(line).__name__ == "AllocateLine"
        }
        isa = None if "cuda" in self.lowering.device_types else pick_vec_isa()
        self.vector_bytes = isa.bit_width() // 8 if isa else 0
        names = [str(name) for name in self.lowering.graph_input_names]
        self.slots = {own: BufferSlot(name) for own, name in zip(names, self.inputs, strict=True)}

    def code(self) -> GeneratedCode:
        """Return the code as data."""
        for line in self.lowering.wrapper_code.lines:
            self._read_line(line)
        outputs = tuple(self._output(node) for node in self.lowering.graph_outputs)
        if len(dict(outputs)) < len(outputs):
            raise AuthorError(f"{self.where}: two results share memory")
        kernels, calls = tuple(self.kernels), tuple(self.calls)
        return GeneratedCode(
            self.device, self.inputs, self.buffers, outputs, kernels, calls, self.vector_bytes
        )

    def _read_line(self, line: Any) -> None:
        match type(line).__name__:
            case "AllocateLine":
                name = line.node.get_name()
                self.slots[name] = BufferSlot(name)
                self.buffers[name] = (_dtype(line.node), self.storage[name])
            case "ReuseLine":
                self.slots[line.reused_as.get_name()] = self._slot(line.node.get_name())
            case "ReinterpretLine":
                view = line.layout.view
                base = self._slot(view.get_name())
                offset = base.offset + int(view.get_layout().offset)
                self.slots[line.reused_as.get_name()] = BufferSlot(base.memory, offset)
            case "KernelDefinitionLine":
                self.kernels.append(_kernel(line.kernel_name, line.kernel_body, self.where))
            case "KernelCallLine":
                names = [arg for arg in line.call_args if not isinstance(arg, Integral)]
                self.calls.append(KernelCall(line.kernel_name, tuple(map(self._slot, names))))
            case "str" if _ALIGNING.fullmatch(line):
                pass
            case kind if kind not in _IGNORED:
                raise AuthorError(
                    f"{self.where}: a part of it is no generated kernel ({kind}); leave the op "
                    "that calls a library out"
                )

    def _slot(self, name: Any) -> BufferSlot:
        if name not in self.slots:
            raise AuthorError(f"{self.where}: a kernel gets {name!s:.60}, which is no tensor of it")
        return self.slots[name]

    def _output(self, node: Any) -> tuple[str, TensorLayout]:
        """Return the buffer that holds a result, and its layout."""
        try:
            slot = self._slot(node.get_name())
            shape = tuple(int(size) for size in node.get_size())
            stride = tuple(int(step) for step in node.get_stride())
            offset = slot.offset + int(node.get_layout().offset)
        except (AttributeError, NotImplementedError, TypeError) as cause:
            raise AuthorError(f"{self.where}: a result is no tensor in memory") from cause
        if slot.memory not in self.buffers or offset:
            raise AuthorError(f"{self.where}: a result is a part of an argument or of a buffer")
        reach = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        dtype, count = self.buffers[slot.memory]
        if count != (reach if all(shape) else 0) or dtype != _dtype(node):
            raise AuthorError(f"{self.where}: a result is a part of a buffer")
        return slot.memory, TensorLayout(shape, stride, dtype)


def _dtype(node: Any) -> str:
    return str(node.get_dtype()).removeprefix("torch.")


def _kernel(name: str, body: str, where: str) -> GeneratedKernel:
    """Parse a kernel's definition, a call of `async_compile.cpp_pybinding` or `.triton`."""
    match ast.parse(body, mode="eval").body:
        case ast.Call(
            func=ast.Attribute(attr="cpp_pybinding"),
            args=[ast.List() as types, ast.Constant(value=str(text))],
        ):
            return GeneratedKernel(name, tuple(ast.literal_eval(types)), text)
        case ast.Call(
            func=ast.Attribute(attr="triton"),
            args=[ast.Constant(value=str(called)), ast.Constant(value=str(text))],
        ) if called == name:
            return GeneratedKernel(name, (), text)
    raise AuthorError(f"{where}: kernel {name} is neither C++ nor Triton of a known form")
