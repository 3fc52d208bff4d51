"""The capture of a reference's file, in a process of its own: the only file that runs its code."""

import ast
import math
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from passnet.core.jobs.process import RECORD_FILE
from passnet.core.records.serialise import decode, write_json
from passnet.data.capture.capture import CapturedGraph, module_graph
from passnet.data.capture.constraints import static_constraints
from passnet.data.capture.trace import Segment, Trace
from passnet.errors import CaptureError, InputError, PassnetError, boundary
from passnet.graph.fx.build import build
from passnet.graph.fx.from_fx import spec_from_tensor
from passnet.graph.spec import Graph, Param, Program, Ref, TensorSpec
from passnet.graph.text.render import render_program
from passnet.graph.values.cost import torch_arguments
from passnet.graph.values.fake import fake_mode
from passnet.inductor.compiler import dynamo_settings
from passnet_exchange.pairs.binding import BoundWeight, ModuleBinding
from passnet_exchange.pairs.constants import Constant, find_constants, reduced, replaced
from passnet_exchange.pairs.module import digest, flat_outputs, named_tensors
from passnet_exchange.pairs.problem import Problem, ProblemOrder, ReducedConstant

SEED = 42
MAX_NAN_SHARE = 0.01
"""Share of outputs without a number from which arguments are drawn as the file draws them."""
MODULE = "passnet_reference"


@dataclass(frozen=True, slots=True)
class FileReference:
    """A reference as its file makes it; `init` is None for a function, `draw` makes new inputs."""

    call: Callable[..., Any]
    draw: Callable[[], Sequence[Any]]
    inputs: tuple[Any, ...]
    init: tuple[Any, ...] | None


def ready(_: str) -> None:
    """Trace one net, so that a fork of this process starts fast."""
    from passnet.data.capture.entry_capture import preload_library

    torch.set_num_threads(1)
    preload_library(f"{__file__}:none")


def capture_to(payload: str, folder: Path) -> None:
    """Capture a file in this process, and write the `Problem` to a folder."""
    order = decode(payload, ProblemOrder)
    try:
        with boundary(CaptureError, f"running {Path(order.path).name}"):
            problem = _captured(order)
    except MemoryError:
        raise
    except PassnetError as cause:
        problem = Problem(error=str(cause)[:600])
    write_json(folder / RECORD_FILE, problem)


def read_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file, or raise InputError."""
    try:
        return ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as cause:
        raise InputError(f"{path.name} is not Python: {cause}") from cause


def _captured(order: ProblemOrder) -> Problem:
    path = Path(order.path)
    tree = read_tree(path)
    values: dict[Constant, int] = {}
    whole_bytes = 0
    if order.max_bytes is not None:
        sizes: dict[tuple[int, ...], int | None] = {}
        constants = find_constants(tree)

        def size_of(tried: Mapping[Constant, int]) -> int | None:
            key = tuple(tried.get(constant, constant.value) for constant in constants)
            if key not in sizes:
                sizes[key] = _size(replaced(tree, tried), order)
            return sizes[key]

        whole = size_of({})
        if whole is None:  # says what is wrong with it
            make_reference(tree, order)
            with boundary(CaptureError, "its sizes cannot be known from shapes alone"):
                whole = _num_bytes(tree, order)
        whole_bytes = whole
        fitting = reduced(constants, size_of, order.max_bytes)
        if fitting is None:
            raise InputError(
                f"takes {whole} bytes; no smaller integers of its own make that {order.max_bytes}"
            )
        values = fitting
    problem = _problem(replaced(tree, values), order)
    changes = tuple(ReducedConstant(c.name, c.value, value) for c, value in values.items())
    return replace(problem, reduced=changes, whole_bytes=whole_bytes or problem.num_bytes)


def _size(tree: ast.Module, order: ProblemOrder) -> int | None:
    """Return the bytes of arguments and outputs, from shapes alone; None where a run fails."""
    try:
        return _num_bytes(tree, order)
    except Exception:  # noqa: BLE001 (boundary: the user's code, or torch, raises anything)
        return None


def _num_bytes(tree: ast.Module, order: ProblemOrder) -> int:
    """Return the bytes of arguments and outputs, from shapes alone."""
    with fake_mode(), torch.no_grad():
        reference = make_reference(tree, order)
        outputs = flat_outputs(reference.call(*reference.inputs))
        weights = [] if reference.init is None else named_tensors(reference.call).values()
    tensors = {id(each): each for each in (*reference.inputs, *weights, *outputs)}
    return sum(
        math.prod(each.shape) * each.element_size()
        for each in tensors.values()
        if isinstance(each, torch.Tensor)
    )


def make_reference(tree: ast.Module, order: ProblemOrder) -> FileReference:
    """Run a file, and build its reference with inputs for it, each under the seed."""
    module = sys.modules[MODULE] = types.ModuleType(MODULE)
    module.__file__ = order.path
    exec(compile(tree, order.path, "exec"), vars(module))
    has = {name: callable(getattr(module, name, None)) for name in _NAMES}
    if has["Model"] and has["get_inputs"]:
        torch.manual_seed(SEED)
        init = tuple(module.get_init_inputs()) if has["get_init_inputs"] else ()
        torch.manual_seed(SEED)
        call = module.Model(*init)
        call = call.eval() if order.is_evaluated else call
        torch.manual_seed(SEED)
        return FileReference(call, module.get_inputs, tuple(module.get_inputs()), init)
    if has["reference"] and has["inputs"]:
        torch.manual_seed(SEED)
        return FileReference(module.reference, module.inputs, tuple(module.inputs()), None)
    raise InputError(
        f"{Path(order.path).name} defines neither Model and get_inputs, nor reference and inputs"
    )


_NAMES = ("Model", "get_inputs", "get_init_inputs", "reference", "inputs")


def _problem(tree: ast.Module, order: ProblemOrder) -> Problem:
    reference = make_reference(tree, order)
    weights = named_tensors(reference.call)
    before = {name: digest(tensor) for name, tensor in weights.items()}
    captured = _traced(reference)
    graph = captured.graph
    if _is_random(captured):
        if reference.init is not None and order.may_evaluate and not order.is_evaluated:
            return _problem(tree, replace(order, is_evaluated=True))
        raise CaptureError(
            "it draws random numbers, so that no two calls agree; if dropout does, give --eval-mode"
        )
    if error := static_constraints(graph).error:
        raise CaptureError(error)
    numbers = {id(value): number for number, value in enumerate(captured.values)}
    inputs = [
        numbers[id(each)] if isinstance(each, torch.Tensor) else _literal(each, "an input")
        for each in reference.inputs
    ]
    names = {id(tensor): name for name, tensor in weights.items()}
    bound = []
    for value, spec in zip(captured.values, graph.tensors, strict=True):
        if id(value) in names:
            name = names[id(value)]
            bound.append(BoundWeight(name, numbers[id(value)], before[name]))
        elif numbers[id(value)] not in inputs:
            raise CaptureError(
                f"it computes with {spec.name}, which is no input, parameter, buffer or attribute "
                "of the module; make it one of these"
            )
    init = None
    if reference.init is not None:
        init = _literal(list(reference.init), "what get_init_inputs returns")
    binding = ModuleBinding(
        "candidate" if init is None else "ModelNew",
        tuple(inputs),
        tuple(bound),
        init,
        SEED,
        order.is_evaluated,
    )
    tensors = _with_domains(graph, reference.inputs, captured.values)
    num_bytes = sum(value.nbytes for value in captured.values if isinstance(value, torch.Tensor))
    outputs = build(graph.program).forward(*captured.values)
    num_bytes += sum(each.nbytes for each in outputs if isinstance(each, torch.Tensor))
    positive = tuple(spec.name for spec in tensors if spec.domain == "positive")
    text = render_program(graph.program)
    return Problem(text, tensors, binding, num_bytes, positive=positive)


def _literal(value: Any, what: str) -> str:
    """Return a value as the text of a Python literal, or raise CaptureError."""
    try:
        text = repr(value)
        if ast.literal_eval(text) == value:
            return text
    except (ValueError, SyntaxError, RuntimeError):
        pass
    raise CaptureError(
        f"{what} is no tensor, and no number, text, None, tuple, list or dict of them: "
        f"a {type(value).__name__}"
    )


def _traced(reference: FileReference) -> CapturedGraph:
    """Return the one graph of a reference, with its tensor inputs as arguments, and its outputs."""
    found: list[CapturedGraph] = []
    calls: list[tuple[Any, ...]] = []

    def keep(segment: Segment) -> None:
        found.append(module_graph(segment.module, segment.arguments))

        def run(*arguments: Any) -> Any:
            calls.append(tuple(segment.module.forward(*arguments)))
            return calls[-1]

        segment.replay = run

    trace = Trace(reference.call, keep)
    with dynamo_settings(reorderable_logging_functions={warnings.warn}):  # no end of a graph
        outputs = flat_outputs(trace.run(reference.inputs, {}))
    if len(found) != 1 or len(calls) != 1:
        reason = f": {trace.breaks[0]}" if trace.breaks else ""
        raise CaptureError(f"it is {len(found)} graphs and not one{reason}")
    captured, results = found[0], calls[0]
    values, params = list(captured.values), list(captured.graph.program.params)
    specs = list(captured.graph.tensors)
    for number, each in enumerate(reference.inputs):
        if isinstance(each, torch.Tensor) and not any(each is value for value in values):
            values.append(each)
            params.append(Param(f"unused_{number}", "torch.Tensor"))
            specs.append(spec_from_tensor(f"unused_{number}", each))
    program, returned = captured.graph.program, []
    for each in outputs:
        places = [place for place, result in enumerate(results) if result is each]
        names = [p.name for p, value in zip(params, values, strict=True) if value is each]
        if not isinstance(each, torch.Tensor):
            if not isinstance(each, (bool, int, float)):
                raise CaptureError(f"it returns a {type(each).__name__}: no tensor or number")
            returned.append(each)
        elif places or names:
            returned.append(program.outputs[places[0]] if places else Ref(names[0]))
        else:
            raise CaptureError("it returns a tensor that is made outside its graph")
    whole = Program(tuple(params), program.body, tuple(returned))
    return CapturedGraph(Graph(whole, tuple(specs)), tuple(values))


def _is_random(captured: CapturedGraph) -> bool:
    """Return whether outputs differ between two seeds; arguments end as they were."""
    module, results = build(captured.graph.program), []
    for seed in (0, 1):
        copies = [
            each.clone() if isinstance(each, torch.Tensor) else each for each in captured.values
        ]
        torch.manual_seed(seed)
        with torch.no_grad():
            results.append(module.forward(*copies))
    pairs = zip(*results, strict=True)
    return any(
        isinstance(one, torch.Tensor) and not torch.equal(one.nan_to_num(), other.nan_to_num())
        for one, other in pairs
    )


def _with_domains(
    graph: Graph, inputs: Sequence[Any], values: Sequence[Any]
) -> tuple[TensorSpec, ...]:
    """Return the specs; inputs that the file draws from 0 are positive if outputs need that."""
    with torch.no_grad():
        outputs = build(graph.program).forward(*torch_arguments(graph, "fresh", 0))
    floats = [
        each
        for each in outputs
        if isinstance(each, torch.Tensor) and each.is_floating_point() and each.numel()
    ]
    if all(float(each.isnan().float().mean()) <= MAX_NAN_SHARE for each in floats):
        return graph.tensors
    drawn = {id(each) for each in inputs if isinstance(each, torch.Tensor)}
    return tuple(
        replace(spec, domain="positive")
        if id(value) in drawn and value.is_floating_point() and bool((value >= 0).all())
        else spec
        for spec, value in zip(graph.tensors, values, strict=True)
    )
