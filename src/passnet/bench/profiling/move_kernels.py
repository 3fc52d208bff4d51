"""The parts of generated kernels that only move values, as kernels that can be timed alone."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from passnet.errors import MeasureError, boundary
from passnet.inductor.compiled_call import CompiledLayers
from passnet.inductor.compiler import compile_cpp_kernels
from passnet.inductor.generated_code import GeneratedKernel
from passnet.inductor.moves import moving_part
from passnet.inductor.timed_program import kernel_texts

MAX_KERNELS = 60
"""Most kernels that are compiled, each in seconds."""


@dataclass(frozen=True, slots=True)
class MovingKernels:
    """Kernels that only move values, each with its arguments in a real call."""

    calls: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...]

    def run(self) -> None:
        """Call all, in order."""
        for kernel, arguments in self.calls:
            kernel(*arguments)


def moving_kernels(layers: CompiledLayers, run: Callable[[], object]) -> MovingKernels | None:
    """Compile the loops of generated kernels that only move values; None if there are none.

    `run` makes the call.

    Raises:
        MeasureError: a part of a kernel cannot be compiled.
    """
    modules = [module for graph in layers.called() for _, _, module in graph.programs()]
    parts: dict[tuple[str, str], GeneratedKernel] = {}
    for module in modules:
        for name, code in kernel_texts(module).items():
            text = moving_part(name, code.text)
            if text is not None and code.types:
                parts[module.__name__, name] = GeneratedKernel(name, code.types, text)
    if not parts or len(parts) > MAX_KERNELS:
        return None
    with boundary(MeasureError, "compiling the part of a kernel"):
        kernels = compile_cpp_kernels({key: (code.types, code.text) for key, code in parts.items()})
    calls: list[tuple[tuple[str, str], tuple[Any, ...]]] = []
    by_name = {module.__name__: module for module in modules}
    with _watched([(by_name[module], name) for module, name in kernels], calls):
        run()
    return MovingKernels(tuple((kernels[key], arguments) for key, arguments in calls))


@contextmanager
def _watched(
    kernels: Sequence[tuple[ModuleType, str]],
    calls: list[tuple[tuple[str, str], tuple[Any, ...]]],
) -> Iterator[None]:
    """Record calls of kernels for the length of the block."""

    def watched(key: tuple[str, str], kernel: Callable[..., Any]) -> Callable[..., Any]:
        def note(*arguments: Any) -> Any:
            calls.append((key, arguments))
            return kernel(*arguments)

        return note

    before = [vars(module)[name] for module, name in kernels]
    for (module, name), kernel in zip(kernels, before, strict=True):
        vars(module)[name] = watched((module.__name__, name), kernel)
    try:
        yield
    finally:
        for (module, name), kernel in zip(kernels, before, strict=True):
            vars(module)[name] = kernel
