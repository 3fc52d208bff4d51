"""Kernels counted prefix by prefix, the long way: each prefix is lowered, or compiled and run.

These are the references for the plan of one lowering. Source: PassNet paper (arXiv 2605.29357),
Execution-driven Prefix Analysis: launches that a profiler sees after warm-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest.mock import patch

import torch
from torch.profiler import ProfilerActivity, profile

from passnet.data.mine.cut import cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import CutError, FusionError, InputError, boundary
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, retarget
from passnet.graph.values.cost import torch_arguments
from passnet.inductor.fusion import fusion_plan
from passnet.inductor.schedule import DEVICES, SETTINGS, TargetDevice

NUM_WARM_UPS = 3
"""Calls before the one that is counted (published)."""

LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel")
"""Events of the CUDA runtime and driver that are launches (published)."""

NOT_COMPUTED = frozenset(
    ["empty", "empty_strided", "as_strided", "view", "_reshape_alias", "reshape", "resize_",
     "t", "transpose", "permute", "expand", "slice", "select", "unsqueeze", "squeeze", "detach"]
)  # fmt: skip
"""Calls of the CPU's library, without their namespace, that only allocate or look at memory."""


GENERATED = "cpp_fused"
"""Part of the name of every C++ function that Inductor generates."""

COMPILING = {
    "force_disable_caches": True,
    "cpp_cache_precompile_headers": False,
    "cpp.enable_kernel_profile": True,
}
"""Settings under which every prefix is compiled anew and its C++ functions show in a profile."""


def launches(graph: Graph, where: str = "graph", device: TargetDevice = "cpu") -> int:
    """How many kernels a graph runs when Inductor has compiled it.

    On CUDA these are launches. On a CPU they are the calls of generated C++ functions, one for each
    kernel that was decided on (Inductor left to itself writes kernels that follow one another into
    one function), and the calls of the library, as a profiler sees them outside of any other.

    Args:
        graph: with the specs of its arguments, which are drawn at random.
        where: named in errors.
        device: "cuda" needs a GPU.

    Raises:
        FusionError: it cannot be compiled or run.
        InputError: there is no such device here.
    """
    if device not in DEVICES or (device == "cuda" and not torch.cuda.is_available()):
        raise InputError(f"device {device!r} is not on this machine; launches are counted on it")
    from torch._inductor import config
    from torch._inductor.codegen.cpp import CppScheduling
    from torch._inductor.compile_fx import compile_fx

    index = None if device == "cpu" else 0
    module = build(retarget(graph, device, index).program, where)
    arguments = [
        value.to(device) if isinstance(value, torch.Tensor) else value
        for value in torch_arguments(graph, "fresh", 0)
    ]
    with boundary(FusionError, f"{where}: cannot be compiled and run"), torch.no_grad():
        torch._dynamo.reset()
        apart = patch.object(CppScheduling, "MAX_FUSED_KERNEL_ARGS_NUM", 0)
        with config.patch(SETTINGS | COMPILING), apart:
            compiled: Any = compile_fx(module, arguments)
        for _ in range(NUM_WARM_UPS):
            compiled(*arguments)
        activity = ProfilerActivity.CPU if device == "cpu" else ProfilerActivity.CUDA
        with profile(activities={ProfilerActivity.CPU, activity}) as profiler:
            compiled(*arguments)
            if device == "cuda":
                torch.cuda.synchronize()
        names = [event.name for event in profiler.events() or () if not _is_inner(event)]
    if device == "cuda":
        return sum(name in LAUNCHES for name in names)
    return sum(GENERATED in name or _is_library_call(name) for name in names)


def prefixes(graph: Graph, stops: Iterable[int]) -> Iterator[Graph | None]:
    """The first ops of a graph as a graph, for each number of ops.

    None stands for a prefix that cannot be cut off: a value that crosses the cut is no tensor, or
    nothing crosses it.
    """
    program = single_assignment(graph.program)
    parent = parent_of(program, inferred_specs(Graph(program, graph.tensors)))
    for stop in stops:
        try:
            yield cut_range(parent, 0, stop)
        except CutError:
            yield None


def prefix_kernels(
    graph: Graph, where: str = "graph", device: TargetDevice = "cpu"
) -> list[int | None]:
    """K(1), K(2), ... by lowering every prefix; None where it cannot be cut off.

    It is the published way but for stopping before code is made, and the reference for
    `FusionPlan.num_kernels`.

    Raises:
        FusionError: Inductor cannot lower a prefix.
    """

    def num_kernels(prefix: Graph, name: str) -> int:
        return len(fusion_plan(prefix, name, device).kernels)

    return _counts(graph, where, num_kernels)


def prefix_launches(
    graph: Graph, where: str = "graph", device: TargetDevice = "cpu"
) -> list[int | None]:
    """K(1), K(2), ... by execution; None where a prefix cannot be cut off.

    Raises:
        FusionError: a prefix cannot be compiled or run.
        InputError: there is no such device here.
    """
    return _counts(graph, where, lambda prefix, name: launches(prefix, name, device))


def _counts(graph: Graph, where: str, count: Callable[[Graph, str], int]) -> list[int | None]:
    stops = range(1, len(graph.program.ops) + 1)
    return [
        None if prefix is None else count(prefix, f"{where}[:{stop}]")
        for stop, prefix in zip(stops, prefixes(graph, stops), strict=True)
    ]


def _is_library_call(name: str) -> bool:
    return "::" in name and name.split("::")[-1] not in NOT_COMPUTED


def _is_inner(event: Any) -> bool:
    """Whether an event is part of a library call."""
    outer = event.cpu_parent
    while outer is not None:
        if _is_library_call(outer.name) and event.name not in LAUNCHES:
            return True
        outer = outer.cpu_parent
    return False
