"""The parts of a compiled call, measured beside eager torch."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any, Literal

import torch

from passnet.bench.profiling.move_kernels import MovingKernels, moving_kernels
from passnet.bench.profiling.record import RESIDUE_SHARE, CallParts
from passnet.errors import MeasureError, boundary
from passnet.inductor.clocks import (
    OWN,
    OWN_FROM_MS,
    WALL,
    Clock,
    ClockCost,
    layer_with_clock,
    least_kernel_clock,
    least_layer_clock,
)
from passnet.inductor.compiled_call import CompiledLayers, as_dynamo_calls, compiling, record_calls
from passnet.inductor.timed_program import COUNT, KINDS, TimedProgram, timed_program
from passnet.judge.timing.estimate import Speedup
from passnet.judge.timing.rounds import RoundLimits, RoundTimes, TimedCall, all_calls, run_rounds

WARM_CALLS, MAX_WARM_CALLS = 3, 12
"""Fewest and most calls before a measurement, until no more is compiled."""

MAX_CALL_S = 5.0
"""Longer calls are left out: convolutions in float16 can take half a minute on a CPU."""

GRAPHS_NS, PROGRAMS_NS, NUM_GRAPHS, NUM_PROGRAMS = range(COUNT + 1, COUNT + 5)
NUM_SLOTS = COUNT + 5
"""Slots of `spent`: nanoseconds by kind of kernel, the number of their clocks, nanoseconds within
graphs that Dynamo calls and within generated programs, and the numbers of these calls."""

CALIBRATION_S = 2.0
"""Time for the rounds that the cost of clocks is measured in."""

ROUNDS = RoundLimits(12, 80, ((20.0, 4), (500.0, 2)), max, num_tries=5)
PRECISE = 0.02
"""Rounds end early once the interval of the speedup is within this share of its value."""

STEADY = 0.1
"""Largest distance of eager torch from itself, and of a speedup's bounds from their middle."""


@dataclass(frozen=True, slots=True)
class MeasuredCall:
    """The measurement of a call; `unstable` is the reason why it is unreliable, or empty."""

    eager_ms: float
    compiled_ms: float
    direct_ms: float | None
    speedup: Speedup
    parts: CallParts
    residue_ms: float
    self_ratio: float
    num_rounds: int
    unstable: str


@dataclass(slots=True)
class ProfiledCall:
    """A compiled call with its clocks, ready to be measured."""

    eager: Callable[[], object]
    compiled: Callable[[], object]
    layers: CompiledLayers
    compile_s: float
    clock: Clock = WALL
    spent: list[int] = field(default_factory=lambda: [0] * NUM_SLOTS)
    programs: list[TimedProgram] = field(default_factory=list)
    moving: MovingKernels | None = None

    @property
    def num_graphs(self) -> int:
        """The number of graphs that a call runs."""
        return sum(graph.num_calls for graph in self.layers.called())

    def num_calls_of(self, kind: str) -> int:
        """Return the number of calls of a kind in the generated programs."""
        return sum(program.kinds.count(kind) for program in self.programs)  # type: ignore[arg-type]


@contextmanager
def profiled_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Iterator[ProfiledCall]:
    """Compile a function with arguments for the length of the block.

    Raises:
        MeasureError: it fails, is not compiled, or takes too long.
    """
    with torch.no_grad(), ExitStack() as stack:
        start = perf_counter()
        with boundary(MeasureError, "eager torch"):
            function(*args, **kwargs)
            again = perf_counter()
            if again - start < MAX_CALL_S:
                function(*args, **kwargs)
                start = again
        if (call_s := perf_counter() - start) > MAX_CALL_S:
            raise MeasureError(f"too slow: a call of eager torch takes {call_s:.0f} s")
        start = perf_counter()
        layers = stack.enter_context(compiling(function))

        def compiled() -> object:
            return layers.function(*args, **kwargs)

        with boundary(MeasureError, "torch.compile"):
            _warm_up(layers, compiled)
        compile_s = perf_counter() - start
        if not layers.called():
            raise MeasureError("nothing to compile: Dynamo finds no op")
        record_calls(layers, compiled)
        is_long = torch.get_num_threads() == 1 and call_s * 1e3 > OWN_FROM_MS
        clock = OWN if is_long else WALL
        call = ProfiledCall(lambda: function(*args, **kwargs), compiled, layers, compile_s, clock)
        for graph in layers.called():
            for _, generated, module in graph.programs():
                call.programs.append(timed_program(generated, module, call.spent, clock))
        call.moving = moving_kernels(layers, compiled)
        yield call


def _warm_up(layers: CompiledLayers, compiled: Callable[[], object]) -> None:
    """Call a function until no more of it is compiled."""
    for number in range(MAX_WARM_CALLS):
        num_graphs = len(layers.graphs)
        compiled()
        if number + 1 >= WARM_CALLS and len(layers.graphs) == num_graphs:
            return
    raise MeasureError(f"compiled anew at each call: {len(layers.graphs)} graphs so far")


def measure(call: ProfiledCall, seconds: float, cost: ClockCost) -> MeasuredCall:
    """Time eager torch, the compiled call, its parts, and the compiled graph called directly.

    `cost` is that of the clocks.
    """
    timed = {
        "eager": TimedCall(call.eager),
        "compiled": TimedCall(call.compiled),
        "clocked": _clocked(call),
    }
    graphs = [graph for graph in call.layers.called() if graph.num_calls]
    if len(graphs) == 1 and graphs[0].num_calls == 1 and graphs[0].arguments is not None:
        timed["direct"] = TimedCall(partial(graphs[0].compiled, *graphs[0].arguments))
    if call.moving is not None:
        timed["moves"] = TimedCall(call.moving.run)
    if call.clock is OWN:  # its calls are long, so that a loop measures its cost well enough
        within, beside = least_layer_clock(OWN)
        cost = ClockCost(*least_kernel_clock(OWN), within, beside, beside, 0.0)

    def go_on(times: RoundTimes) -> Collection[str]:
        return () if _is_precise(times, cost) else all_calls(times)

    limits = replace(ROUNDS, num_tries=1) if call.clock is OWN else ROUNDS
    times = run_rounds(timed, seconds, limits, call.clock, go_on)
    parts = _parts(times, cost, "moves" in timed)
    compiled_ms, gain = times.ms("compiled"), times.speedup("compiled", "eager")
    measured = MeasuredCall(
        times.ms("eager"),
        compiled_ms,
        times.ms("direct") if "direct" in timed else None,
        gain,
        parts,
        compiled_ms - parts.total,
        times.self_ratio("eager"),
        times.num_rounds,
        "",
    )
    return replace(measured, unstable=_instability(measured))


def _is_precise(times: RoundTimes, cost: ClockCost) -> bool:
    """Return True if the speedup is precise and the parts add up."""
    gain = times.speedup("compiled", "eager")
    residue = 1 - _parts(times, cost, "moves" in times.turns).total / times.ms("compiled")
    is_close = gain.high - gain.low <= 2 * PRECISE * gain.value
    return is_close and abs(residue) <= RESIDUE_SHARE / 2


def calibrate() -> ClockCost:
    """Measure the cost of clocks around a compiled addition, colder than in a loop."""
    kernel = least_kernel_clock(WALL)
    within, _ = least_layer_clock(WALL)
    with profiled_call(torch.add, (torch.ones(16), torch.ones(16)), {}) as call:
        timed = {
            "none": TimedCall(call.compiled),
            "graph": _clocked(call, "graph"),
            "program": _clocked(call, "program"),
            "all": _clocked(call),
        }
        times = run_rounds(timed, CALIBRATION_S, ROUNDS)
        clocks = len(call.programs[0].kinds)
    none, graph, program, all_ = (1e6 * times.ms(name) for name in timed)
    return ClockCost(
        *kernel,
        within,
        max(0.0, graph - none - within),
        max(0.0, program - graph - within),
        max(0.0, all_ - program - clocks * sum(kernel)),
    )


def _clocked(
    call: ProfiledCall, until: Literal["graph", "program", "kernels"] = "kernels"
) -> TimedCall:
    """Return the compiled call with a clock at every layer down to one."""
    graphs, spent = call.layers.called(), call.spent
    programs = iter(call.programs)
    swaps: list[tuple[Any, str, Any]] = []
    for graph in graphs:
        layer = layer_with_clock(graph.compiled, spent, GRAPHS_NS, NUM_GRAPHS, call.clock)
        swaps.append((graph.scope, graph.name, as_dynamo_calls(layer)))
        for code, plain, _ in graph.programs() if until != "graph" else ():
            timed = next(programs).call if until == "kernels" else plain
            inner = layer_with_clock(timed, spent, PROGRAMS_NS, NUM_PROGRAMS, call.clock)
            swaps.append((code, "current_callable", inner))

    @contextmanager
    def clocked() -> Iterator[None]:
        before = [_swap(*swap) for swap in swaps]
        try:
            yield
        finally:
            for (holder, name, _), value in zip(swaps, before, strict=True):
                _swap(holder, name, value)

    return TimedCall(call.compiled, clocked, lambda: tuple(spent))


def _swap(holder: Any, name: str, value: Any) -> Any:
    if isinstance(holder, dict):
        before, holder[name] = holder[name], value
    else:
        before = getattr(holder, name)
        setattr(holder, name, value)
    return before


def _parts(times: RoundTimes, cost: ClockCost, has_moves: bool) -> CallParts:
    """Return the parts of a call from the readings of clocks, without the cost of the clocks."""
    total_ms, counts = times.turns["clocked"].low()
    clocks, graphs, programs = counts[COUNT], counts[NUM_GRAPHS], counts[NUM_PROGRAMS]
    in_kernels = float(counts[: len(KINDS)].sum())
    true_ns = max(0.0, in_kernels - clocks * cost.kernel_within)
    ratio = true_ns / in_kernels if in_kernels else 0.0
    kernels = {kind: ratio * float(counts[index]) for index, kind in enumerate(KINDS)}
    wrapper = counts[PROGRAMS_NS] - in_kernels - clocks * cost.kernel_beside
    wrapper -= programs * (cost.layer_within + cost.sums)
    runtime = counts[GRAPHS_NS] - counts[PROGRAMS_NS]
    runtime -= graphs * cost.layer_within + programs * cost.program_beside
    guards = total_ms * 1e6 - counts[GRAPHS_NS] - graphs * cost.graph_beside
    copies, generated = kernels["copies"], kernels["generated"]
    if has_moves:
        moved = min(generated, times.ms("moves") * 1e6)
        copies, generated = copies + moved, generated - moved
    values = (guards, runtime, wrapper, copies, generated, kernels["library"])
    return CallParts(*(max(0.0, float(value)) / 1e6 for value in values))


def _instability(measured: MeasuredCall) -> str:
    if abs(measured.self_ratio - 1) > STEADY:
        return "eager torch differs from itself"
    if measured.speedup.high - measured.speedup.low > 2 * STEADY * measured.speedup.value:
        return "the interval is wide"
    if abs(measured.residue_ms) > RESIDUE_SHARE * measured.compiled_ms:
        return "the parts do not add up"
    return ""
