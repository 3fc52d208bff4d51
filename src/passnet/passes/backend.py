"""The backend of `torch.compile(net, backend="passnet", options={"passes": folder})`."""

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import torch
import torch.fx

from passnet.core.hardware import this_hardware
from passnet.errors import InputError, no_such
from passnet.inductor.compiler import compile_with_inductor
from passnet.passes.apply.first_call import check_first_calls
from passnet.passes.apply.guarded_call import apart_call, share_memory, writes_arguments
from passnet.passes.apply.op_observer import Observer
from passnet.passes.apply.rewrite import PassReport, apply_passes, check_calls
from passnet.passes.load import loaded_passes
from passnet.passes.match.pattern import Pass, SkippedPass

Residual: TypeAlias = Literal["eager", "inductor", "inlined"]
"""Runner of the ops that no pass replaced: eager torch, Inductor around the replacements as ops, or
Inductor with the replacements that it can trace inlined."""

OPTIONS = ("passes", "library", "residual", "report", "observer", "is_judged")

_log = logging.getLogger("passnet")


def passnet_backend(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile one graph of Dynamo with passes; `module` is rewritten, `mode` must be None.

    Args:
        module: the graph.
        example_inputs: its arguments.
        options: `passes`, a pass folder or a list of them; `library`, a library of judged passes,
            whose winners on this hardware come last; `residual`, "eager" (default), "inductor" or
            "inlined"; `report`, a callable for the list of `PassReport`s; `observer`, an
            `Observer`; `is_judged`, true in a judge's process: nothing then protects it from
            replacements.
        mode: None; torch.compile hands it on.

    Raises:
        InputError: an option is unknown or malformed, or a pass folder is.
        PassError: a pass fails to load or to apply.
    """
    options = dict(options or {})
    unknown = [name for name in options if name not in OPTIONS]
    if unknown or mode is not None:
        missing = no_such("option", unknown[0], OPTIONS) if unknown else f"no mode {mode!r}"
        raise InputError(f"backend passnet has {missing}")
    residual = options.get("residual", "eager")
    if residual not in get_args(Residual):
        raise InputError(f"residual is {residual!r}; choose eager, inductor or inlined")
    passes = loaded_passes(options.get("passes"))
    if options.get("library") is not None:
        devices = {v.device.type for v in example_inputs if isinstance(v, torch.Tensor)}
        device = "cuda" if "cuda" in devices else "cpu"
        passes += library_passes(Path(options["library"]), device)
    is_judged = bool(options.get("is_judged"))
    if not is_judged:
        passes = without_bare_kernels(passes)
    original = None
    if not is_judged and writes_arguments(module.graph):
        if share_memory(example_inputs):  # Inductor, too, would lose writes of other calls
            return module.forward
        original = torch.fx.GraphModule(module, copy.copy(module.graph)).forward
    if stays(module.graph, example_inputs):
        passes = []
    compiled, reports = compile_graph(
        module, example_inputs, passes, residual, options.get("observer"), is_judged
    )
    if original is not None and (residual != "eager" or any(each.num_matches for each in reports)):
        compiled = apart_call(original, compiled)
    log_reports(reports)
    if options.get("report"):
        options["report"](reports)
    return compiled


def stays(graph: torch.fx.Graph, example_inputs: Sequence[Any]) -> bool:
    """Return whether a graph stays as it is, and warn: passes have no gradients, do not know the
    dtypes in which autocast computes, and may read after a write into memory that is shared.
    """
    tensors = [value for value in example_inputs if isinstance(value, torch.Tensor)]
    devices = {tensor.device.type for tensor in tensors}
    if any(map(_is_autocast, devices)) or any(map(_enters_autocast, graph.nodes)):
        _warn_once("nothing is rewritten by passes under autocast, which computes in other dtypes")
        return True
    if share_memory(tensors) and writes_arguments(graph):
        _warn_once("nothing is rewritten by passes where a net writes into inputs of one memory")
        return True
    has_gradients = torch.is_grad_enabled() or any(map(_enables_gradients, graph.nodes))
    if not has_gradients or not any(tensor.requires_grad for tensor in tensors):
        return False
    _warn_once(
        "nothing is rewritten by passes: gradients are on and an input or a weight needs one, "
        "and replacements have no derivative; call the net within torch.no_grad() or "
        "torch.inference_mode() (eval() alone does not switch gradients off)"
    )
    return True


def _is_autocast(device: str) -> bool:
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)


def _enters_autocast(node: torch.fx.Node) -> bool:
    if node.target is not torch.amp.autocast_mode._enter_autocast:
        return False
    enabled = node.args[2] if len(node.args) > 2 else node.kwargs.get("enabled", True)
    return enabled is not False


def _enables_gradients(node: torch.fx.Node) -> bool:
    return node.target is torch._C._set_grad_enabled and node.args[:1] != (False,)


def log_reports(reports: Sequence[PassReport]) -> None:
    """Log what passes did in a graph."""
    for report in reports:
        _log.info("%s matched %d times", report.name, report.num_matches)
        if report.miss:
            _log.info("nearest miss of %s", report.miss.sentence())
        if report.skipped:
            _log.warning("%s", report.skipped)


def without_bare_kernels(passes: Sequence[Pass | SkippedPass]) -> list[Pass | SkippedPass]:
    """Return the passes whose kernels have known dtypes; warn about the others."""
    checked: list[Pass | SkippedPass] = []
    for pass_ in passes:
        if isinstance(pass_, SkippedPass) or not pass_.has_bare_kernels:
            checked.append(pass_)
        else:
            _warn_once(
                f"{pass_.name} is not applied: its folder has C++ kernels that take addresses, "
                "which may be of any dtype; make them by cpp.kernel(source, name), without a "
                "signature, and call them with tensors"
            )
    return checked


@cache
def _warn_once(sentence: str) -> None:
    _log.warning(sentence)


def library_passes(library: Path, device: str) -> list[Pass | SkippedPass]:
    """Return a library's winning passes for this hardware; those without guards are left out."""
    from passnet.passes.library.entries import winning_folders

    hardware = this_hardware(torch.get_num_threads(), device)
    passes = loaded_passes(winning_folders(library, hardware))
    if not passes:
        _warn_once(
            f"{library} has no pass that wins on {hardware.text}; to judge what it has here, run "
            f"`passnet library verify {library} --threads {hardware.num_threads}`"
        )
    for pass_ in passes:
        if isinstance(pass_, Pass) and pass_.guards is None:
            _warn_once(
                f"{pass_.name} of {library} is not applied: it has no guards, so that it would "
                "also match where it was not judged; give it a function `guard`"
            )
    return [pass_ for pass_ in passes if isinstance(pass_, SkippedPass) or pass_.guards]


def compile_graph(
    module: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    passes: Sequence[Pass | SkippedPass],
    residual: Residual = "eager",
    observer: Observer | None = None,
    is_judged: bool = False,
) -> tuple[Callable[..., Any], list[PassReport]]:
    """Return a callable for a graph rewritten by passes, and the passes' reports.

    Unless judged, a replacement whose first call returns another form gives way to the original
    ops.
    """
    reports, sites = apply_passes(module, passes, example_inputs)
    if observer is not None:
        observer.add(sites)
    if residual != "eager":
        from passnet.passes.apply.custom_op import wrap_sites

        wrap_sites(module, sites, example_inputs, is_judged, sees_through=residual == "inlined")
        return compile_with_inductor(module, example_inputs), reports
    compiling: Any = module
    if hasattr(module, "real_recompile"):  # as Dynamo's modules, which put it off to their calls
        compiling.real_recompile()
    check_calls(module, sites)
    if not is_judged:
        check_first_calls(module, sites)
    return module.forward, reports
