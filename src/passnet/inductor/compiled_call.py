"""The layers of one torch.compile call: Dynamo's, AOTAutograd's and Inductor's program."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
import torch._dynamo
from torch._dynamo.output_graph import OutputGraph
from torch._inductor.compile_fx import compile_fx, compile_fx_inner
from torch._inductor.output_code import CompiledFxGraph

DYNAMO_NAME = "__compiled_fn"
"""Prefix of the globals that Dynamo's bytecode calls compiled graphs by."""

SETTINGS: dict[str, Any] = {"fx_graph_cache": False, "compile_threads": 1}
"""Settings of Inductor: no compiling processes, and programs made anew so that all layers exist."""


@dataclass(slots=True)
class GraphLayers:
    """One graph of a compiled function, which Dynamo calls by the global `name` of `scope`.

    `inductor` holds Inductor's object of each generated program, `arguments` those of the last call
    under `record_calls`.
    """

    compiled: Callable[..., Any]
    inductor: list[Any]
    scope: dict[str, Any] | None = None
    name: str = ""
    arguments: tuple[Any, ...] | None = None
    num_calls: int = 0

    def programs(self) -> list[tuple[Any, Callable[..., Any], ModuleType]]:
        """Return Inductor's objects, each with its function and that function's module."""
        programs = []
        for program in self.inductor:
            call = program.current_callable
            module = sys.modules.get(getattr(call, "__module__", "") or "")
            if module is not None:
                programs.append((program, call, module))
        return programs


@dataclass(slots=True)
class CompiledLayers:
    """A compiled function with all its graphs so far."""

    function: Callable[..., Any]
    graphs: list[GraphLayers] = field(default_factory=list)

    def called(self) -> list[GraphLayers]:
        """Return the graphs that Dynamo still calls."""
        return [graph for graph in self.graphs if graph.name in (graph.scope or ())]


@contextmanager
def compiling(function: Callable[..., Any]) -> Iterator[CompiledLayers]:
    """Compile a function as torch.compile does; the block calls it until all is compiled."""
    torch._dynamo.reset()
    layers = CompiledLayers(function)
    install = OutputGraph.install_global_unsafe

    def backend(module: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
        codes: list[Any] = []

        def inner(*args: Any, **kwargs: Any) -> Any:
            code = compile_fx_inner(*args, **kwargs)
            if isinstance(code, CompiledFxGraph):  # a graph without ops is run as it is
                codes.append(code)
            return code

        compiled: Any = compile_fx(module, inputs, inner_compile=inner)
        layers.graphs.append(GraphLayers(compiled, codes))
        return compiled

    def keep(graph: OutputGraph, name: str, value: Any) -> None:
        install(graph, name, value)
        if name.startswith(DYNAMO_NAME):
            layers.graphs[-1].scope, layers.graphs[-1].name = graph.global_scope, name

    layers.function = torch.compile(function, backend=backend, dynamic=False)
    with (
        torch._inductor.config.patch(SETTINGS),
        patch.object(OutputGraph, "install_global_unsafe", keep),
    ):
        yield layers


@contextmanager
def replaced(graphs: list[GraphLayers], calls: list[Callable[..., Any]]) -> Iterator[None]:
    """Let Dynamo call other functions than the compiled graphs, for the length of the block."""
    before = []
    for graph, call in zip(graphs, calls, strict=True):
        assert graph.scope is not None, "Dynamo calls it"
        before.append(graph.scope[graph.name])
        graph.scope[graph.name] = as_dynamo_calls(call)
    try:
        yield
    finally:
        for graph, value in zip(graphs, before, strict=True):
            assert graph.scope is not None, "as above"
            graph.scope[graph.name] = value


def as_dynamo_calls(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function wrapped as Dynamo wraps a compiler's result."""
    return torch._dynamo.disable(call, reason="a compiled graph with a clock")


def record_calls(layers: CompiledLayers, run: Callable[[], object]) -> None:
    """Call the function once, and record each graph's arguments and number of calls."""
    graphs = layers.called()

    def recorder(graph: GraphLayers) -> Callable[..., Any]:
        graph.num_calls = 0

        def record(*args: Any) -> Any:
            graph.arguments, graph.num_calls = args, graph.num_calls + 1
            return graph.compiled(*args)

        return record

    with replaced(graphs, [recorder(graph) for graph in graphs]):
        run()
