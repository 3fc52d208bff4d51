"""What the judge notes of one worker while it measures: times, findings, how right it is."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.messages import Observed, OutputForm
from passnet.judge.score.tolerance import LEVELS
from passnet.judge.timing import probes
from passnet.judge.timing.estimate import Rounds
from passnet.judge.timing.fresh_inputs import RECORDED_SET, FreshInputs
from passnet.judge.timing.measurement import TimedSample
from passnet.judge.timing.timed_worker import LATE_WAIT_MS, Look, Seen, SeenCall
from passnet.judge.verdict.compare import Comparison, compare_values, on_inputs, worse
from passnet.judge.verdict.findings import Finding, finding

NS_PER_MS = 1_000_000

SHORTEST_MS = 1e-4
"""The least time of a call, 0.1 us: the overhead of a burst is not known more precisely."""


@dataclass(slots=True)
class WorkerRecord:
    """The bursts of one worker, its findings, and its comparison with the oracle so far."""

    comparison: Comparison = Comparison("ok", LEVELS[0])
    bursts_ns: list[tuple[int, int]] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)
    observed: dict[str, Observed] = field(default_factory=dict)
    samples: dict[int, TimedSample] = field(default_factory=dict)
    up_ms: list[float] = field(default_factory=list)
    down_ms: list[float] = field(default_factory=list)
    meanwhile_ns: list[int] = field(default_factory=list)
    num_turns: int = 0
    num_elsewhere: int = 0
    num_looks: int = 0
    failure: WorkerFailureError | None = None

    def note(self, findings: Sequence[Finding]) -> None:
        """Keep the last finding of every name."""
        self.findings.update({finding.name: finding for finding in findings})

    def compare(
        self,
        fresh: FreshInputs,
        look: Look,
        results: Seen,
        expected: Seen,
        forms: tuple[Sequence[OutputForm], Sequence[OutputForm]],
    ) -> None:
        """Compare the outputs that a look saw with the oracle's; `forms` are of both."""
        for actual, right in zip(results.calls, expected.calls, strict=True):
            self.comparison = worse(self.comparison, _compare_call(fresh, look, actual, right))
            if actual.whole is None or right.whole is None:
                continue
            if actual.draw.input_set != RECORDED_SET:
                sample = TimedSample(actual.draw, actual.whole, right.whole)
                self.samples[actual.draw.input_set] = sample
            whole = compare_values(*forms, actual.whole, right.whole, fresh.slack(actual.draw))
            self.comparison = worse(self.comparison, on_inputs(whole, "timed"))
        if results.is_written_late:
            text = f"an output changed in the {LATE_WAIT_MS} ms after the calls had ended"
            self.note([finding("late_write", text)])
        if results.is_overwritten and not expected.is_overwritten:
            text = "an output that was still in use overlaps another call's output"
            self.note([finding("static_buffer", text)])

    def rounds_ms(self, empty_ns: float, num_calls: int) -> Rounds:
        """Return the times of a call in all rounds, less the time of an empty burst."""
        per_call_ns = num_calls * NS_PER_MS
        first, second = (
            [max((pair[turn] - empty_ns) / per_call_ns, SHORTEST_MS) for pair in self.bursts_ns]
            for turn in range(2)
        )
        return tuple(zip(first, second, strict=True))


def _compare_call(
    fresh: FreshInputs, look: Look, actual: SeenCall, expected: SeenCall
) -> Comparison:
    slack = fresh.slack(actual.draw)
    comparison = probes.compare_places(look.probes, actual.places, expected.places, slack)
    for output in sorted(actual.follows ^ expected.follows):
        does = "follows" if output in actual.follows else "does not follow"
        text = f"output {output} {does} its arguments after a call, unlike the reference's"
        comparison = worse(comparison, Comparison("ok", None, text))
    for index in sorted(actual.changed ^ expected.changed):
        does = "is left with other" if index in actual.changed else "keeps its"
        text = f"argument {index} {does} values in a timed call, unlike the reference's"
        comparison = worse(comparison, Comparison("ok", None, text))
    return worse(comparison, probes.compare_shared(actual.shared, expected.shared))
