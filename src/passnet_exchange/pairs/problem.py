"""The file of a reference as a graph, captured in a limited process."""

from dataclasses import dataclass
from pathlib import Path

from passnet.core.jobs.process import Job, JobLimits, JobRunner
from passnet.core.records.serialise import encode
from passnet.errors import InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet_exchange.pairs.binding import ModuleBinding

REFERENCES = {"ModelNew": "Model", "candidate": "reference"}
"""The class or function of a reference, by that of its candidates."""
CAPTURE = f"{__package__}.problem_capture"


@dataclass(frozen=True, slots=True)
class ReducedConstant:
    """An integer of a file, outside its functions, before and after it was made smaller."""

    name: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ProblemOrder:
    """The capture of a file; its sizes are reduced until it takes `max_bytes`, if that is given.

    `is_evaluated` puts a module into evaluation mode; otherwise it keeps that of its file.
    `may_evaluate` does so only where the module draws random numbers otherwise.
    """

    path: str
    is_evaluated: bool = False
    may_evaluate: bool = False
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A captured file: the text of its program, its arguments, and the binding of a candidate.

    `num_bytes` are those of arguments and outputs, `whole_bytes` the same before sizes were
    reduced. `positive` names arguments that are drawn above 0, as the file draws them: otherwise
    outputs are not numbers. With an `error` there is no graph.
    """

    program: str = ""
    tensors: tuple[TensorSpec, ...] = ()
    binding: ModuleBinding | None = None
    num_bytes: int = 0
    whole_bytes: int = 0
    reduced: tuple[ReducedConstant, ...] = ()
    positive: tuple[str, ...] = ()
    error: str | None = None

    @property
    def graph(self) -> Graph:
        """Return the graph; raise InputError if there is none."""
        if self.error is not None:
            raise InputError(self.error)
        return Graph(parse_program(self.program), self.tensors)


def captured_problem(order: ProblemOrder, runner: JobRunner, limits: JobLimits) -> Problem:
    """Capture a reference's file in a process of a runner; a failure is the problem's error.

    The file is the user's own: it is trusted, and only limited in time and memory.
    """
    if not Path(order.path).is_file():
        raise InputError(f"{order.path}: no such file")
    payload = encode(order).decode()
    result = runner.run(Job(f"{CAPTURE}:capture_to", payload, limits, f"{CAPTURE}:ready"))
    if outcome := result.outcome(Problem):
        return outcome.record
    if result.end.timed_out or "MemoryError" in result.log or result.end.signal:
        what = "time" if result.end.timed_out else "memory"
        limit = f"{limits.seconds:g} s" if result.end.timed_out else f"{limits.memory_mib} MiB"
        return Problem(error=f"its capture takes more {what} than {limit}")
    return Problem(error=f"its capture ended: {result.failure}")
