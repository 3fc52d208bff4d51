"""ONNX Runtime, on the processor."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.in_child import (
    MakeFile,
    RunTensors,
    in_fork,
    read_program,
    save_program,
    with_repeated,
)
from passnet.optimizer.backends.runtimes import (
    array_of,
    check_call,
    input_name,
    position_of,
    saved_file,
)
from passnet.optimizer.call.net_call import BuiltBackend, NetCall

NET_FILE = "net.onnx"


def make(call: NetCall, folder: Path, name: str) -> MakeFile:
    """Export a net, and return the work of a child that makes a file for ONNX Runtime of it."""
    check_call(call, name)
    save_program(call, folder)
    return partial(_convert, folder)


def _convert(folder: Path) -> None:
    arrays = in_fork(_save, folder)  # the exporter never frees weights
    _open(folder / NET_FILE)([torch.from_numpy(array) for array in arrays])


def _save(folder: Path) -> list[Any]:
    """Convert the net, and return the tensors of its example as arrays."""
    program, tensors = read_program(folder)
    names = [input_name(number) for number in range(len(tensors))]
    path = folder / NET_FILE
    torch.onnx.export(program, (), path, input_names=names, dynamo=True, verbose=False)
    return list(map(array_of, tensors))


def _open(path: Path) -> RunTensors:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 4
    # its threads would else spin for a while after each call, which slows the next backend
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = [(port.name, position_of(port.name)) for port in session.get_inputs()]

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        arrays = {name: array_of(tensors[position]) for name, position in inputs}
        # copies, as callers cannot resize what is numpy's
        return [torch.from_numpy(array).clone() for array in session.run(None, arrays)]

    return run


def load(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Load the net by ONNX Runtime from its folder."""
    run = _open(saved_file(call, folder / NET_FILE, name))
    return call.built(name, with_repeated(call, run), is_frozen=True)


BACKENDS: Mapping[str, Backend] = {
    "onnxruntime_frozen": Backend(
        "ONNX Runtime",
        load,
        load,
        is_frozen=True,
        make=make,
        packages=("onnxruntime", "onnx", "onnxscript"),
    )
}
