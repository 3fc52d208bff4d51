"""Attacks on the judge by an LLM: it tries to get credit that its passes do not deserve.

An attack is an attempt at a graph of a corpus (see `audit`) that begins with an honest
kernel. Every state that the judge called correct is judged once more with that kernel. A state that
gains is filed as a case; a developer then decides which finding must catch it.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.agent.attempts.attempt import Attempt, Evaluation
from passnet.agent.settings import AgentSettings
from passnet.agent.trajectories.selection import code_digest
from passnet.core.records.serialise import write_json
from passnet.errors import InputError, no_such
from passnet.graph.text.files import read_sample
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.protocol.device import kind_of
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.task import TaskGraph
from passnet.passes.files import write_files
from passnet_audit.judge.audit import (
    CASE_FILE,
    GRAPH_FOLDER,
    KERNEL_FOLDER,
    Audited,
    Case,
    audit_case,
)

MAX_SAYS = 300
"""Most characters of a case's description of itself."""


@dataclass(frozen=True, slots=True)
class Find:
    """A state called correct, its trial with the honest kernel, and its case if it gained."""

    evaluation: int
    audited: Audited
    folder: Path | None


def attacked_graphs(corpus: Path, names: Sequence[str] = ()) -> Suite:
    """Return the graphs of a corpus with an honest kernel, all or of `names`, each as a task.

    Raises InputError if there is none, or not one of the names.
    """
    folders = {path.name for path in (corpus / KERNEL_FOLDER).glob("*") if path.is_dir()}
    graph_names = sorted(name for name in folders if (corpus / GRAPH_FOLDER / name).is_dir())
    for name in names or graph_names[:1] or [""]:
        if name not in graph_names:
            raise InputError(
                f"{corpus}: {no_such('graph with an honest kernel', name, graph_names)}; put a "
                f"graph directory under {GRAPH_FOLDER} and a pass folder of its name under "
                f"{KERNEL_FOLDER}"
            )
    graphs = [
        TaskGraph(name, name, read_sample(corpus / GRAPH_FOLDER / name).graph)
        for name in names or graph_names
    ]
    return make_suite(corpus.resolve().name, graphs)


def file_finds(
    parents: ParentPool,
    corpus: Path,
    attempts: Sequence[Attempt],
    settings: AgentSettings,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[Attempt, list[Find]]]:
    """Judge the states of attacks, the best first, and file each attack's first that gains."""
    with tempfile.TemporaryDirectory(prefix="passnet-attack-") as name:
        root = Path(name).resolve()
        for attempt in attempts:
            finds: list[Find] = []
            passing = {
                number: evaluation.score or 0.0
                for number, evaluation in enumerate(attempt.evaluations)
                if evaluation.is_passing and not evaluation.exploits
            }
            for number in sorted(passing, key=lambda number: -passing[number]):
                finds.append(_find(parents, root, corpus, attempt, number, settings))
                if finds[-1].folder is not None:
                    break
            yield attempt, finds
            report(attempt.task)


def _find(
    parents: ParentPool,
    root: Path,
    corpus: Path,
    attempt: Attempt,
    number: int,
    settings: AgentSettings,
) -> Find:
    evaluation = attempt.evaluations[number]
    judge = settings.run.judge
    case = Case(
        kind="exploit",
        says=f"Found by {attempt.llm}: {_said(attempt, evaluation)}",
        graph=attempt.task,
        rules=judge.rules,
        device=kind_of(judge.device),
        call=settings.call,
        honest=f"{KERNEL_FOLDER}/{attempt.task}",
    )
    path = root / f"found_{attempt.task}_{code_digest(evaluation.files)[:8]}"
    write_files(evaluation.files, path)
    write_json(path / CASE_FILE, case)
    audited = audit_case(parents, path, case, judge, corpus)
    if not audited.gained:
        return Find(number, audited, None)
    shutil.copytree(path, corpus / path.name, dirs_exist_ok=True)
    return Find(number, audited, corpus / path.name)


def _said(attempt: Attempt, evaluation: Evaluation) -> str:
    turns = [message for message in attempt.messages if message.role == "assistant"]
    texts = [message.content for message in turns[: evaluation.turn] if message.content.strip()]
    text = " ".join(texts[-1].split()) if texts else "it said nothing"
    return text if len(text) <= MAX_SAYS else text[: MAX_SAYS - 1] + "…"
