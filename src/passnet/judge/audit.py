"""An audit of the judge itself: exploits that must be caught, honest passes that must not be.

A corpus is a folder with `graphs/`, which holds graph directories, and one pass folder a case, with
a `case.json` beside the passes. Two rates come out: exploits that gained, and honest passes that
were rejected, flagged or found wrong. Both must be zero. What the machine was too busy to measure
is counted apart from both.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from passnet.core.records.serialise import read_json
from passnet.errors import InputError
from passnet.graph.text.files import read_sample
from passnet.judge.candidate import CallMode, Candidate
from passnet.judge.held_out import held_out_findings
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.inspection.rules import RulesName
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import JudgeSettings
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial

CASE_FILE = "case.json"
GRAPH_FOLDER = "graphs"
KERNEL_FOLDER = "kernels"
"""Where a corpus keeps an honest pass folder for a graph, under the graph's name."""

WRONG_ANSWERS = {"constant_output", "replayed_output"}
"""Findings that explain wrong values."""

GAIN = 1.3
"""A speedup whose interval reaches below this is none; an exploit that works is far above."""


@dataclass(frozen=True, slots=True)
class Case:
    """One pass folder and what must come of it.

    Args:
        kind: whether it cheats.
        says: what it does, in a sentence.
        graph: the graph directory it is judged on.
        caught_by: for an exploit, the outcome that it must have; see `outcomes`.
        families: for an exploit, the numbers of the families it belongs to.
        rules: those it is judged under.
        device: that it is judged on.
        call: how it is called.
        held_out: graph directories with other shapes that its author has not seen.
        honest: for an exploit with a good kernel, the folder of that kernel without the trick,
            beside those of the cases; the trick gains what it is faster than that.
        needs: modules without which it cannot run.
    """

    kind: Literal["exploit", "honest"]
    says: str
    graph: str
    caught_by: tuple[str, ...] = ()
    families: tuple[int, ...] = ()
    rules: RulesName = "open"
    device: Literal["cpu", "cuda"] = "cpu"
    call: CallMode = "direct"
    held_out: tuple[str, ...] = ()
    honest: str | None = None
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> str | None:
        """A module that it needs and that is not installed here."""
        return next((name for name in self.needs if find_spec(name) is None), None)


@dataclass(frozen=True, slots=True)
class Audited:
    """How a case came out."""

    name: str
    case: Case
    trial: Trial
    honest_trial: Trial | None = None
    """That of the kernel without the trick, judged with it."""

    @property
    def honest_speedup(self) -> float:
        """Upper bound of the speedup of the kernel without the trick; 1 where that is slower than
        the reference, or there is none.
        """
        high = self.honest_trial.speedup_high if self.honest_trial else None
        return max(high or 1.0, 1.0)

    @property
    def named(self) -> tuple[str, ...]:
        """The findings that reject or flag it, each once."""
        weighty = [finding.name for finding in self.trial.findings if finding.weight != "note"]
        return tuple(dict.fromkeys(weighty))

    @property
    def outcomes(self) -> frozenset[str]:
        """What the judge called it: `correct`, `wrong_values`, or its status; the names of the
        findings that reject or flag it; and `no_gain`, if it is correct and not faster.
        """
        names = set(self.named)
        t = self.trial.smallest_t
        is_wrong = t is None or t > CORRECT_AT
        if self.trial.status != "ok":
            if (self.trial.status == "unstable" and is_wrong) or names & WRONG_ANSWERS:
                names.add("wrong_values")
            return frozenset({self.trial.status, *names})
        if is_wrong:
            return frozenset({"wrong_values", *names})
        is_faster = (self.trial.speedup_low or 0.0) > GAIN * self.honest_speedup
        return frozenset({"correct", *names} if is_faster else {"correct", "no_gain", *names})

    @property
    def is_right(self) -> bool:
        """Whether an exploit was caught under its right name, or an honest pass left alone."""
        if self.case.kind == "honest":
            return self.outcomes <= {"correct", "no_gain"}
        return not self.gained and not self.outcomes.isdisjoint(self.case.caught_by)

    @property
    def gained(self) -> bool:
        """Whether the judge took an exploit for a correct and faster pass without a word."""
        return self.case.kind == "exploit" and self.outcomes == {"correct"}

    @property
    def is_unstable(self) -> bool:
        """Whether nothing came out but that the machine was too busy to measure on."""
        return self.outcomes == {"unstable"}

    @property
    def is_punished(self) -> bool:
        """Whether an honest pass was rejected, flagged or found wrong, or failed."""
        return self.case.kind == "honest" and not self.is_right and not self.is_unstable


@dataclass(frozen=True, slots=True)
class AuditTotals:
    """How many cases came out how, beside `load` processes that spin."""

    load: int
    exploits: int
    gained: int
    honest: int
    punished: int
    unstable: int


def count(audited: Sequence[Audited], load: int = 0) -> AuditTotals:
    """The totals of an audit that ran beside `load` spinning processes."""
    kinds = [outcome.case.kind for outcome in audited]
    return AuditTotals(
        load,
        kinds.count("exploit"),
        sum(outcome.gained for outcome in audited),
        kinds.count("honest"),
        sum(outcome.is_punished for outcome in audited),
        sum(outcome.is_unstable for outcome in audited),
    )


def find_cases(roots: Sequence[Path]) -> dict[Path, Case]:
    """The cases below some folders, in order.

    Raises:
        InputError: there is none, or one is malformed.
    """
    cases = {
        path.parent: read_json(path, Case)
        for root in roots
        for path in sorted(root.resolve().glob(f"*/{CASE_FILE}"))
    }
    if not cases:
        raise InputError(f"no {CASE_FILE} in a folder below {', '.join(map(str, roots))}")
    return cases


def audit(
    parents: ParentPool,
    cases: dict[Path, Case],
    settings: JudgeSettings,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[Audited]:
    """Judge every case that can run here on the device of these parents, each in a worker of its
    own.

    One parent serves all cases of a corpus.
    """
    for path, case in cases.items():
        if case.missing is None and case.device == parents.device:
            yield audit_case(parents, path, case, settings)
        report(path.name)


def audit_case(
    parents: ParentPool,
    path: Path,
    case: Case,
    settings: JudgeSettings,
    corpus: Path | None = None,
) -> Audited:
    """Judge one case, whose passes are in the folder `path`; its `corpus` is the folder that this
    lies in, unless another one is given.
    """
    corpus = corpus or path.parent
    graph, *unseen = [
        TaskGraph(path.name, name, read_sample(corpus / GRAPH_FOLDER / name).graph)
        for name in (case.graph, *case.held_out)
    ]
    settings = replace(settings, rules=case.rules, device=case.device)
    candidate = Candidate("case", "passes", str(path), case.call, root=str(path.parent))
    candidates = [candidate]
    if case.honest is not None:
        honest = corpus / case.honest
        candidates.append(Candidate("honest", "passes", str(honest), case.call, root=str(honest)))
    parents.start(candidates)
    inspected = InspectedFolders(case.rules)
    findings = held_out_findings(parents, unseen, [candidate], settings, inspected)
    trial, *others = judge_graph(parents, graph, candidates, settings, inspected, findings)
    return Audited(path.name, case, trial, *others)
