"""AOTInductor: a package that a child process compiles, or this one where it has passes."""

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.utils._pytree import tree_leaves

from passnet.errors import BackendError
from passnet.inductor.compiler import build_package, compile_files, load_package, pack
from passnet.optimizer.backends.backend import QUIET, Backend, Occasion
from passnet.optimizer.backends.graphs import chosen_passes, packed_program, rewritten_program
from passnet.optimizer.backends.held_constants import held_constants
from passnet.optimizer.backends.in_child import (
    MakeFile,
    in_fork,
    read_program,
    save_program,
    with_repeated,
)
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.call.weight_file import LARGE_BYTES
from passnet.optimizer.record import Precision
from passnet.passes.apply.packed_op import freeze_weights, load_op
from passnet.passes.kernel_op import kernels_of, load_kernels, write_kernels

_KEPT_CONSTANTS = {"always_keep_tensor_constants": True, "joint_graph_constant_folding": False}
"""Settings without which weights of up to 8 values are written into code, and those of one value
are made anew at each call.
"""

PACKAGE_FILE, CONSTANTS_FILE = "net.pt2", "constants.pt"


def _make_aot(
    call: NetCall,
    folder: Path,
    name: str,
    options: Mapping[str, Any],
    precision: Precision | None = None,
) -> MakeFile:
    """Export a net, and return the work of a child that compiles it into a package."""
    if precision is not None:
        if not torch.cpu._is_avx512_bf16_supported():
            raise BackendError(f"this processor has no arithmetic in {precision}")
        call = call.in_autocast(torch.bfloat16)
    save_program(call, folder)
    torch.save(held_constants(call, call.exported_flat), folder / CONSTANTS_FILE)
    return partial(_compile_package, folder, options)


def packed_backend(
    says: str,
    program_of: Callable[[NetCall], ExportedProgram],
    with_passes: bool = False,
    is_frozen: bool = False,
    **fields: Any,
) -> Backend:
    """Return a backend of a program whose weights are packed; `with_passes` for Dynamo's graph.

    A frozen one has the weights as constants, which its ops do not watch. It takes the place of the
    other where weights will not change.
    """
    load = partial(_load_packed, is_frozen=is_frozen, with_passes=with_passes)
    make = partial(_make_packed, program_of=program_of, is_frozen=is_frozen)
    when: Occasion = "freeze" if is_frozen else "changing"
    return Backend(says, load, load, is_frozen, is_inductor=True, make=make, when=when, **fields)


def _make_packed(
    call: NetCall,
    folder: Path,
    name: str,
    program_of: Callable[[NetCall], ExportedProgram],
    is_frozen: bool,
) -> MakeFile:
    if not call.is_on_cpu:
        raise BackendError("weights are packed on a CPU alone")
    program = program_of(call)
    if is_frozen:
        freeze_weights(program.graph)
        program.graph_module.recompile()
    else:
        torch.save(held_constants(call, program), folder / CONSTANTS_FILE)
    save_program(call, folder, program)
    options = {"freezing": True, **_KEPT_CONSTANTS} if is_frozen else {}
    return partial(_compile_packed, folder, options)


def _compile_packed(folder: Path, options: Mapping[str, Any]) -> None:
    load_op()
    _compile_package(folder, options)


def _load_packed(
    call: NetCall, folder: Path, name: str, is_frozen: bool, with_passes: bool
) -> BuiltBackend:
    load_op()
    return _load_aot(call, folder, name, is_frozen, with_passes)


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
    return configs if "freezing" in options else configs | _KEPT_CONSTANTS


def _build_aot_with_passes(
    call: NetCall, folder: Path, name: str, options: Mapping[str, Any]
) -> BuiltBackend:
    """Build a package of the graph with passes, in this process: their ops are in no other one."""
    program = rewritten_program(call, chosen_passes(folder))
    shims = write_kernels(kernels_of(program.graph), folder)
    torch.save(held_constants(call, program), folder / CONSTANTS_FILE)
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
    constants, names = torch.load(folder / CONSTANTS_FILE, weights_only=True)
    prefix = "" if with_passes else "net."
    bound: list[torch.Tensor] = []
    weakref.finalize(model, _let_go, bound)

    def bind(weights: Mapping[str, torch.Tensor]) -> None:
        named = {f"{prefix}{name}": weight for name, weight in weights.items()}
        named |= {constant: weights[name] for constant, name in names.items()}
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


def _aot(
    says: str,
    with_passes: bool = False,
    precision: Precision | None = None,
    **options: Any,
) -> Backend:
    is_frozen = bool(options.get("freezing"))
    load = partial(_load_aot, is_frozen=is_frozen, with_passes=with_passes)
    if with_passes:
        build = partial(_build_aot_with_passes, options=options)
        of_passes: dict[str, Any] = {"when": "authors", "is_of_one_size": True}
        return Backend(says, build, load, is_frozen, is_inductor=True, **of_passes)
    make = partial(_make_aot, options=options, precision=precision)
    return Backend(says, load, load, is_frozen, is_inductor=True, make=make, precision=precision)


BACKENDS: Mapping[str, Backend] = {
    "aot": _aot("AOTInductor"),
    "aot_frozen": _aot("AOTInductor with freezing", freezing=True),
    "aot_autotune_frozen": _aot(
        "AOTInductor with freezing and max_autotune", freezing=True, max_autotune=True
    ),
    "aot_packed": packed_backend(
        "AOTInductor, weights packed once", packed_program, with_passes=True, is_of_one_size=True
    ),
    "aot_packed_frozen": packed_backend(
        "AOTInductor with freezing, weights packed once",
        packed_program,
        with_passes=True,
        is_frozen=True,
        is_of_one_size=True,
    ),
    "aot_bf16": _aot(
        "AOTInductor with freezing, products in bfloat16", precision="bf16", freezing=True
    ),
    "aot_passes": _aot("AOTInductor, of the graph with passes", with_passes=True),
    "aot_passes_frozen": _aot(
        "AOTInductor with freezing, of the graph with passes", with_passes=True, freezing=True
    ),
}
