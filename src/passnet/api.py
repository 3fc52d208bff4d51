"""Python entry points, which `passnet` offers under the same names."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from passnet.data.capture.capture import capture
from passnet.errors import InputError, no_such
from passnet.optimizer.call.fast_net import Arguments, FastNet
from passnet.optimizer.optimize import Optimized, optimize_net
from passnet.optimizer.package import load
from passnet.optimizer.settings import DEFAULTS, OptimizeSettings
from passnet.optimizer.tune import Progress
from passnet.pages.optimizer.page import write_optimizer_page
from passnet.passes.load import Folders

if TYPE_CHECKING:
    from torch.export import ExportedProgram

    from passnet.optimizer.backends.onnx_passes import OnnxFiles
    from passnet.passes.inductor_pass import InductorPass

__all__ = [
    "capture",
    "export_with_passes",
    "inductor_pass",
    "load",
    "onnx_library",
    "onnx_rules",
    "onnx_with_passes",
    "optimize",
    "optimize_calls",
    "passes_in_inductor",
]


def optimize(
    net: Callable[..., Any],
    *args: Any,
    inputs: Sequence[Any] = (),
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    **settings: Any,
) -> FastNet:
    """Return a net that is called like yours, returns the same, and is as fast as passnet finds.

    passnet builds the net with every compiler and runtime it supports, checks each against eager
    torch, and times them side by side. All of this runs on a copy: your net, your arguments,
    torch's random state and its modes stay as they are. The result follows later updates of your
    net's weights.

    Args:
        net: a module in evaluation mode, or a function of tensors.
        args: an example of its arguments, by position.
        inputs: instead of `args`, one example for each input signature: a tuple of arguments by
            position, or a dict of them by name. A tensor or a dict alone is one example.
        out: a folder for the result, which `passnet.load` reads; None saves nothing.
        resume: continue an earlier run in that folder; load its result if it is finished.
        progress: called with the record of each backend as soon as it was tried.
        **settings: fields of `OptimizeSettings`.

    Raises:
        InputError: the net is in training mode, cannot be copied, fails on its inputs, or returns
            no tensors; `out` is a file or not empty; a setting is unknown, or an argument or
            setting is of another kind.

    Examples:
        >>> import torch
        >>> net = torch.nn.Linear(4, 2).eval()
        >>> fast = optimize(net, torch.ones(1, 4), backends=("graph",), seconds=0.1)
        >>> torch.equal(fast(torch.ones(1, 4)), net(torch.ones(1, 4)))
        True
    """
    fields = OptimizeSettings.__dataclass_fields__
    unknown = sorted(set(settings) - set(fields))
    if unknown:
        names = inspect.signature(optimize).parameters.keys() - {"args", "settings", "net"}
        raise InputError(
            f"{no_such('setting', unknown[0], [*fields, *sorted(names)])}; give arguments of the "
            'net by name as inputs=[{"name": value}]'
        )
    examples = _examples(inputs)
    if bool(args) == bool(examples):
        raise InputError("give an example of the net's arguments, or several by inputs=[...]")
    calls = [_arguments(example) for example in (examples or [args])]
    return optimize_calls(net, calls, OptimizeSettings(**settings), out, resume, progress).net


def optimize_calls(
    net: Callable[..., Any],
    calls: Sequence[Arguments],
    settings: OptimizeSettings = DEFAULTS,
    out: str | Path | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Optimized:
    """Like `optimize`, for arguments by position and by name; return the record too."""
    return optimize_net(net, calls, settings, out, resume, progress, write_optimizer_page)


def _examples(inputs: Any) -> list[Any]:
    """Return the examples of a call: one where a tensor or a dict stands alone."""
    import torch

    if isinstance(inputs, (torch.Tensor, dict)):
        return [inputs]
    if not isinstance(inputs, (list, tuple)):
        raise InputError(
            f"inputs is {type(inputs).__name__}; give a list of examples, each a tuple of "
            "arguments by position or a dict of them by name"
        )
    return [*inputs]


def _arguments(example: Any) -> Arguments:
    if isinstance(example, dict):
        return (), example
    return (example if isinstance(example, (tuple, list)) else (example,)), {}


def inductor_pass(
    passes: Folders | None = None,
    library: str | Path | None = None,
    packed_weights: bool = False,
    weight_bits: int = 32,
) -> "InductorPass":
    """Return pass folders, the winners of a library here, and packed weights as a pass of Inductor.

    Set it as `torch._inductor.config.pre_grad_custom_pass`, alone or in a list with others.

    Raises:
        InputError: none of them is given, or a folder is malformed.
        PassError: weights cannot be packed here.
    """
    from passnet.passes.inductor_pass import InductorPass  # with Inductor: seconds

    return InductorPass(passes, library, packed_weights, weight_bits)


def passes_in_inductor(
    passes: Folders | None = None,
    library: str | Path | None = None,
    packed_weights: bool = False,
    weight_bits: int = 32,
) -> "AbstractContextManager[InductorPass]":
    """Add passes to Inductor within a context, as `inductor_pass` makes them.

    `torch.compile` compiles at the first call, so that belongs within too.
    """
    from passnet.passes.inductor_pass import passes_in_inductor

    return passes_in_inductor(passes, library, packed_weights, weight_bits)


def export_with_passes(
    net: Callable[..., Any], *args: Any, passes: Folders, **kwargs: Any
) -> "ExportedProgram":
    """Return a net as a program of `torch.export`, rewritten by passes before its ops are ATen's.

    C++ kernels are ops in it, which a package of AOTInductor calls by name; a process that has not
    loaded the passes gets them by `inductor_pass`. The program takes the tensors among the
    arguments, in order, and returns the tensors among the outputs. Its sizes are the example's.

    Raises:
        InputError: the net is in training mode or fails on these arguments, or no folder is given.
        BackendError: the net is not one graph, no pass matches, none can be exported, or the net
            returns an argument or other values than tensors.
    """
    from passnet.optimizer.backends.graphs import export_rewritten

    return export_rewritten(net, args, kwargs, passes)


def onnx_with_passes(
    net: Callable[..., Any], *args: Any, passes: Folders, path: str | Path
) -> "OnnxFiles":
    """Write a net with passes as an ONNX file, and a library of their kernels as custom ops.

    ONNX Runtime reads both: `SessionOptions.register_custom_ops_library` takes the library. The
    file takes tensors of the sizes of the example.

    Args:
        net: a module in evaluation mode, or a function of tensors.
        args: an example of its arguments, by position.
        passes: a pass folder, or several in order.
        path: the file; the library and its kernels are written next to it.

    Raises:
        InputError: the net is in training mode or fails on these arguments.
        BackendError: onnx or onnxscript is missing, the net is not one graph, or no pass matches.
        PassError: a kernel cannot be a custom op.
    """
    from passnet.optimizer.backends.onnx_passes import export_with_passes

    return export_with_passes(net, args, passes, Path(path))


def onnx_rules(passes: Folders, *example: Any) -> list[Any]:
    """Return passes as `onnxscript.rewriter.RewriteRule`s, for nets that are ONNX files already.

    Args:
        passes: a pass folder, or several whose patterns take the same arguments.
        *example: arguments of the pattern. The rules match literals as they are here, and tensors
            of any size.

    Raises:
        InputError: a folder is malformed.
        PassError: onnxscript is missing, or a pattern cannot be exported.
    """
    from passnet.passes.onnx_rule import rewrite_rules

    return rewrite_rules(passes, *example)


def onnx_library(model: Any, folder: str | Path) -> Path:
    """Write the kernels that a rewritten `onnx_ir.Model` calls as a library for ONNX Runtime.

    Returns the path that `SessionOptions.register_custom_ops_library` takes; the kernels lie in
    the same folder.

    Raises:
        PassError: no compiler, or this process has not loaded a pass whose kernel is called.
    """
    from passnet.passes.onnx_op import write_library

    return write_library(model, Path(folder))
