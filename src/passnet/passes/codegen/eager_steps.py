"""A graph in the rounding steps of eager torch, where Inductor would take others.

With `emulate_precision_casts` Inductor rounds after every op, as eager torch does, except for

- `pow(x, 3)` in a low dtype: two products, each rounded (on a CPU in float16 once, at the end);
- a batch norm outside of training: on a CPU one multiplication and one addition in float32, with
  the channel's factor and summand computed before;
- an instance norm in a low dtype: on a CPU the same, with the mean and the inverse deviation
  rounded, in bfloat16 the variance too;
- the layout of an interpolated image: torch's Python skips the stride of an axis of size 1.
"""

import math
from collections.abc import Callable, Iterator, Mapping

import torch

from passnet.graph.spec import Arg, Graph, Op, Program, Ref, Sequence, TensorSpec, TorchName
from passnet.inductor.schedule import TargetDevice

LOW_FLOATS = ("bfloat16", "float16")
POWERS = ("torch.pow", "Tensor.pow", "operator.pow")
INTERPOLATION = "torch.nn.functional.interpolate"
INSTANCE_NORMS = ("torch.nn.functional.instance_norm", "torch.instance_norm")
BATCH_NORMS = ("torch.nn.functional.batch_norm", "torch.batch_norm")
_BATCH_NORM_ARGS = ("input", "running_mean", "running_var", "weight", "bias", "training")
_BATCH_NORM_ARGS += ("momentum", "eps")
_INSTANCE_NORM_ARGS = (*_BATCH_NORM_ARGS[:5], "use_input_stats", *_BATCH_NORM_ARGS[6:])
_DEFAULTS: dict[str, Arg] = {"weight": None, "bias": None, "training": False, "eps": 1e-5}


def in_eager_steps(
    graph: Graph,
    specs: Mapping[str, TensorSpec],
    device: TargetDevice = "cpu",
    strides: Mapping[str, tuple[int, ...]] = {},
) -> Graph:
    """Return a graph that computes the same values in eager torch's steps on a device.

    `graph` is in single-assignment form, with values of `specs`; `strides` are those known.
    """
    body: list[Op] = []
    for op in graph.program.ops:
        steps = _cube(op, specs, device)
        if device == "cpu":
            steps = steps or list(_batch_norm(op, specs)) or list(_instance_norm(op, specs))
            steps = steps or list(_interpolation(op, specs, strides))
        body += steps or [op]
    return Graph(Program(graph.program.params, tuple(body), graph.program.outputs), graph.tensors)


def _cube(op: Op, specs: Mapping[str, TensorSpec], device: TargetDevice) -> list[Op]:
    """Return a low-dtype cube's products, rounded as by torch 2.13; none for other ops."""
    is_cube = op.target in POWERS and len(op.args) == 2 and not op.kwargs and op.args[1] == 3
    base = op.args[0] if is_cube else None
    if not isinstance(base, Ref) or base.name not in specs or op.output is None:
        return []
    if specs[base.name].dtype not in LOW_FLOATS:
        return []
    square, wide = f"{op.output}_square", f"{op.output}_wide"
    if device == "cpu" and specs[base.name].dtype == "float16":
        return [
            Op(wide, "Tensor.to", (base, TorchName("float32"))),
            Op(square, "operator.mul", (Ref(wide), Ref(wide))),
            Op(f"{op.output}_cube", "operator.mul", (Ref(square), Ref(wide))),
            Op(op.output, "Tensor.to", (Ref(f"{op.output}_cube"), TorchName("float16"))),
        ]
    return [
        Op(square, "operator.mul", (base, base)),
        Op(op.output, "operator.mul", (Ref(square), base)),
    ]


def _makers(op: Op) -> tuple[Callable[..., Op], Callable[[str], Ref]]:
    """Return makers of the steps of an op, and of references to their results."""
    return (
        lambda name, target, *args: Op(f"{op.output}_{name}", target, args),
        lambda name: Ref(f"{op.output}_{name}"),
    )


def _batch_norm(op: Op, specs: Mapping[str, TensorSpec]) -> Iterator[Op]:
    """Yield the steps of a batch norm outside of training; none for other ops.

    Source: batch_norm_cpu_collect_linear_and_constant_terms of torch 2.13, equal bit by bit.
    """
    args = {**_DEFAULTS, **dict(zip(_BATCH_NORM_ARGS, op.args, strict=False)), **dict(op.kwargs)}
    tensors = [args.get(name) for name in ("input", "running_mean", "running_var")]
    values = [arg for arg in tensors if isinstance(arg, Ref) and arg.name in specs]
    if op.target not in BATCH_NORMS or args["training"] is not False or len(values) < 3:
        return
    assert op.output is not None, "a batch norm makes a value"
    spec = specs[values[0].name]
    per_channel = Sequence("tuple", (1, -1, *(1 for _ in spec.shape[2:])))
    float32 = TorchName("float32")

    step, value = _makers(op)
    for name, tensor in zip(("x", "mean", "var"), values, strict=True):
        yield step(name, "Tensor.to", tensor, float32)
    yield step("shifted", "operator.add", value("var"), args["eps"])
    yield step("root", "torch.rsqrt", value("shifted"))
    factor = value("root")
    if args["weight"] is not None:
        yield step("weight", "Tensor.to", args["weight"], float32)
        yield step("factor", "operator.mul", factor, value("weight"))
        factor = value("factor")
    yield step("moved", "operator.mul", value("mean"), factor)
    if args["bias"] is not None:
        yield step("bias", "Tensor.to", args["bias"], float32)
        yield step("summand", "operator.sub", value("bias"), value("moved"))
    else:
        yield step("summand", "operator.neg", value("moved"))
    yield step("factors", "Tensor.view", factor, per_channel)
    yield step("summands", "Tensor.view", value("summand"), per_channel)
    yield step("scaled", "operator.mul", value("x"), value("factors"))
    yield step("sum", "operator.add", value("scaled"), value("summands"))
    if len(spec.shape) <= 3:  # eager torch's result is contiguous, whatever the argument is
        yield step("rounded", "Tensor.to", value("sum"), TorchName(spec.dtype))
        yield Op(op.output, "Tensor.contiguous", (value("rounded"),))
    else:
        yield Op(op.output, "Tensor.to", (value("sum"), TorchName(spec.dtype)))


def _instance_norm(op: Op, specs: Mapping[str, TensorSpec]) -> Iterator[Op]:
    """Yield the steps of an instance norm in a low dtype; none for other ops.

    Source: batch_norm_cpu_update_stats_template of torch 2.13, equal bit by bit.
    """
    args = {**_DEFAULTS, "use_input_stats": True}
    args |= {**dict(zip(_INSTANCE_NORM_ARGS, op.args, strict=False)), **dict(op.kwargs)}
    value = args.get("input")
    spec = specs.get(value.name) if isinstance(value, Ref) else None
    if op.target not in INSTANCE_NORMS or spec is None or spec.dtype not in LOW_FLOATS:
        return
    states = (args.get("running_mean"), args.get("running_var"))
    if states != (None, None) or args["use_input_stats"] is not True:
        return
    weights = [arg for arg in (args["weight"], args["bias"]) if isinstance(arg, Ref)]
    if any(arg.name not in specs or specs[arg.name].dtype != spec.dtype for arg in weights):
        return  # of mixed dtypes nothing is rounded before the end
    assert op.output is not None, "an instance norm makes a value"
    low, float32 = TorchName(spec.dtype), TorchName("float32")
    axes = Sequence("tuple", tuple(range(2, len(spec.shape))))
    count = math.prod(spec.shape[2:])

    step, named = _makers(op)
    yield step("x", "Tensor.to", value, float32)
    yield step("mean", "Tensor.mean", named("x"), axes, True)
    yield step("apart", "operator.sub", named("x"), named("mean"))
    yield step("squares", "operator.mul", named("apart"), named("apart"))
    yield step("total", "Tensor.sum", named("squares"), axes, True)
    total = named("total")
    if spec.dtype == "bfloat16":
        yield step("total_low", "Tensor.to", total, low)
        count_low = torch.tensor(float(count)).bfloat16().item()
        yield step("var_low", "operator.truediv", named("total_low"), count_low)
        yield step("var", "Tensor.to", named("var_low"), float32)
    else:
        yield step("var", "operator.truediv", total, float(count))
    yield step("shifted", "operator.add", named("var"), args["eps"])
    yield step("root", "torch.sqrt", named("shifted"))
    yield step("inverse", "operator.truediv", 1.0, named("root"))
    for name in ("mean", "inverse"):
        yield step(f"{name}_low", "Tensor.to", named(name), low)
        yield step(f"{name}_rounded", "Tensor.to", named(f"{name}_low"), float32)
    per_channel = Sequence("tuple", (1, -1, *(1 for _ in spec.shape[2:])))
    factor = named("inverse_rounded")
    if args["weight"] is not None:
        yield step("weight", "Tensor.to", args["weight"], float32)
        yield step("weights", "Tensor.view", named("weight"), per_channel)
        yield step("factor", "operator.mul", factor, named("weights"))
        factor = named("factor")
    yield step("moved", "operator.mul", named("mean_rounded"), factor)
    if args["bias"] is not None:
        yield step("bias", "Tensor.to", args["bias"], float32)
        yield step("biases", "Tensor.view", named("bias"), per_channel)
        yield step("summand", "operator.sub", named("biases"), named("moved"))
    else:
        yield step("summand", "operator.neg", named("moved"))
    yield step("scaled", "operator.mul", named("x"), factor)
    yield step("sum", "operator.add", named("scaled"), named("summand"))
    yield Op(op.output, "Tensor.to", (named("sum"), low))


def _interpolation(
    op: Op, specs: Mapping[str, TensorSpec], strides: Mapping[str, tuple[int, ...]]
) -> Iterator[Op]:
    """Yield an interpolation whose result is contiguous; none if it is not, or that is unknown."""
    value = op.args[0] if op.target == INTERPOLATION and op.args else None
    if not isinstance(value, Ref) or value.name not in strides or op.output is None:
        return
    shape = specs[value.name].shape
    if len(shape) in (4, 5) and not _lies_channels_last(shape, strides[value.name]):
        yield Op(f"{op.output}_laid", op.target, op.args, op.kwargs)
        yield Op(op.output, "Tensor.contiguous", (Ref(f"{op.output}_laid"),))


def _lies_channels_last(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether eager torch takes images with these strides for channels last.

    Source: is_channels_last_strides_2d_s4 and is_channels_last_strides_3d_s5 of torch 2.13.
    """
    least = 0
    if strides[1] == 0:
        return False
    for axis in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[axis] == 0 or strides[axis] < least:
            return False
        if axis == 0 and least == strides[1]:
            return False
        least = strides[axis] * max(shape[axis], 1)
    return True
