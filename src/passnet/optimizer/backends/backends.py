"""The ways to run a net, those that torch has first: each builds an entry, or says why it cannot.

What a way needs in another process it leaves in a folder of its own, from where `load` has it back
in seconds. Ways that fold the values of weights in are frozen.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_unflatten

from passnet.errors import BackendError, boundary
from passnet.inductor.compiler import (
    build_package,
    inductor_settings,
    load_package,
    reset_dynamo,
)
from passnet.optimizer.backends.aot_passes import rewritten_program
from passnet.optimizer.backends.dynamo_graph import (
    build_graph,
    build_with_passes,
    chosen_passes,
    load_with_passes,
)
from passnet.optimizer.backends.runtimes import (
    build_onnxruntime,
    build_openvino,
    load_onnxruntime,
    load_openvino,
)
from passnet.optimizer.call.built_backend import BuiltBackend
from passnet.optimizer.call.net_call import FlatNet, NetCall
from passnet.optimizer.record import BackendRecord
from passnet.passes.backend import Residual
from passnet.passes.kernel_op import kernels_of, load_kernels, write_kernels

PACKAGE_FILE = "net.pt2"
CONSTANTS_FILE = "constants.pt"
SCRIPT_FILE = "net.pt"

QUIET = {"autotune_num_choices_displayed": 0, "max_autotune_report_choices_stats": False}
"""Inductor's settings by which it prints nothing of what it tries."""

Builder = Callable[[NetCall, Path, str], BuiltBackend]
"""Makes an entry of a call, with a folder and the engine's name."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A way to run a net: how it is built, how it is had back from its folder, what it is, whether
    it folds the values of weights in, and whether Inductor writes its loops.
    """

    says: str
    build: Builder
    load: Builder
    is_frozen: bool = False
    is_inductor: bool = False


def build_backend(engine: str, call: NetCall, folder: Path, freeze: bool = False) -> BuiltBackend:
    """Build a way to run a net, whose weights will not change if `freeze`; what it needs elsewhere
    is left in the folder.

    Raises:
        BackendError: it cannot run this net.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if call.written and engine != "eager":
        raise BackendError(f"the net writes into {', '.join(call.written[:3])}")
    if BACKENDS[engine].is_frozen and not freeze and not call.is_on_cpu:
        raise BackendError(
            "weights on a card cannot be compared at each call; say by freeze=True (--freeze) that "
            "they will not change"
        )
    with boundary(BackendError, engine), torch.no_grad(), inductor_settings(QUIET):
        entry = BACKENDS[engine].build(call, folder, engine)
    # what is thrown in a loop that threads share, as for an index out of range, ends the process
    is_shared = BACKENDS[engine].is_inductor and call.is_on_cpu and torch.get_num_threads() > 1
    return replace(entry, ends_process=is_shared)


def load_backend(engine: str, call: NetCall, folder: Path) -> BuiltBackend:
    """Have a way to run a net back from the folder in which it was built.

    Raises:
        BackendError: what it left there is missing or broken, or does not fit the net.
    """
    with boundary(BackendError, engine), torch.no_grad():
        return BACKENDS[engine].load(call, folder, engine)


def with_checks(entry: BuiltBackend, freeze: bool, record: BackendRecord) -> BuiltBackend:
    """An entry with the checks that its calls need: of the values of weights that are folded in,
    unless a user says that they will not change, and of arguments that are not right in it.
    """
    return replace(
        entry,
        compares=entry.is_frozen and not freeze,
        bound=record.bound,
        index_bounds=record.index_bounds,
    )


def _eager(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
    return call.built(engine, lambda tensors: call.eager_outputs(call.filled(tensors)))


def _compiled(
    call: NetCall, folder: Path, engine: str, options: Mapping[str, Any], mode: str | None = None
) -> BuiltBackend:
    reset_dynamo()
    chosen: dict[str, Any] = {"mode": mode} if mode else {"options": dict(options) or None}
    compiled: Any = torch.compile(call.given, **chosen)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        args, kwargs = tree_unflatten(call.filled(tensors), call.args_spec)
        with torch.no_grad():
            return tree_leaves(compiled(*args, **kwargs))

    run(call.tensors())
    return call.built(engine, run, "freezing" in options, compiled)


def _build_aot(
    call: NetCall, folder: Path, engine: str, options: Mapping[str, Any], with_passes: bool = False
) -> BuiltBackend:
    is_frozen = bool(options.get("freezing"))
    configs = {"aot_inductor.package_constants_in_so": is_frozen, **options}
    if not is_frozen:
        configs["always_keep_tensor_constants"] = True  # or weights of up to 8 values are folded in
    if with_passes:
        program = rewritten_program(call, chosen_passes(folder))
        shims = write_kernels(kernels_of(program.graph), folder)
        configs["aot_inductor.custom_ops_to_c_shims"] = shims
    else:
        program = call.exported
    torch.save(dict(program.constants), folder / CONSTANTS_FILE)
    build_package(program, folder / PACKAGE_FILE, configs)
    return _load_aot(call, folder, engine, with_passes)


def _load_aot(call: NetCall, folder: Path, engine: str, with_passes: bool = False) -> BuiltBackend:
    package = folder / PACKAGE_FILE
    if not package.is_file():
        raise BackendError(f"{package} is missing; optimise the net again")
    load_kernels(folder)
    model = load_package(package)
    is_frozen = BACKENDS[engine].is_frozen
    plain = None if with_passes else model  # one with passes takes the tensors alone
    loader: Any = model.loader  # type: ignore[attr-defined]
    entry = call.built(engine, loader.boxed_run, is_frozen, plain)
    if is_frozen:
        return entry
    constants = torch.load(folder / CONSTANTS_FILE, weights_only=True)

    def bind(weights: Mapping[str, torch.Tensor]) -> None:
        held = {name: weights.get(name, constants.get(name)) for name in _constant_names(model)}
        missing = [name for name, value in held.items() if value is None]
        if missing:
            raise BackendError(f"the net has no weight {missing[0]}, which {package} was made with")
        held = {name: value.detach() for name, value in held.items() if value is not None}
        # it reads the net's own memory, so that weights that are updated in place are right
        model.load_constants(held, check_full_update=True, user_managed=True)

    bind(call.weights)
    return replace(entry, bind=bind)


def _constant_names(model: Any) -> list[str]:
    names: list[str] = model.get_constant_fqns()
    return names


def _build_script(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
    flat = FlatNet(call).eval()
    traced = torch.jit.trace(flat, tuple(call.tensors()), strict=False, check_trace=False)
    torch.jit.save(torch.jit.freeze(traced), folder / SCRIPT_FILE)
    return _load_script(call, folder, engine)


def _load_script(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
    # weights in oneDNN's layouts cannot be saved, so they are laid out anew
    script: Any = torch.jit.optimize_for_inference(torch.jit.load(folder / SCRIPT_FILE))
    entry = call.built(engine, lambda tensors: script(*tensors), is_frozen=True)
    for _ in range(3):  # it specialises itself in its first calls
        entry.run(call.tensors())
    return entry


def _aot(says: str, with_passes: bool = False, **options: Any) -> Backend:
    build = partial(_build_aot, options=options, with_passes=with_passes)
    load = partial(_load_aot, with_passes=with_passes)
    return Backend(says, build, load, bool(options.get("freezing")), is_inductor=True)


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
    "openvino_frozen": Backend("OpenVINO", build_openvino, load_openvino, is_frozen=True),
    "onnxruntime_frozen": Backend(
        "ONNX Runtime", build_onnxruntime, load_onnxruntime, is_frozen=True
    ),
    "passes": _passes("the graph with passes, the rest op by op", "eager"),
    "passes_compiled": _passes("the graph with passes, the rest by Inductor", "inductor"),
    "aot_passes": _aot("AOTInductor, of the graph with passes", with_passes=True),
    "aot_passes_frozen": _aot(
        "AOTInductor with freezing, of the graph with passes", with_passes=True, freezing=True
    ),
    "compile_autotune": _compile("torch.compile, max-autotune", mode="max-autotune-no-cudagraphs"),
}
"""All ways to run a net, in the order in which they are tried, the likely and the cheap first."""
