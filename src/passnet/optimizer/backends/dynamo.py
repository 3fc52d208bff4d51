"""torch.compile, AMD's plug-in for it, and TorchScript's optimizer."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from passnet.core.hardware import is_of_amd, torch_minor_version
from passnet.errors import BackendError
from passnet.inductor.compiler import (
    compile_no_more,
    inductor_settings,
    inductor_settings_kept,
    own_frame,
)
from passnet.optimizer.backends.backend import Backend, Occasion
from passnet.optimizer.call.held_objects import uncopied
from passnet.optimizer.call.net_call import BuiltBackend, FlatNet, NetCall
from passnet.optimizer.call.sizes import traced_sizes

SCRIPT_FILE = "net.pt"


def _compiled(
    call: NetCall,
    folder: Path,
    name: str,
    options: Mapping[str, Any],
    mode: str | None = None,
    backend: str | None = None,
    net: torch.nn.Module | None = None,
) -> BuiltBackend:
    """Compile the net, or another one that takes the same arguments."""
    settings: dict[str, Any] = {"mode": mode} if mode else {"options": dict(options) or None}
    if backend is not None:
        settings = {"backend": backend}
    frame = own_frame(call.given if net is None else net)
    compiled: Any = torch.compile(frame, dynamic=bool(call.ranges) or None, **settings)
    # the first call is of a size that is no constant to Dynamo
    sizes = [traced_sizes(call.ranges), *call.compared_sizes[:2]] if call.ranges else []
    with inductor_settings(options):  # Dynamo looks at `freezing` too, and not at a net's options
        for each in [call.at(size) for size in sizes] or [call]:
            each.eager(each.leaves, compiled)
            with torch.inference_mode():  # Dynamo's guards tell these calls apart
                each.eager(each.leaves, compiled)
                each.eager(each.filled([tensor.clone() for tensor in each.tensors()]), compiled)
    compile_no_more(frame)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        return call.eager_outputs(call.filled(tensors), compiled)

    return call.built(name, run, "freezing" in options, compiled)


def _build_script(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    flat = FlatNet(call).eval()
    traced = torch.jit.trace(flat, tuple(call.tensors()), strict=False, check_trace=False)
    torch.jit.save(torch.jit.freeze(traced), folder / SCRIPT_FILE)
    return _load_script(call, folder, name)


def _load_script(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    # weights in oneDNN's layouts cannot be saved, so they are laid out anew
    script: Any = torch.jit.optimize_for_inference(torch.jit.load(folder / SCRIPT_FILE))
    built = call.built(name, lambda tensors: script(*tensors), is_frozen=True)
    for _ in range(3):  # it specialises itself in its first calls
        built.run(call.tensors())
    return built


def _compile(says: str, when: Occasion, mode: str | None = None, **options: Any) -> Backend:
    build = partial(_compiled, options=options, mode=mode)
    return Backend(says, build, build, bool(options.get("freezing")), is_inductor=True, when=when)


def _build_packed(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Compile the net with weights that are packed at its first call, and again when written."""
    if not call.is_on_cpu:
        raise BackendError("weights are packed on a CPU alone")
    from passnet.passes.inductor_pass import passes_in_inductor  # with Inductor: seconds

    with passes_in_inductor(packed_weights=True):
        return _compiled(call, folder, name, {})


def _build_zentorch(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Compile a net by AMD's plug-in, which computes other values on processors of others."""
    if not is_of_amd():
        raise BackendError("zentorch is for AMD's processors")
    import_module("zentorch")  # it registers itself
    return compile_by(call, folder, name, "zentorch")


def compile_by(call: NetCall, folder: Path, name: str, backend: str) -> BuiltBackend:
    """Compile a copy of a net by a backend of others, with weights folded in.

    zentorch 2.13 writes into weights (of an attention's products, as in Swin), and sets a pass of
    its own for all compilations of the process to come, so Inductor's settings are put back.
    """
    net = copy.deepcopy(call.net, uncopied(call.net))
    with inductor_settings_kept():
        return _compiled(call, folder, name, {"freezing": True}, backend=backend, net=net)


def _build_torchao(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Compile a copy of the net whose linear layers compute in int8, by scales of each row."""
    if not any(isinstance(module, torch.nn.Linear) for module in call.net.modules()):
        raise BackendError("torchao: the net has no linear layer")
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    net = copy.deepcopy(call.net, uncopied(call.net))
    quantize_(net, Int8DynamicActivationInt8WeightConfig())
    # Inductor fails to fold these weights into a graph of varying sizes
    options = {} if call.ranges else {"freezing": True}
    return replace(_compiled(call, folder, name, options, net=net), is_frozen=True)


BACKENDS: Mapping[str, Backend] = {
    "compile": _compile("torch.compile", "usual"),
    "compile_frozen": _compile("torch.compile with freezing", "freeze", freezing=True),
    "compile_autotune": _compile(
        "torch.compile, max-autotune", "named", mode="max-autotune-no-cudagraphs"
    ),
    "compile_packed": Backend(
        "torch.compile, weights packed once",
        _build_packed,
        _build_packed,
        is_inductor=True,
        when="named",
    ),
    "zentorch_frozen": Backend(
        "torch.compile by zentorch, with freezing",
        _build_zentorch,
        _build_zentorch,
        is_frozen=True,
        is_inductor=True,
        when="freeze",
        packages=("zentorch",),
        install=f"zentorch=={torch_minor_version()}.*",
    ),
    "torchao_int8": Backend(
        "torch.compile with freezing, linear layers in int8 by torchao",
        _build_torchao,
        _build_torchao,
        is_frozen=True,
        is_inductor=True,
        precision="int8",
        packages=("torchao",),
        install="passnet[int8]",
    ),
    "script_frozen": Backend(
        "torch.jit.optimize_for_inference",
        _build_script,
        _load_script,
        is_frozen=True,
        when="named",
        is_of_one_size=True,
    ),
}
"""`script_frozen` traces the net, so other arguments may take other branches than the example."""
