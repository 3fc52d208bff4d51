"""Other runtimes than torch as backends: OpenVINO and ONNX Runtime, on the processor.

Both take the net from `torch.export` with its weights folded in, and save it in a file, in a child
process. They read inputs in torch's memory, as numpy arrays.
"""

import gc
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import torch

from passnet.errors import BackendError
from passnet.optimizer.backends.in_child import (
    MakeFile,
    RunTensors,
    in_fork,
    read_program,
    save_program,
    with_repeated,
)
from passnet.optimizer.call.call_check import flushes_denormals
from passnet.optimizer.call.net_call import BuiltBackend, NetCall

OPENVINO_FILE, ONNX_FILE = "net.xml", "net.onnx"

Packages: TypeAlias = Mapping[str, tuple[str, ...]]

RUNTIMES: Packages = {
    "openvino_frozen": ("openvino",),
    "onnxruntime_frozen": ("onnxruntime", "onnx", "onnxscript"),
}
"""The backends by optional runtimes, and the packages of each."""

DTYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
}
"""The dtypes that tensors of a call may have: numpy has no bfloat16."""

OPENVINO_SETTINGS: Mapping[str, Any] = {
    "EXECUTION_MODE_HINT": "ACCURACY",
    "INFERENCE_PRECISION_HINT": "f32",
    "PERFORMANCE_HINT": "LATENCY",
    "NUM_STREAMS": 1,
    "ENABLE_CPU_PINNING": False,
}
"""By default it may compute in bfloat16, and bind its threads to cores."""


def is_installed(name: str, packages: Packages = RUNTIMES) -> bool:
    """Return whether the packages of a backend are installed; torch backends need none."""
    return all(find_spec(package) for package in packages.get(name, ()))


def make_openvino(
    call: NetCall, folder: Path, name: str, packages: Packages = RUNTIMES
) -> MakeFile:
    """Export a net, and return the work of a child that makes OpenVINO's files of it."""
    _check(call, name, packages)
    if any(tensor.dtype is torch.float64 for tensor in _all_tensors(call)):
        raise BackendError("OpenVINO computes float64 as float32")
    save_program(call, folder)
    return partial(_convert_to_openvino, folder)


def _convert_to_openvino(folder: Path) -> None:
    tensors = _save_openvino(folder)
    gc.collect()  # the converted program holds itself, and its weights
    _open_openvino(folder / OPENVINO_FILE, OPENVINO_SETTINGS)(tensors)


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry, which starts a thread and may report to its makers."""
    if not {"openvino", "openvino_telemetry"} & {*sys.modules}:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
        try:
            import_module("openvino.tools.ovc")
        finally:
            del sys.modules["openvino_telemetry"]
    return import_module("openvino")


def _save_openvino(folder: Path) -> list[torch.Tensor]:
    """Convert the net, and return the tensors of its example."""
    openvino = import_openvino()
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.fx_decoder import TorchFXPythonDecoder

    program, tensors = read_program(folder)
    # openvino.convert_model does the same, and reports its use to its makers unasked
    frontend = FrontEndManager().load_by_framework("pytorch")
    decoder = TorchFXPythonDecoder.from_exported_program(program, dynamic_shapes=False)
    model = frontend.convert(frontend.load(decoder))
    inputs = list(program.graph_signature.user_inputs)
    for port in model.inputs:
        [number] = [inputs.index(name) for name in port.names if name in inputs]
        port.get_tensor().set_names({_name(number)})
    openvino.save_model(model, folder / OPENVINO_FILE, compress_to_fp16=False)
    return tensors


def _open_openvino(path: Path, settings: Mapping[str, Any]) -> RunTensors:
    openvino = import_openvino()
    core = openvino.Core()
    options = {**settings, "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    request = core.compile_model(core.read_model(path), "CPU", options).create_infer_request()
    # OpenVINO adds the names of ops that it drops
    positions = [
        _position(name) for port in request.model_inputs for name in port.names if _is_own(name)
    ]
    # outputs are copied out of OpenVINO's own memory, which the next call overwrites
    numbers = range(len(request.model_outputs))
    views = [torch.from_numpy(request.get_output_tensor(number).data) for number in numbers]

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        arrays = [_array(tensors[n]) for n in positions]  # OpenVINO does not keep them alive
        for number, array in enumerate(arrays):
            request.set_input_tensor(number, openvino.Tensor(array, shared_memory=True))
        request.infer(share_outputs=True)
        return [view.clone() for view in views]

    return run


def load_openvino(
    call: NetCall, folder: Path, name: str, settings: Mapping[str, Any] = OPENVINO_SETTINGS
) -> BuiltBackend:
    """Load the net by OpenVINO from its folder."""
    run = _open_openvino(_file(call, folder / OPENVINO_FILE, name), settings)
    return call.built(name, with_repeated(call, run), is_frozen=True)


def make_onnxruntime(
    call: NetCall, folder: Path, name: str, packages: Packages = RUNTIMES
) -> MakeFile:
    """Export a net, and return the work of a child that makes a file for ONNX Runtime of it."""
    _check(call, name, packages)
    save_program(call, folder)
    return partial(_convert_to_onnx, folder)


def _convert_to_onnx(folder: Path) -> None:
    arrays = in_fork(_save_onnx, folder)  # the exporter never frees weights
    _open_onnxruntime(folder / ONNX_FILE)([torch.from_numpy(array) for array in arrays])


def _save_onnx(folder: Path) -> list[Any]:
    """Convert the net, and return the tensors of its example as arrays."""
    program, tensors = read_program(folder)
    names = [_name(number) for number in range(len(tensors))]
    path = folder / ONNX_FILE
    torch.onnx.export(program, (), path, input_names=names, dynamo=True, verbose=False)
    return list(map(_array, tensors))


def _open_onnxruntime(path: Path) -> RunTensors:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.log_severity_level = 4
    # its threads would else spin for a while after each call, which slows the next backend
    options.add_session_config_entry("session.force_spinning_stop", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = [(port.name, _position(port.name)) for port in session.get_inputs()]

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        arrays = {name: _array(tensors[position]) for name, position in inputs}
        # copies, as callers cannot resize what is numpy's
        return [torch.from_numpy(array).clone() for array in session.run(None, arrays)]

    return run


def load_onnxruntime(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Load the net by ONNX Runtime from its folder."""
    run = _open_onnxruntime(_file(call, folder / ONNX_FILE, name))
    return call.built(name, with_repeated(call, run), is_frozen=True)


def _check(call: NetCall, name: str, packages: Packages = RUNTIMES) -> None:
    """Refuse runtimes that are not installed, and calls with tensors that no runtime takes."""
    if not is_installed(name, packages):
        missing = " and ".join(name for name in packages[name] if not find_spec(name))
        raise BackendError(f"{missing} is not installed; pip install 'passnet[runtimes]'")
    if flushes_denormals():
        raise BackendError("torch.set_flush_denormal is on, which runtimes switch off")
    for tensor in (*call.tensors(), *call.outputs):
        if tensor.dtype not in DTYPES:
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise BackendError(f"{name} takes and returns no {dtype}")
    for tensor in _all_tensors(call):
        if tensor.device.type != "cpu":
            raise BackendError(f"{name} runs on the processor, and a tensor is on {tensor.device}")


def _all_tensors(call: NetCall) -> list[torch.Tensor]:
    return [*call.tensors(), *call.outputs, *call.weights.values()]


def _file(call: NetCall, path: Path, name: str) -> Path:
    _check(call, name)
    if not path.is_file():
        raise BackendError(f"{path} is missing; optimise the net again")
    return path


def _array(tensor: torch.Tensor) -> Any:
    """Return a numpy array of the same memory, or a copy if the tensor is not contiguous."""
    return tensor.detach().contiguous().numpy()


def _name(number: int | str) -> str:
    return f"passnet_input_{number}"


def _is_own(name: str) -> bool:
    return name.startswith(_name(""))


def _position(name: str) -> int:
    """Return the position of an input among the tensors of a call; runtimes drop unused ones."""
    return int(name.removeprefix(_name("")))


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings and logs."""
    root, silent, level = logging.getLogger(), logging.NullHandler(), logging.root.manager.disable
    root.addHandler(silent)  # without one, a first message sets the whole process up to print all
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        root.removeHandler(silent)
