"""OpenVINO, on the processor."""

import gc
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from passnet.core.hardware import processor_instructions
from passnet.errors import BackendError
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
    Rounding,
    all_tensors,
    array_of,
    check_call,
    input_name,
    is_own,
    position_of,
    read_samples,
    save_samples,
    saved_file,
)
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.record import Precision

NET_FILE = "net.xml"

SETTINGS: Mapping[str, Any] = {
    "EXECUTION_MODE_HINT": "ACCURACY",
    "INFERENCE_PRECISION_HINT": "f32",
    "PERFORMANCE_HINT": "LATENCY",
    "NUM_STREAMS": 1,
    "ENABLE_CPU_PINNING": False,
}
"""By default it may compute in bfloat16, and bind its threads to cores."""


_FAST = {**SETTINGS, "EXECUTION_MODE_HINT": "PERFORMANCE"}
_BESIDE_INT8 = "bf16" if "amx_bf16" in processor_instructions() else "f32"
"""The precision of what is not rounded to int8; bfloat16 is no faster without AMX."""

LOWER: Mapping[Precision, Mapping[str, Any]] = {
    "int8": {**_FAST, "INFERENCE_PRECISION_HINT": _BESIDE_INT8},
    "bf16": {**_FAST, "INFERENCE_PRECISION_HINT": "bf16"},
    "fp16": {**_FAST, "INFERENCE_PRECISION_HINT": "f16"},
}
"""Settings for a lower precision, and what OpenVINO says of processors that have it."""

CAPABILITIES: Mapping[Precision | None, str] = {"bf16": "BF16", "fp16": "FP16"}

ATTENTION = {"ScaledDotProductAttention", "MVN"}
"""Ops of transformers, whose activations have outliers that rounding must spare."""


def make(
    call: NetCall,
    folder: Path,
    name: str,
    precision: Precision | None = None,
    rounds: Rounding | None = None,
) -> MakeFile:
    """Export a net, and return the work of a child that makes OpenVINO's files of it."""
    check_call(call, name)
    if any(tensor.dtype is torch.float64 for tensor in all_tensors(call)):
        raise BackendError("OpenVINO computes float64 as float32")
    if precision in CAPABILITIES:
        found = import_openvino().Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        if CAPABILITIES[precision] not in found:
            raise BackendError(f"this processor has no arithmetic in {precision}")
    settings = SETTINGS if precision is None else LOWER[precision]
    save_program(call, folder)
    if rounds is _round_all:
        save_samples(call, folder)
    return partial(_convert, folder, settings, rounds)


def _convert(folder: Path, settings: Mapping[str, Any], rounds: Rounding | None) -> None:
    tensors = _save(folder)
    if rounds is not None:
        in_fork(rounds, folder)
    gc.collect()  # the converted program holds itself, and its weights
    _open(folder / NET_FILE, settings)(tensors)


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry, which starts a thread and may report to its makers."""
    return _import_quietly("openvino", "openvino.tools.ovc")


def _import_quietly(name: str, *others: str) -> Any:
    if not {name, "openvino_telemetry"} & {*sys.modules}:
        sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
        try:
            for each in (*others, name):
                import_module(each)
        finally:
            del sys.modules["openvino_telemetry"]
    return import_module(name)


def _round_all(folder: Path) -> None:
    """Round weights and inputs of products and convolutions to int8, by samples of arguments."""
    nncf, core = _import_quietly("nncf"), import_openvino().Core()
    net = core.read_model(folder / NET_FILE)
    positions = _positions(net.inputs)
    samples = [[array_of(sample[n]) for n in positions] for sample in read_samples(folder)]
    ops = {op.get_type_name() for op in net.get_ops()}
    kind = nncf.ModelType.TRANSFORMER if ops & ATTENTION else None
    rounded = nncf.quantize(net, nncf.Dataset(samples), model_type=kind, subset_size=len(samples))
    _replace(folder, rounded)


def _round_weights(folder: Path) -> None:
    """Round weights of products to int8, by output channels."""
    nncf, core = _import_quietly("nncf"), import_openvino().Core()
    net = core.read_model(folder / NET_FILE)
    _replace(folder, nncf.compress_weights(net, mode=nncf.CompressWeightsMode.INT8_SYM))


def _replace(folder: Path, net: Any) -> None:
    """Let a net take the place of the one in its file, which it may have mapped."""
    rounded = folder / f"rounded-{NET_FILE}"
    import_openvino().save_model(net, rounded, compress_to_fp16=False)
    for suffix in (".xml", ".bin"):
        rounded.with_suffix(suffix).replace((folder / NET_FILE).with_suffix(suffix))


def _save(folder: Path) -> list[torch.Tensor]:
    """Convert the net, and return the tensors of its example."""
    openvino = import_openvino()
    from openvino.frontend import FrontEndManager
    from openvino.frontend.pytorch.fx_decoder import TorchFXPythonDecoder

    program, tensors = read_program(folder)
    # openvino.convert_model does the same, and reports its use to its makers unasked
    frontend = FrontEndManager().load_by_framework("pytorch")
    varies = bool(program.range_constraints)
    decoder = TorchFXPythonDecoder.from_exported_program(program, dynamic_shapes=varies)
    model = frontend.convert(frontend.load(decoder))
    inputs = list(program.graph_signature.user_inputs)
    for port in model.inputs:
        [number] = [inputs.index(name) for name in port.names if name in inputs]
        port.get_tensor().set_names({input_name(number)})
    openvino.save_model(model, folder / NET_FILE, compress_to_fp16=False)
    return tensors


def _positions(ports: Iterable[Any]) -> list[int]:
    """Return the positions of inputs; OpenVINO adds the names of ops that it drops."""
    return [position_of(name) for port in ports for name in port.names if is_own(name)]


def _open(path: Path, settings: Mapping[str, Any]) -> RunTensors:
    openvino = import_openvino()
    core = openvino.Core()
    options = {**settings, "INFERENCE_NUM_THREADS": torch.get_num_threads()}
    request = core.compile_model(core.read_model(path), "CPU", options).create_infer_request()
    positions = _positions(request.model_inputs)
    # outputs are copied out of OpenVINO's own memory, which the next call overwrites
    numbers = range(len(request.model_outputs))
    varies = any(port.partial_shape.is_dynamic for port in request.model_outputs)

    def output_views() -> list[torch.Tensor]:
        return [torch.from_numpy(request.get_output_tensor(number).data) for number in numbers]

    views = [] if varies else output_views()

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        arrays = [array_of(tensors[n]) for n in positions]  # OpenVINO does not keep them alive
        for number, array in enumerate(arrays):
            request.set_input_tensor(number, openvino.Tensor(array, shared_memory=True))
        request.infer(share_outputs=True)
        return [view.clone() for view in (output_views() if varies else views)]

    return run


def load(
    call: NetCall, folder: Path, name: str, settings: Mapping[str, Any] = SETTINGS
) -> BuiltBackend:
    """Load the net by OpenVINO from its folder."""
    run = _open(saved_file(call, folder / NET_FILE, name), settings)
    return call.built(name, with_repeated(call, run), is_frozen=True)


def _openvino(
    says: str, precision: Precision | None = None, rounds: Rounding | None = None
) -> Backend:
    open_net = load if precision is None else partial(load, settings=LOWER[precision])
    return Backend(
        says,
        open_net,
        open_net,
        is_frozen=True,
        is_unchecked=True,
        make=partial(make, precision=precision, rounds=rounds),
        precision=precision,
        packages=("openvino", *(("nncf",) if rounds else ())),
        install="passnet[int8]" if rounds else "passnet[runtimes]",
    )


BACKENDS: Mapping[str, Backend] = {
    "openvino_frozen": _openvino("OpenVINO"),
    "openvino_bf16": _openvino("OpenVINO in bfloat16", "bf16"),
    "openvino_fp16": _openvino("OpenVINO in float16", "fp16"),
    "openvino_int8": _openvino("OpenVINO, products in int8", "int8", _round_all),
    "openvino_int8_weights": _openvino("OpenVINO, weights in int8", "int8", _round_weights),
}
