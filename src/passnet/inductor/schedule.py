"""Inductor's kernels for a graph: lowering, stopped before code is made."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypeVar
from unittest.mock import patch

import torch
from torch.torch_version import TorchVersion

from passnet.errors import FusionError, InputError, boundary
from passnet.graph.spec import Graph
from passnet.graph.text.syntax import gc_paused
from passnet.graph.values.fake import fake_input
from passnet.inductor.attention import attention_on_cuda
from passnet.inductor.simulated_gpu import DevicelessMode, answering_for_gpu

T = TypeVar("T")

TargetDevice: TypeAlias = Literal["cpu", "cuda"]
DEVICES: tuple[TargetDevice, ...] = ("cpu", "cuda")

SETTINGS: dict[str, Any] = {"fx_graph_cache": False, "shape_padding": False, "compile_threads": 1}
"""Settings for a plan: no cached plan, no padded products (they are timed), no extra processes."""

GPU_SETTINGS = {"joint_graph_constant_folding": False}
"""More settings for a GPU: constant tensors stay ops, which Inductor would fold on the device."""


def schedule(
    module: torch.fx.GraphModule, graph: Graph, device: TargetDevice, where: str
) -> list[Any]:
    """Return a module's kernels as Inductor's nodes, in order of execution; `module` changes.

    `graph` gives the specs of its arguments; "cuda" needs no GPU. A graph that cannot be lowered is
    a FusionError, which names `where`; another device is an InputError.
    """
    from torch._inductor import config

    if device not in DEVICES:
        raise InputError(f"device {device!r} is none of {', '.join(DEVICES)}")
    annotations = {param.name: param.annotation for param in graph.program.params}
    mode = DevicelessMode()
    with contextlib.ExitStack() as stack:
        stack.enter_context(boundary(FusionError, f"{where}: Inductor cannot lower it"))
        stack.enter_context(gc_paused())  # what lowering makes is in use until it ends
        stack.enter_context(torch.no_grad())
        if device == "cuda":
            stack.enter_context(answering_for_gpu())
            for node in module.graph.nodes:
                if node.target is torch._C._nn.scaled_dot_product_attention:
                    node.target = attention_on_cuda
            module.recompile()
        with mode, torch.device(device if device == "cpu" else "cuda:0"):
            inputs = [fake_input(spec, annotations[spec.name]) for spec in graph.tensors]
        stack.enter_context(config.patch(SETTINGS if device == "cpu" else SETTINGS | GPU_SETTINGS))
        nodes = lower(module, inputs, mode, lambda lowering: list(lowering.scheduler.nodes))
    return nodes or []


def lower(
    module: torch.fx.GraphModule,
    inputs: Sequence[Any],
    mode: DevicelessMode,
    read: Callable[[Any], T],
) -> T | None:
    """Let Inductor lower a module and choose its kernels; return `read(lowering)`.

    `module` changes; `inputs` are fakes of `mode`. Return None if there is nothing to compute.
    """
    from torch._guards import TracingContext, tracing
    from torch._inductor.compile_fx import compile_fx
    from torch._inductor.graph import GraphLowering

    def stop(lowering: Any) -> Any:
        lowering.init_wrapper_code()
        lowering._update_scheduler()
        raise _StopError(read(lowering))

    try:
        with (
            tracing(TracingContext(mode)),
            patch.object(GraphLowering, "codegen", stop),
            _ops_handed_on(),
        ):
            compile_fx(module, list(inputs))
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, _StopError):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        return cause.args[0]
    return None


@contextlib.contextmanager
def _ops_handed_on() -> Iterator[None]:
    """Hand an op's number on to the node that Inductor puts in its place, as torch 2.13 does."""
    replace = torch.fx.Node.replace_all_uses_with

    def replaced(old: torch.fx.Node, new: Any, *args: Any, **kwargs: Any) -> Any:
        if "custom" in old.meta and isinstance(new, torch.fx.Node) and "custom" not in new.meta:
            new.meta["custom"] = old.meta["custom"]
        return replace(old, new, *args, **kwargs)

    is_missing = TorchVersion(torch.__version__) < "2.13"
    with patch.object(torch.fx.Node, "replace_all_uses_with", replaced if is_missing else replace):
        yield


class _StopError(Exception):
    """A carrier of results out of Inductor."""
