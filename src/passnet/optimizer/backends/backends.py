"""The backends by name, most of them torch's own; each loads from the files that it saves."""

import os
import shutil
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from passnet.core.jobs.process import JobRunner
from passnet.errors import BackendError, PassError, boundary, naming
from passnet.inductor.compiler import (
    build_package,
    compile_files,
    compile_no_more,
    inductor_settings,
    load_package,
    own_frame,
    pack,
)
from passnet.optimizer.backends import runtimes
from passnet.optimizer.backends.dynamo_graph import (
    build_graph,
    build_with_passes,
    chosen_passes,
    load_with_passes,
    rewritten_program,
)
from passnet.optimizer.backends.in_child import (
    MakeFile,
    do_in_child,
    in_fork,
    read_program,
    save_program,
    with_repeated,
)
from passnet.optimizer.backends.runtimes import quiet
from passnet.optimizer.call.compiled_check import extension
from passnet.optimizer.call.net_call import BuiltBackend, FlatNet, NetCall
from passnet.optimizer.call.weight_file import LARGE_BYTES
from passnet.optimizer.compare.form import with_form
from passnet.optimizer.record import BackendRecord
from passnet.passes.backend import Residual
from passnet.passes.kernel_op import kernels_of, load_kernels, write_kernels

PACKAGE_FILE = "net.pt2"
CONSTANTS_FILE = "constants.pt"
SCRIPT_FILE = "net.pt"

QUIET = {"autotune_num_choices_displayed": 0, "max_autotune_report_choices_stats": False}
"""Inductor's settings that silence autotuning."""

ROOM_BYTES = 4 << 20
"""Room on the disk for the code of a package; weights come twice besides, as a child reads them."""

Builder = Callable[[NetCall, Path, str], BuiltBackend]
"""Build or load a backend for a call, in a folder, by name; BackendError where it cannot."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A compiler or runtime for nets."""

    says: str
    """Description for tables."""

    build: Builder
    """Builds it, from the files that a child made where there is `make`."""

    load: Builder
    """Loads it from the folder of its build."""

    is_frozen: bool = False

    is_inductor: bool = False

    is_unchecked: bool = False
    """It writes out of bounds where an index is out of range."""

    make: Callable[[NetCall, Path, str], MakeFile] | None = None
    """Returns the work of a child process that makes its files, and calls it once."""

    @property
    def is_unstoppable(self) -> bool:
        """True where building takes long and nothing can end it but this process's end."""
        return self.is_inductor and self.make is None


def build_backend(
    name: str,
    backend: Backend,
    call: NetCall,
    folder: Path,
    freeze: bool = False,
    runner: JobRunner | None = None,
    seconds: float = 3600.0,
) -> BuiltBackend:
    """Build a backend of a net, with the files to load it in `folder`.

    Args:
        name: of the backend.
        backend: how it is built.
        call: the net and its example.
        folder: is made anew.
        freeze: the weights will not change.
        runner: runs child processes; None starts a new one.
        seconds: a child is ended when so many have passed.

    Raises:
        BackendError: it cannot run this net.
        OSError: there is no room for its files.
    """
    start = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if name == "eager":
        return backend.build(call, folder, name)
    if call.refusal:
        raise BackendError(call.refusal)
    if backend.is_frozen and not freeze and (reason := _why_not_compared(call)):
        raise BackendError(
            f"{reason}, so folded weights cannot be compared at each call; give freeze=True "
            "(--freeze) if they will not change"
        )
    if backend.make is not None:
        _check_room(folder, 2 * call.num_bytes + ROOM_BYTES)
    with _building(name), inductor_settings(QUIET):
        if backend.make is not None:
            work = backend.make(call, folder, name)
            left_s = max(seconds - (time.monotonic() - start), 0.0)
            with call.weights_away():
                do_in_child(work, backend.says, folder, runner, left_s)
        return _with_form(call, backend, backend.build(call, folder, name))


def _check_room(folder: Path, num_bytes: int) -> None:
    """Raise OSError where a folder has no room for so many bytes."""
    path = folder / "room"
    with naming(path), path.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, num_bytes)
    path.unlink()


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
    with _building(name):
        return _with_form(call, backend, backend.load(call, folder, name))


@contextmanager
def _building(name: str) -> Iterator[None]:
    """Turn errors of compilers into BackendError, and silence their warnings and logs."""
    # warnings of passes are ours
    silence = nullcontext() if "passes" in name else quiet()
    with boundary(BackendError, name), torch.no_grad(), silence:
        yield


def _with_form(call: NetCall, backend: Backend, built: BuiltBackend) -> BuiltBackend:
    # an error in a loop that threads share, as for an index out of range, ends the process; one in
    # a package prints pages of C++
    is_shared = torch.get_num_threads() > 1 or backend.make is not None
    ends = backend.is_inductor and call.is_on_cpu and is_shared
    return replace(with_form(call, built), ends_process=ends or backend.is_unchecked)


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
    settings: dict[str, Any] = {"mode": mode} if mode else {"options": dict(options) or None}
    frame = own_frame(call.given)
    compiled: Any = torch.compile(frame, **settings)
    call.eager(call.leaves, compiled)
    with torch.inference_mode():  # Dynamo's guards tell these calls apart
        call.eager(call.leaves, compiled)
        call.eager(call.filled([tensor.clone() for tensor in call.tensors()]), compiled)
    compile_no_more(frame)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        return call.eager_outputs(call.filled(tensors), compiled)

    return call.built(name, run, "freezing" in options, compiled)


def _make_aot(call: NetCall, folder: Path, name: str, options: Mapping[str, Any]) -> MakeFile:
    """Export a net, and return the work of a child that compiles it into a package."""
    save_program(call, folder)
    torch.save(dict(call.exported_flat.constants), folder / CONSTANTS_FILE)
    return partial(_compile_package, folder, options)


def _compile_package(folder: Path, options: Mapping[str, Any]) -> None:
    # compiler and packer each hold folded weights twice, and the compiler keeps them
    pack(in_fork(partial(_compile_files, options=options), folder), folder / PACKAGE_FILE)
    program, tensors = read_program(folder)
    model = load_package(folder / PACKAGE_FILE)
    if "freezing" not in options:
        _bind(model, {**program.state_dict, **program.constants})
    model.loader.boxed_run(tensors)


def _compile_files(folder: Path, options: Mapping[str, Any]) -> list[str]:
    program, _ = read_program(folder)
    num_bytes = sum(weight.nbytes for weight in program.state_dict.values())
    # appended to the library instead of passing through an assembler and a linker
    appended = {"aot_inductor.force_mmap_weights": num_bytes >= LARGE_BYTES}
    return compile_files(program, {**QUIET, **_configs(options), **appended})


def _configs(options: Mapping[str, Any]) -> dict[str, Any]:
    configs = {**options, "aot_inductor.package_constants_in_so": "freezing" in options}
    if "freezing" not in options:
        # or weights of up to 8 values are folded in, and those of one value by uniform folding
        configs |= {"always_keep_tensor_constants": True, "joint_graph_constant_folding": False}
    return configs


def _build_aot_with_passes(
    call: NetCall, folder: Path, name: str, options: Mapping[str, Any]
) -> BuiltBackend:
    """Build a package of the graph with passes, in this process: their ops are in no other one."""
    program = rewritten_program(call, chosen_passes(folder))
    shims = write_kernels(kernels_of(program.graph), folder)
    torch.save(dict(program.constants), folder / CONSTANTS_FILE)
    configs = {**_configs(options), "aot_inductor.custom_ops_to_c_shims": shims}
    build_package(program, folder / PACKAGE_FILE, configs)
    return _load_aot(call, folder, name, "freezing" in options, with_passes=True)


def _load_aot(
    call: NetCall, folder: Path, name: str, is_frozen: bool, with_passes: bool = False
) -> BuiltBackend:
    package = folder / PACKAGE_FILE
    if not package.is_file():
        raise BackendError(f"{package} is missing; optimise the net again")
    load_kernels(folder)
    model = load_package(package)

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        return model.loader.boxed_run([*tensors])  # it empties the list

    built = call.built(name, run, is_frozen)
    if not with_passes:  # a program with passes is of all outputs
        built = replace(built, run=with_repeated(call, run))
        built = replace(built, plain=partial(_called, built))
    if is_frozen:
        return built
    constants = torch.load(folder / CONSTANTS_FILE, weights_only=True)
    prefix = "" if with_passes else "net."
    bound: list[torch.Tensor] = []
    weakref.finalize(model, _let_go, bound)

    def bind(weights: Mapping[str, torch.Tensor]) -> None:
        named = {f"{prefix}{name}": weight for name, weight in weights.items()}
        values = _bind(model, constants | named)
        _let_go(bound)
        bound[:] = values

    bind(call.weights)
    return replace(built, bind=bind)


def _let_go(bound: Sequence[torch.Tensor]) -> None:
    """Free what a package was bound to: torch 2.13 never lets go of these tensors."""
    for tensor in bound:
        tensor.data = tensor.new_empty(0)


def _bind(model: Any, weights: Mapping[str, torch.Tensor]) -> list[torch.Tensor]:
    """Let a package read weights in their own memory, so that it is right after updates.

    Return the tensors that it is bound to.
    """
    names = model.loader.get_constant_fqns()
    if missing := [name for name in names if name not in weights]:
        raise BackendError(f"the net has no weight {missing[0]}, which its package was made with")
    values = {name: weights[name].detach() for name in names}
    model.load_constants(values, check_full_update=True, user_managed=True)
    return [*values.values()]


def _called(built: BuiltBackend, *args: Any, **kwargs: Any) -> Any:
    """Call a package as torch's wrapper does, which flattens and nests by pytree."""
    leaves = tree_leaves((args, kwargs))
    return built([leaf for leaf in leaves if isinstance(leaf, torch.Tensor)])


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
    is_frozen = bool(options.get("freezing"))
    load = partial(_load_aot, is_frozen=is_frozen, with_passes=with_passes)
    if with_passes:
        build = partial(_build_aot_with_passes, options=options)
        return Backend(says, build, load, is_frozen, is_inductor=True)
    make = partial(_make_aot, options=options)
    return Backend(says, load, load, is_frozen, is_inductor=True, make=make)


def _compile(says: str, mode: str | None = None, **options: Any) -> Backend:
    build = partial(_compiled, options=options, mode=mode)
    return Backend(says, build, build, bool(options.get("freezing")), is_inductor=True)


def _passes(says: str, residual: Residual) -> Backend:
    build = partial(build_with_passes, residual=residual)
    load = partial(load_with_passes, residual=residual)
    return Backend(says, build, load, is_inductor=residual == "inductor")


BACKENDS: Mapping[str, Backend] = {
    "eager": Backend("eager torch", _eager, _eager),
    "graph": Backend("the graph that Dynamo finds, op by op", build_graph, build_graph),
    "onnxruntime_frozen": Backend(
        "ONNX Runtime",
        runtimes.load_onnxruntime,
        runtimes.load_onnxruntime,
        is_frozen=True,
        make=runtimes.make_onnxruntime,
    ),
    "openvino_frozen": Backend(
        "OpenVINO",
        runtimes.load_openvino,
        runtimes.load_openvino,
        is_frozen=True,
        is_unchecked=True,
        make=runtimes.make_openvino,
    ),
    "aot": _aot("AOTInductor"),
    "aot_frozen": _aot("AOTInductor with freezing", freezing=True),
    "compile": _compile("torch.compile"),
    "compile_frozen": _compile("torch.compile with freezing", freezing=True),
    "aot_autotune_frozen": _aot(
        "AOTInductor with freezing and max_autotune", freezing=True, max_autotune=True
    ),
    "script_frozen": Backend(
        "torch.jit.optimize_for_inference", _build_script, _load_script, is_frozen=True
    ),
    "passes": _passes("the graph with passes, the rest op by op", "eager"),
    "passes_compiled": _passes("the graph with passes, the rest by Inductor", "inductor"),
    "aot_passes": _aot("AOTInductor, of the graph with passes", with_passes=True),
    "aot_passes_frozen": _aot(
        "AOTInductor with freezing, of the graph with passes", with_passes=True, freezing=True
    ),
    "compile_autotune": _compile("torch.compile, max-autotune", mode="max-autotune-no-cudagraphs"),
}
"""All backends by name, in the order of trial: the cheap and strong ones first. `compile`, which
cannot be stopped, comes after AOTInductor, whose time tells how long it may take.
"""
