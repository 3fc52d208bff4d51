"""The backends of passnet and of other packages by name."""

from collections.abc import Mapping
from importlib.metadata import entry_points

from passnet.errors import InputError, boundary
from passnet.optimizer.backends import aot, dynamo, graphs, low_bits, onnxruntime, openvino
from passnet.optimizer.backends.backend import Backend

GROUP = "passnet.backends"
"""The entry points of other packages: each names a mapping of names to backends."""

_OWN = {
    name: backend
    for module in (graphs, onnxruntime, openvino, aot, low_bits, dynamo)
    for name, backend in module.BACKENDS.items()
}

_ORDER = (
    *("eager", "graph", "onnxruntime_frozen", "openvino_frozen", "onnxruntime_int8"),
    *("aot_int8", "aot_int8_frozen", "aot_int4", "aot_int4_frozen"),
    *("openvino_int8", "openvino_int8_weights", "onnxruntime_static_int8"),
    *("openvino_bf16", "openvino_fp16", "aot_packed", "aot_packed_frozen", "aot"),
    *("aot_frozen", "aot_bf16", "compile", "torchao_int8"),
    *("compile_frozen", "zentorch_frozen", "aot_autotune_frozen", "script_frozen"),
    *("passes", "passes_compiled", "aot_passes", "aot_passes_frozen", "compile_autotune"),
    "compile_packed",
)

BACKENDS: Mapping[str, Backend] = {name: _OWN[name] for name in (*_ORDER, *_OWN)}
"""Our backends by name, in the order of trial: the cheap and strong ones first. `compile`, which
cannot be stopped, comes after AOTInductor, whose time tells how long it may take.
"""


def all_backends() -> dict[str, Backend]:
    """Return the backends of passnet, then of other packages.

    Raises:
        InputError: a package's backends cannot be loaded, or have names that are taken.
    """
    found = dict(BACKENDS)
    for point in entry_points(group=GROUP):
        with boundary(InputError, f"the backends of {point.value}"):
            own = dict(point.load())
        for name, backend in own.items():
            if name in found or not isinstance(backend, Backend):
                raise InputError(f"{point.value}: {name!r} is taken, or is no Backend")
            found[name] = backend
    return found
