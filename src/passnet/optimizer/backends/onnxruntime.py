"""ONNX Runtime, on the processor: in float32, and with products or convolutions in int8."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    Rounding,
    array_of,
    check_call,
    input_name,
    position_of,
    read_samples,
    save_samples,
    saved_file,
)
from passnet.optimizer.call.net_call import BuiltBackend, NetCall

PACKAGES = ("onnxruntime", "onnx", "onnxscript")

NET_FILE = "net.onnx"

DYNAMIC_OPS = ("MatMul", "Gemm", "LSTM")
"""Ops whose weights are rounded to int8 once, and inputs at each call."""

STATIC_OPS = ("Conv", "MatMul", "Gemm")
"""Ops whose inputs are rounded by scales that samples of arguments gave."""

COPIED_BYTES = 2**16
"""Outputs up to this size are copied, which takes less time than to bind new memory."""


def make(call: NetCall, folder: Path, name: str, rounds: Rounding | None = None) -> MakeFile:
    """Export a net, and return the work of a child that makes a file for ONNX Runtime of it."""
    check_call(call, name)
    save_program(call, folder)
    if rounds is _round_statically:
        save_samples(call, folder)
    return partial(_convert, folder, rounds)


def _convert(folder: Path, rounds: Rounding | None) -> None:
    arrays = in_fork(_save, folder)  # the exporter never frees weights
    if rounds is not None:
        in_fork(rounds, folder)
    _open(folder / NET_FILE)([torch.from_numpy(array) for array in arrays])


def _round_dynamically(folder: Path) -> None:
    """Round weights of products to int8, by output channels."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _rounded(folder) as (path, rounded):
        _transpose_weights(path)
        quantize_dynamic(
            path,
            rounded,
            op_types_to_quantize=[*DYNAMIC_OPS],
            per_channel=True,
            weight_type=QuantType.QInt8,
        )


def _round_statically(folder: Path) -> None:
    """Round weights and inputs of convolutions and products to int8."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

    class Samples(CalibrationDataReader):
        """The samples of arguments, by the names that inputs have in the file."""

        def __init__(self, path: Path) -> None:
            import onnx

            names = [port.name for port in onnx.load(path, load_external_data=False).graph.input]
            self._left = iter(
                {name: array_of(sample[position_of(name)]) for name in names}
                for sample in read_samples(folder)
            )

        def get_next(self) -> Any:
            """Return the next sample; None after the last one."""
            return next(self._left, None)

    with _rounded(folder) as (path, rounded):
        quantize_static(
            path,
            rounded,
            Samples(path),
            op_types_to_quantize=[*STATIC_OPS],
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )


def _transpose_weights(path: Path) -> None:
    """Transpose weights of products in a file, as of outputs tied to an embedding: others are not
    rounded.
    """
    import onnx
    from onnx import numpy_helper

    net = onnx.load(path)
    weights = {weight.name: weight for weight in net.graph.initializer}
    uses: dict[str, set[str]] = {}
    for node in net.graph.node:
        for name in node.input:
            uses.setdefault(name, set()).add(node.op_type)
    for node in [*net.graph.node]:
        is_of_weight = node.op_type == "Transpose" and node.input[0] in weights
        if is_of_weight and uses.get(node.output[0]) == {"MatMul"}:
            values = numpy_helper.to_array(weights[node.input[0]])
            order = [*node.attribute[0].ints] if node.attribute else None
            own = numpy_helper.from_array(values.transpose(order).copy(), node.output[0])
            net.graph.initializer.append(own)
            net.graph.node.remove(node)
    for old in path.parent.glob(f"{path.name}*"):
        old.unlink()
    onnx.save(net, path, save_as_external_data=True, location=f"{path.name}.data")


@contextmanager
def _rounded(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the net's file and a new one, which takes its place."""
    path, rounded = folder / NET_FILE, folder / f"rounded-{NET_FILE}"
    yield path, rounded
    for old in folder.glob(f"{NET_FILE}*"):
        old.unlink()
    rounded.rename(path)


def _int8(says: str, rounds: Rounding) -> Backend:
    return Backend(
        says,
        load,
        load,
        is_frozen=True,
        make=partial(make, rounds=rounds),
        precision="int8",
        packages=PACKAGES,
    )


def _save(folder: Path) -> list[Any]:
    """Convert the net, and return the tensors of its example as arrays."""
    program, tensors = read_program(folder)
    names = [input_name(number) for number in range(len(tensors))]
    path = folder / NET_FILE
    torch.onnx.export(program, (), path, input_names=names, dynamo=True, verbose=False)
    return list(map(array_of, tensors))


def _open(path: Path, call: NetCall | None = None) -> RunTensors:
    """Open a net's file; calls of one size are thin."""
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
    if call is not None and not call.ranges and (thin := _thin_run(session, inputs, call)):
        return thin

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        arrays = {name: array_of(tensors[position]) for name, position in inputs}
        # copies, as callers cannot resize what is numpy's
        return [torch.from_numpy(array).clone() for array in session.run(None, arrays)]

    return run


def _thin_run(session: Any, inputs: Sequence[tuple[str, int]], call: NetCall) -> RunTensors | None:
    """Return a function that lets ONNX Runtime read and write torch's memory; None if it cannot.

    It calls what the classes of `onnxruntime` wrap, which takes a third less time.
    """
    outputs = [call.outputs[number] for number in call.distinct_outputs.values()]
    if not all(tensor.numel() for tensor in (*call.tensors(), *outputs)):
        return None
    try:
        from onnxruntime.capi.onnxruntime_pybind11_state import OrtDevice

        device = OrtDevice(OrtDevice.cpu(), OrtDevice.default_memory(), 0)
        binding, run_bound = session.io_binding()._iobinding, session._sess.run_with_iobinding
        bind_input, bind_output = binding.bind_input, binding.bind_output
    except (ImportError, AttributeError):  # of another version
        return None
    tensors = call.tensors()
    given = [(n, name, array_of(tensors[n]).dtype.type, [*tensors[n].shape]) for name, n in inputs]
    names = [port.name for port in session.get_outputs()]
    with torch.inference_mode(False):
        results = [torch.empty(output.shape, dtype=output.dtype) for output in outputs]
    large = []
    for number, (name, result) in enumerate(zip(names, results, strict=True)):
        form = name, device, array_of(result).dtype.type, [*result.shape]
        bind_output(*form, result.data_ptr())
        if result.nbytes > COPIED_BYTES:
            large.append((number, form))

    def run(tensors: list[torch.Tensor]) -> Sequence[Any]:
        held = [tensors[position].contiguous() for position, *_ in given]
        for (_, name, dtype, shape), tensor in zip(given, held, strict=True):
            bind_input(name, device, dtype, shape, tensor.data_ptr())
        for number, form in large:
            results[number] = torch.empty_like(results[number])
            bind_output(*form, results[number].data_ptr())
        run_bound(binding, None)
        return [x if x.nbytes > COPIED_BYTES else x.clone() for x in results]

    return run


def load(call: NetCall, folder: Path, name: str) -> BuiltBackend:
    """Load the net by ONNX Runtime from its folder."""
    run = _open(saved_file(call, folder / NET_FILE, name), call)
    return call.built(name, with_repeated(call, run), is_frozen=True)


BACKENDS: Mapping[str, Backend] = {
    "onnxruntime_frozen": Backend(
        "ONNX Runtime",
        load,
        load,
        is_frozen=True,
        make=make,
        packages=PACKAGES,
    ),
    "onnxruntime_int8": _int8("ONNX Runtime, products in int8", _round_dynamically),
    "onnxruntime_static_int8": _int8(
        "ONNX Runtime, convolutions and products in int8", _round_statically
    ),
}
