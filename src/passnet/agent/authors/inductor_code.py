"""The code that Inductor generates for a graph, as data: kernels, calls and memory.

A graph is lowered under fake tensors and stopped where the generated module would be written out.
Nothing is compiled or run: for a CPU it takes no C++ compiler, for CUDA neither a GPU nor Triton.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any
from unittest.mock import patch

import torch
import torch.fx

from passnet.errors import AuthorError, boundary
from passnet.graph.build import build
from passnet.graph.device import retarget
from passnet.graph.fake import SYMBOL_ANNOTATION
from passnet.graph.spec import Graph
from passnet.mine.schedule import GPU_SETTINGS, SETTINGS, TargetDevice, lower
from passnet.mine.simulated_gpu import DevicelessMode, answering_for_gpu

DEVICE_SETTINGS: dict[TargetDevice, dict[str, Any]] = {
    "cpu": {"cpp.threads": 1, "cpp.vec_isa_ok": True},
    "cuda": {
        **GPU_SETTINGS,
        "combo_kernels": False,
        "triton.cooperative_reductions": False,
        "triton.mix_order_reduction": False,
        "triton.multi_kernel": 0,
    },
}
"""More for a device. For a CPU no program is compiled to find out what the processor can do, which
it says of itself; for CUDA no kernel waits for another within a launch, or is chosen by timing."""


@dataclass(frozen=True, slots=True)
class KernelForm:
    """Shape, strides in elements, and dtype of a tensor."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class BufferSlot:
    """Where the values of a name lie: elements into the memory of an argument or a buffer."""

    memory: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class GeneratedKernel:
    """A generated kernel. For a CPU the text defines the C++ function `kernel`, with arguments of
    these `types`; for CUDA it is a Python module with a Triton function of the kernel's name.
    """

    name: str
    types: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class KernelCall:
    """A kernel with what it gets, in order, but for sizes, which the text of a kernel holds."""

    kernel: str
    arguments: tuple[BufferSlot, ...]


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """What Inductor makes of a graph.

    `inputs` are by the names of the graph's arguments, in their order. `buffers` maps memory that
    the code allocates to its dtype and number of elements. Each of `outputs` names the buffer that
    holds it, and holds all of. `vector_bytes` is the width of the vectors that C++ uses, 0 where it
    uses none.
    """

    device: TargetDevice

    inputs: dict[str, KernelForm]
    buffers: dict[str, tuple[str, int]]
    outputs: tuple[tuple[str, KernelForm], ...]
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
    """What Inductor generates for a graph: C++ for a CPU, Triton for CUDA.

    Args:
        graph: with the specs of its arguments.
        strides: of arguments that are not contiguous.
        options: settings of Inductor (`torch._inductor.config`) by name, beside `SETTINGS`.
        where: named in errors.
        device: what the code is for; it need not be there.

    Raises:
        AuthorError: Inductor cannot lower it, or calls a library for a part of it; an argument is
            no tensor; or a result is none of its own memory.
    """
    from torch._inductor import config

    if any(item.annotation == SYMBOL_ANNOTATION for item in graph.program.params):
        raise AuthorError(f"{where}: an argument is a number, and code is made for tensors only")
    inputs = {
        item.name: KernelForm(
            item.shape, (strides or {}).get(item.name, contiguous(item.shape)), item.dtype
        )
        for item in graph.tensors
    }
    mode = DevicelessMode()
    with contextlib.ExitStack() as stack:
        stack.enter_context(boundary(AuthorError, f"{where}: Inductor cannot lower it"))
        stack.enter_context(torch.no_grad())
        settings = SETTINGS | DEVICE_SETTINGS[device] | dict(options or {})
        stack.enter_context(config.patch(settings))
        if device == "cuda":
            stack.enter_context(answering_for_gpu())
            stack.enter_context(_without_triton())
        module = build(retarget(graph, device, None if device == "cpu" else 0).program, where)
        with mode, torch.device(device if device == "cpu" else "cuda:0"):
            fakes = [
                torch.empty_strided(item.shape, item.stride, dtype=getattr(torch, item.dtype))
                for item in inputs.values()
            ]
            expected = _results(module, fakes, where)
        found = lower(module, fakes, mode, _generated)
        if found is None:
            raise AuthorError(f"{where}: there is nothing to compute")
    code = _Reader(found, inputs, where, device).code()
    _check_outputs(code, expected, where)
    return code


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a contiguous tensor.

    Examples:
        >>> contiguous((2, 3, 4))
        (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _results(module: torch.fx.GraphModule, fakes: Sequence[Any], where: str) -> list[torch.Tensor]:
    """What a graph returns under fake tensors."""
    results = module(*fakes)
    for item in results:
        if not isinstance(item, torch.Tensor):
            raise AuthorError(f"{where}: it returns something that is no tensor")
    memory = [item.untyped_storage()._cdata for item in (*fakes, *results)]
    if len(set(memory)) < len(memory):
        raise AuthorError(f"{where}: it returns a view of an argument, or two of one value")
    return list(results)


def _check_outputs(code: GeneratedCode, expected: Sequence[torch.Tensor], where: str) -> None:
    """See that the code returns what the graph does, in the same order of memory."""
    forms = [form for _, form in code.outputs]
    for form, item in zip(forms, expected, strict=True):
        wanted = KernelForm(tuple(item.shape), tuple(item.stride()), str(item.dtype).split(".")[1])
        sizes = [place for place, size in enumerate(form.shape) if size != 1]
        same = [form.stride[place] == wanted.stride[place] for place in sizes]
        if form.shape != wanted.shape or form.dtype != wanted.dtype or not all(same):
            raise AuthorError(f"{where}: Inductor returns {form} where torch returns {wanted}")


@dataclass(frozen=True)
class _Found:
    """The state of Inductor after its code was generated."""

    lowering: Any
    wrapper: Any
    storage: dict[str, int]
    vector_bytes: int


def _generated(lowering: Any) -> _Found:
    """The code of the kernels that were decided on."""
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    wrapper = lowering.wrapper_code
    wrapper.push_codegened_graph(lowering)
    lowering.scheduler.codegen()
    wrapper.run_wrapper_ir_passes(lowering.is_inference)
    storage = {
        line.node.get_name(): int(lowering.get_allocation_storage_size(line.node))
        for line in wrapper.lines
        if type(line).__name__ == "AllocateLine"
    }
    isa = None if "cuda" in lowering.device_types else pick_vec_isa()
    return _Found(lowering, wrapper, storage, isa.bit_width() // 8 if isa else 0)


@contextlib.contextmanager
def _without_triton() -> Iterator[None]:
    """Inside, Inductor does not ask Triton's driver of a GPU for the key of a cache."""
    from torch.utils import _triton

    with patch.object(_triton, "triton_hash_with_backend", lambda: ""):
        yield


_IGNORED = ("AssertSizeStrideLine", "CommentLine", "FreeIfNotReusedLine", "FreeLine")
_IGNORED += ("EnterDeviceContextManagerLine", "ExitDeviceContextManagerLine")
_IGNORED += ("LineContext", "NullLine")
"""Lines that free, describe, or make a GPU the current one."""

_ALIGNING = re.compile(r"(\w+) = copy_if_misaligned\(\1\)")
"""A line of text that moves an argument to a multiple of 16 bytes, which our kernels need not."""


class _Reader:
    """Reads the lines of a generated module, which are records of Inductor, one after the other."""

    def __init__(
        self, found: _Found, inputs: dict[str, KernelForm], where: str, device: TargetDevice
    ) -> None:
        self._found = found
        self._where = where
        self._device: TargetDevice = device
        self._inputs = inputs
        names = [str(name) for name in found.lowering.graph_input_names]
        self._places = {own: BufferSlot(name) for own, name in zip(names, inputs, strict=True)}
        self._buffers: dict[str, tuple[str, int]] = {}
        self._kernels: list[GeneratedKernel] = []
        self._calls: list[KernelCall] = []

    def code(self) -> GeneratedCode:
        """The code as data."""
        for line in self._found.wrapper.lines:
            self._line(line)
        outputs = tuple(self._output(item) for item in self._found.lowering.graph_outputs)
        if len({name for name, _ in outputs}) < len(outputs):
            raise AuthorError(f"{self._where}: two results share memory")
        return GeneratedCode(
            self._device,
            self._inputs,
            self._buffers,
            outputs,
            tuple(self._kernels),
            tuple(self._calls),
            self._found.vector_bytes,
        )

    def _line(self, line: Any) -> None:
        match type(line).__name__:
            case "AllocateLine":
                name = line.node.get_name()
                self._places[name] = BufferSlot(name)
                self._buffers[name] = (_dtype(line.node), self._found.storage[name])
            case "ReuseLine":
                self._places[line.reused_as.get_name()] = self._place(line.node.get_name())
            case "ReinterpretLine":
                view = line.layout.view
                base = self._place(view.get_name())
                offset = base.offset + int(view.get_layout().offset)
                self._places[line.reused_as.get_name()] = BufferSlot(base.memory, offset)
            case "KernelDefinitionLine":
                self._kernels.append(_kernel(line.kernel_name, line.kernel_body, self._where))
            case "KernelCallLine":
                given = [item for item in line.call_args if not isinstance(item, Integral)]
                arguments = tuple(self._place(item) for item in given)
                self._calls.append(KernelCall(line.kernel_name, arguments))
            case "str" if _ALIGNING.fullmatch(line):
                pass
            case other if other not in _IGNORED:
                raise AuthorError(
                    f"{self._where}: a part of it is no generated kernel ({other}); leave the op "
                    "that calls a library out"
                )

    def _place(self, name: Any) -> BufferSlot:
        if name not in self._places:
            raise AuthorError(
                f"{self._where}: a kernel gets {name!s:.60}, which is no tensor of it"
            )
        return self._places[name]

    def _output(self, item: Any) -> tuple[str, KernelForm]:
        """The buffer that holds a result, and its form."""
        try:
            place = self._place(item.get_name())
            shape = tuple(int(size) for size in item.get_size())
            stride = tuple(int(step) for step in item.get_stride())
            offset = place.offset + int(item.get_layout().offset)
        except (AttributeError, NotImplementedError, TypeError) as cause:
            raise AuthorError(f"{self._where}: a result is no tensor in memory") from cause
        needed = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        if place.memory not in self._buffers or offset:
            raise AuthorError(f"{self._where}: a result is a part of an argument or of a buffer")
        dtype, count = self._buffers[place.memory]
        if count != (needed if all(shape) else 0) or dtype != _dtype(item):
            raise AuthorError(f"{self._where}: a result is a part of a buffer")
        return place.memory, KernelForm(shape, stride, dtype)


def _dtype(node: Any) -> str:
    return str(node.get_dtype()).removeprefix("torch.")


def _kernel(name: str, body: str, where: str) -> GeneratedKernel:
    """A kernel from its definition, `async_compile.cpp_pybinding([types], text)` for a CPU or
    `async_compile.triton(name, text, device_str="cuda")`.
    """
    match ast.parse(body, mode="eval").body:
        case ast.Call(
            func=ast.Attribute(attr="cpp_pybinding"),
            args=[ast.List(elts=types), ast.Constant(value=str(text))],
        ):
            return GeneratedKernel(name, tuple(ast.literal_eval(item) for item in types), text)
        case ast.Call(
            func=ast.Attribute(attr="triton"),
            args=[ast.Constant(value=str(called)), ast.Constant(value=str(text))],
        ) if called == name:
            return GeneratedKernel(name, (), text)
    raise AuthorError(f"{where}: kernel {name} is neither C++ nor Triton of a known form")
