"""Pattern matches of a pass folder, found in a worker that runs and times nothing."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from passnet.graph.spec import retarget
from passnet.graph.text.render import render_program
from passnet.judge.candidate import Candidate
from passnet.judge.processes.device_lock import DeviceTurns
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.device import kind_of
from passnet.judge.protocol.messages import CheckMatches, MatchesChecked, MissText
from passnet.judge.settings import JudgeSettings
from passnet.judge.task import TaskGraph
from passnet.judge.trial import MAX_TEXT


@dataclass(frozen=True, slots=True)
class GraphMatches:
    """The matches of each pass in a graph, with the nearest miss of a pass without any.

    `error` is set if the folder could not be loaded or applied.
    """

    graph: str
    passes: tuple[MissText, ...] = ()
    error: str | None = None

    @property
    def has_any(self) -> bool:
        """Return whether any pass matches."""
        return any(report.num_matches for report in self.passes)


def check_matches(
    parents: ParentPool, graphs: Sequence[TaskGraph], candidate: Candidate, settings: JudgeSettings
) -> Iterator[GraphMatches]:
    """Match the passes of a candidate against graphs, in one worker as long as it answers."""
    assert candidate.passes is not None, "only a pass folder has passes"
    worker = None
    with ExitStack() as stack:
        for graph in graphs:
            retargeted = retarget(graph.graph, kind_of(settings.device))
            request = CheckMatches(
                render_program(retargeted.program), retargeted.tensors, candidate.passes
            )
            with DeviceTurns(settings.device):
                if worker is None:
                    worker = stack.enter_context(parents.of(candidate).fork(settings.limits))
                try:
                    reply = worker.ask(request, MatchesChecked, settings.compile_timeout_s)
                except WorkerFailureError as failure:
                    result = GraphMatches(graph.name, error=str(failure)[:MAX_TEXT])
                    stack.close()
                    worker = None
                else:
                    result = GraphMatches(graph.name, reply.matches)
            yield result
