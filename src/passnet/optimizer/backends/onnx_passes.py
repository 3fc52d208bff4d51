"""ONNX files of nets with passes: their kernels are custom ops of ONNX Runtime."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from passnet.errors import BackendError, InputError, boundary
from passnet.optimizer.backends.graphs import export_rewritten
from passnet.optimizer.outside.quiet import quiet
from passnet.passes.load import Folders
from passnet.passes.onnx_op import DOMAIN, onnx_program, write_library


@dataclass(frozen=True, slots=True)
class OnnxFiles:
    """An ONNX file with nodes of kernels, and the library of their ops beside it."""

    net: Path
    library: Path
    num_kernels: int


def export_with_passes(
    net: Callable[..., Any], args: tuple[Any, ...], passes: Folders, path: Path
) -> OnnxFiles:
    """Write the graph of a net with passes as an ONNX file of the sizes of these arguments.

    Raises:
        InputError: the net is in training mode or fails on these arguments.
        BackendError: a package is missing, the net is not one graph, no pass matches, or none can
            be exported.
        PassError: a kernel cannot be a custom op.
    """
    with boundary(BackendError, "ONNX files need onnx and onnxscript"):
        import onnxscript  # noqa: F401
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the ONNX file")
    program = export_rewritten(net, args, {}, passes)
    with torch.no_grad(), quiet(), boundary(BackendError, "torch.onnx"):
        exported = onnx_program(program)
    library = write_library(exported.model, path.parent)
    exported.save(path)
    nodes = exported.model.graph.all_nodes()
    return OnnxFiles(path, library, sum(node.domain == DOMAIN for node in nodes))
