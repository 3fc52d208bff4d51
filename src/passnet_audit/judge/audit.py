"""An audit of the judge itself: exploits that it must catch, honest passes that it must not.

A corpus is a folder of graph directories under `graphs/`, and one pass folder a case, with a
`case.json`. The audit counts exploits that gained, and honest passes that were rejected, flagged or
found wrong: both must be zero. Cases that could not be measured are counted apart.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from passnet.agent.settings import GAIN
from passnet.bench.cluster import check_machine
from passnet.bench.environment import Environment
from passnet.core.records.serialise import read_json
from passnet.errors import InputError, PassFolderError
from passnet.graph.text.files import read_sample
from passnet.judge.candidate import CallMode, Candidate
from passnet.judge.held_out import held_out_findings
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.inspection.rules import RulesName
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import SandboxName, find_sandbox
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from passnet.passes.folder import packed_folder, unpack_folder

CASE_FILE = "case.json"
GRAPH_FOLDER = "graphs"
KERNEL_FOLDER = "kernels"
"""The folder of honest pass folders in a corpus, one a graph, under the graph's name."""
WRONG_ANSWERS = {"constant_output", "replayed_output"}
"""Findings that explain wrong values."""


@dataclass(frozen=True, slots=True)
class Case:
    """A pass folder and the expected outcome of judging it.

    `says` is its trick or style, `graph` its graph directory, and `held_out` those of other shapes.
    An exploit names its accepted outcomes (`caught_by`), the numbers of its `families`, and if it
    has a good kernel, the folder of that kernel without the trick (`honest`), over which a speedup
    is a gain. `needs` are modules that it cannot run without.
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
        """Return a module that it needs and that is not installed here."""
        return next((name for name in self.needs if find_spec(name) is None), None)


@dataclass(frozen=True, slots=True)
class Audited:
    """A case and its trial."""

    name: str
    case: Case
    trial: Trial
    honest_trial: Trial | None = None
    """The trial of the kernel without the trick, judged with it."""

    @property
    def honest_speedup(self) -> float:
        """Return the upper bound of the speedup of the kernel without the trick, at least 1."""
        high = self.honest_trial.speedup_high if self.honest_trial else None
        return max(high or 1.0, 1.0)

    @property
    def named(self) -> tuple[str, ...]:
        """Return the findings that reject or flag it, each once."""
        weighty = [finding.name for finding in self.trial.findings if finding.weight != "note"]
        return tuple(dict.fromkeys(weighty))

    @property
    def outcomes(self) -> frozenset[str]:
        """Return `correct`, `wrong_values` or the status; its findings; and `no_gain`."""
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
        """Return whether an exploit was caught by name, or an honest pass left alone."""
        if self.case.kind == "honest":
            return self.outcomes <= {"correct", "no_gain"}
        return not self.gained and not self.outcomes.isdisjoint(self.case.caught_by)

    @property
    def gained(self) -> bool:
        """Return whether an exploit passed for correct and faster, without any finding."""
        return self.case.kind == "exploit" and self.outcomes == {"correct"}

    @property
    def is_unstable(self) -> bool:
        """Return whether the machine was too busy to measure it, and nothing else was found."""
        return self.outcomes == {"unstable"}

    @property
    def is_punished(self) -> bool:
        """Return whether an honest pass was rejected, flagged or found wrong, or failed."""
        return self.case.kind == "honest" and not self.is_right and not self.is_unstable


@dataclass(frozen=True, slots=True)
class AuditTotals:
    """The counts of an audit beside `load` processes that keep the machine busy."""

    load: int
    exploits: int
    gained: int
    honest: int
    punished: int
    unstable: int


def count(audited: Sequence[Audited], load: int = 0) -> AuditTotals:
    """Return the totals of an audit that ran beside `load` busy processes."""
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
    """Return the cases below some folders, or raise InputError for none or a malformed one."""
    cases = {
        path.parent: read_json(path, Case)
        for root in roots
        for path in sorted(root.resolve().glob(f"*/{CASE_FILE}"))
    }
    if not cases:
        raise InputError(f"no {CASE_FILE} in a folder below {', '.join(map(str, roots))}")
    return cases


@dataclass(frozen=True, slots=True)
class CaseOrder:
    """A case with its graphs and packed pass folders, so that any machine can judge it."""

    path: Path
    case: Case
    graphs: tuple[TaskGraph, ...]
    folders: tuple[tuple[Path, bytes | None], ...]
    """The case's folder, and that of the kernel without the trick; None if they cannot be read."""


def case_order(path: Path, case: Case, corpus: Path | None = None) -> CaseOrder:
    """Read a case; its `corpus` is the parent folder unless given."""
    corpus = corpus or path.parent
    names = (case.graph, *case.held_out)
    samples = {name: read_sample(corpus / GRAPH_FOLDER / name) for name in names}
    graphs = tuple(TaskGraph(path.name, name, samples[name].graph) for name in names)
    folders = (path,) if case.honest is None else (path, corpus / case.honest)
    return CaseOrder(path, case, graphs, tuple((folder, _packed(folder)) for folder in folders))


def _packed(folder: Path) -> bytes | None:
    try:
        return packed_folder(folder, folder.parent) if folder.is_dir() else None
    except PassFolderError:
        return None


@contextmanager
def open_auditor(
    sandbox: SandboxName, settings: JudgeSettings, environment: Environment
) -> Iterator[Callable[[CaseOrder], Audited]]:
    """Open a judge of cases in this process; raise InputError on a machine of another kind."""
    check_machine(environment, RunSettings(settings))
    with (
        ParentPool(sandbox=find_sandbox(sandbox), device=settings.device) as parents,
        TemporaryDirectory(prefix="passnet-audit-") as name,
    ):
        yield lambda order: judge_case(parents, _here(order, Path(name)), settings)


def _here(order: CaseOrder, root: Path) -> CaseOrder:
    """Return an order whose folders lie on this machine: where they are equal, or unpacked."""
    folders = []
    for number, (folder, packed) in enumerate(order.folders):
        if packed is not None and _packed(folder) != packed:
            above = root / f"{folder.name}-{number}"
            unpack_folder(packed, above)
            folder = above / folder.name
        folders.append((folder, packed))
    return replace(order, path=folders[0][0], folders=tuple(folders))


def audit(
    parents: ParentPool,
    cases: dict[Path, Case],
    settings: JudgeSettings,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[Audited]:
    """Judge every case that can run on the device, each in a worker of its own."""
    for path, case in cases.items():
        if case.missing is None and case.device == parents.device:
            yield audit_case(parents, path, case, settings)
        report(path.name)


def audit_case(
    parents: ParentPool, path: Path, case: Case, settings: JudgeSettings, corpus: Path | None = None
) -> Audited:
    """Judge the case in the folder `path`; its `corpus` is the parent folder unless given."""
    return judge_case(parents, case_order(path, case, corpus), settings)


def judge_case(parents: ParentPool, order: CaseOrder, settings: JudgeSettings) -> Audited:
    """Judge a case that was read."""
    path, case, (graph, *unseen) = order.path, order.case, order.graphs
    settings = replace(settings, rules=case.rules, device=case.device)
    candidate = Candidate("case", "passes", str(path), case.call, root=str(path.parent))
    candidates = [candidate]
    for honest, _ in order.folders[1:]:
        candidates.append(Candidate("honest", "passes", str(honest), case.call, root=str(honest)))
    parents.start(candidates)
    inspected = InspectedFolders(case.rules)
    findings = held_out_findings(parents, unseen, [candidate], settings, inspected)
    trial, *honest_trials = judge_graph(parents, graph, candidates, settings, inspected, findings)
    return Audited(path.name, case, trial, *honest_trials)
