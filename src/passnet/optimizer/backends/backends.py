"""The backends by name, most of them torch's own; each loads from the files that it saves."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_unflatten

from passnet.errors import BackendError, PassError, boundary
from passnet.inductor.compiler import build_package, inductor_settings, load_package, reset_dynamo
from passnet.optimizer.backends import runtimes
from passnet.optimizer.backends.dynamo_graph import (
    build_graph,
    build_with_passes,
    chosen_passes,
    load_with_passes,
    rewritten_program,
)
from passnet.optimizer.call.compiled_check import extension
from passnet.optimizer.call.net_call import BuiltBackend, FlatNet, NetCall
from passnet.optimizer.record import BackendRecord
from passnet.passes.backend import Residual
from passnet.passes.kernel_op import kernels_of, load_kernels, write_kernels

PACKAGE_FILE = "net.pt2"
CONSTANTS_FILE = "constants.pt"
SCRIPT_FILE = "net.pt"

QUIET = {"autotune_num_choices_displayed": 0, "max_autotune_report_choices_stats": False}
"""Inductor's settings that silence autotuning."""

Builder = Callable[[NetCall, Path, str], BuiltBackend]
"""Build or load a backend for a call, in a folder, by name; BackendError where it cannot."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A compiler or runtime for nets."""

    says: str
    """Description for tables."""

    build: Builder
    load: Builder
    """Loads it from the folder of its build."""

    is_frozen: bool = False

    is_inductor: bool = False


def build_backend(
    name: str, backend: Backend, call: NetCall, folder: Path, freeze: bool = False
) -> BuiltBackend:
    """Build a backend of a net, with the files to load it in `folder`.

    `freeze` promises that the weights will not change; BackendError where it cannot run this net.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if call.written and name != "eager":
        raise BackendError(f"the net writes into {', '.join(call.written[:3])}")
    if backend.is_frozen and not freeze and (reason := _why_not_compared(call)):
        raise BackendError(
            f"{reason}, so folded weights cannot be compared at each call; give freeze=True "
            "(--freeze) if they will not change"
        )
    with boundary(BackendError, name), torch.no_grad(), inductor_settings(QUIET):
        built = backend.build(call, folder, name)
    # an error in a loop that threads share, as for an index out of range, ends the process
    is_shared = backend.is_inductor and call.is_on_cpu and torch.get_num_threads() > 1
    return replace(built, ends_process=is_shared)


def _why_not_compared(call: NetCall) -> str | None:
    if not call.is_on_cpu:
        return "weights are on a card"
    try:
        extension()
        return None
    except PassError as error:
        return str(error)


def load_backend(name: str, backend: Backend, call: NetCall, folder: Path) -> BuiltBackend:
    """Load a backend from the folder of its build; BackendError where its files do not fit."""
    with boundary(BackendError, name), torch.no_grad():
        return backend.load(call, folder, name)


def with_checks(built: BuiltBackend, freeze: bool, record: BackendRecord) -> BuiltBackend:
    """Return a backend with checks of its calls; `freeze` promises that weights will not change."""
    return replace(
        built,
        compares=built.is_frozen and not freeze,
        bound=record.bound,
        index_bounds=record.index_bounds,
    )


def _eager(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    return call.built(name, lambda tensors: call.eager_outputs(call.filled(tensors)))


def _compiled(
    call: NetCall, folder: Path, name: str, options: Mapping[str, Any], mode: str | None = None
) -> BuiltBackend:
    reset_dynamo()
    settings: dict[str, Any] = {"mode": mode} if mode else {"options": dict(options) or None}
    compiled: Any = torch.compile(call.given, **settings)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        args, kwargs = tree_unflatten(call.filled(tensors), call.args_spec)
        with torch.no_grad():
            return tree_leaves(compiled(*args, **kwargs))

    run(call.tensors())
    return call.built(name, run, "freezing" in options, compiled)


def _build_aot(
    call: NetCall, folder: Path, name: str, options: Mapping[str, Any], with_passes: bool = False
) -> BuiltBackend:
    is_frozen = bool(options.get("freezing"))
    configs = {"aot_inductor.package_constants_in_so": is_frozen, **options}
    if not is_frozen:
        # or weights of up to 8 values are folded in, and those of one value by uniform folding
        configs |= {"always_keep_tensor_constants": True, "joint_graph_constant_folding": False}
    if with_passes:
        program = rewritten_program(call, chosen_passes(folder))
        shims = write_kernels(kernels_of(program.graph), folder)
        configs["aot_inductor.custom_ops_to_c_shims"] = shims
    else:
        program = call.exported
    torch.save(dict(program.constants), folder / CONSTANTS_FILE)
    build_package(program, folder / PACKAGE_FILE, configs)
    return _load_aot(call, folder, name, is_frozen, with_passes)


def _load_aot(
    call: NetCall, folder: Path, name: str, is_frozen: bool, with_passes: bool = False
) -> BuiltBackend:
    package = folder / PACKAGE_FILE
    if not package.is_file():
        raise BackendError(f"{package} is missing; optimise the net again")
    load_kernels(folder)
    model = load_package(package)
    plain = None if with_passes else model  # one with passes takes the tensors alone
    loader: Any = model.loader  # type: ignore[attr-defined]
    built = call.built(name, loader.boxed_run, is_frozen, plain)
    if is_frozen:
        return built
    constants = torch.load(folder / CONSTANTS_FILE, weights_only=True)

    def bind(weights: Mapping[str, torch.Tensor]) -> None:
        values = {}
        for name in loader.get_constant_fqns():
            value = weights.get(name, constants.get(name))
            if value is None:
                raise BackendError(f"the net has no weight {name}, which {package} was made with")
            values[name] = value.detach()
        # it reads the net's own memory, so that weights that are updated in place are right
        model.load_constants(values, check_full_update=True, user_managed=True)

    bind(call.weights)
    return replace(built, bind=bind)


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


def _aot(says: str, with_passes: bool = False, **options: Any) -> Backend:
    build = partial(_build_aot, options=options, with_passes=with_passes)
    is_frozen = bool(options.get("freezing"))
    load = partial(_load_aot, is_frozen=is_frozen, with_passes=with_passes)
    return Backend(says, build, load, is_frozen, is_inductor=True)


def _compile(says: str, mode: str | None = None, **options: Any) -> Backend:
    build = partial(_compiled, options=options, mode=mode)
    return Backend(says, build, build, bool(options.get("freezing")), is_inductor=True)


def _passes(says: str, residual: Residual) -> Backend:
    build = partial(build_with_passes, residual=residual)
    load = partial(load_with_passes, residual=residual)
    return Backend(says, build, load, is_inductor=residual == "inductor")


BACKENDS: Mapping[str, Backend] = {
    "eager": Backend("eager torch", _eager, _eager),
    "compile": _compile("torch.compile"),
    "graph": Backend("the graph that Dynamo finds, op by op", build_graph, build_graph),
    "aot": _aot("AOTInductor"),
    "compile_frozen": _compile("torch.compile with freezing", freezing=True),
    "aot_frozen": _aot("AOTInductor with freezing", freezing=True),
    "script_frozen": Backend(
        "torch.jit.optimize_for_inference", _build_script, _load_script, is_frozen=True
    ),
    "aot_autotune_frozen": _aot(
        "AOTInductor with freezing and max_autotune", freezing=True, max_autotune=True
    ),
    "openvino_frozen": Backend(
        "OpenVINO", runtimes.build_openvino, runtimes.load_openvino, is_frozen=True
    ),
    "onnxruntime_frozen": Backend(
        "ONNX Runtime", runtimes.build_onnxruntime, runtimes.load_onnxruntime, is_frozen=True
    ),
    "passes": _passes("the graph with passes, the rest op by op", "eager"),
    "passes_compiled": _passes("the graph with passes, the rest by Inductor", "inductor"),
    "aot_passes": _aot("AOTInductor, of the graph with passes", with_passes=True),
    "aot_passes_frozen": _aot(
        "AOTInductor with freezing, of the graph with passes", with_passes=True, freezing=True
    ),
    "compile_autotune": _compile("torch.compile, max-autotune", mode="max-autotune-no-cudagraphs"),
}
"""All backends by name, in the order of trial: the likely and the cheap first."""
