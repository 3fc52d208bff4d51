"""The answers that an author gets: short, complete, the summary first.

They tell nothing of held-out shapes, or of the judge's evidence.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from passnet import judge
from passnet.agent.attempts.attempt import Evaluation, VariantResult
from passnet.bench.scores import Row, score_rows
from passnet.core.records.serialise import decode, encode
from passnet.core.terminal.counts import times
from passnet.core.terminal.visible_text import source_lines
from passnet.errors import ActionError
from passnet.judge.match_check import GraphMatches
from passnet.judge.task import Task
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from passnet.passes.files import Files, lines_of

MAX_PROBLEM = 400

UNTIMED = "; too noisy to time graph {}: the score and the choice of the best leave it out"


def variant_result(trial: Trial, root: str) -> VariantResult:
    """Return the part of a trial that an author may know; messages omit the evaluator's folder."""
    rejected = [finding for finding in trial.findings if finding.weight == "reject"]
    error = _rejection(rejected[0]) if rejected else trial.error
    return VariantResult(
        graph=trial.graph,
        status=trial.status,
        smallest_t=trial.smallest_t,
        speedup=trial.speedup,
        speedup_low=trial.speedup_low,
        speedup_high=trial.speedup_high,
        error=None if error is None else plain(error, root),
        matches=dict(trial.matches),
        findings=tuple(dict.fromkeys(finding.name for finding in rejected)),
        us=_us(trial.candidate_ms),
        eager_us=_us(trial.reference_ms),
        own_us=_us(trial.direct_ms),
    )


def _us(ms: float | None) -> float | None:
    return None if ms is None else round(1e3 * ms, 2)


def _rejection(finding: Finding) -> str:
    """Return the text shown for a finding: its location and message, or its name."""
    if finding.name == "hard_coded_shape":
        return "rejected: wrong on other shapes of this task than those shown"
    if finding.place is not None:
        return f"rejected at {finding.place}: {finding.name}: {finding.evidence}"
    return f"rejected: {finding.name}"


def plain(text: str, root: str) -> str:
    """Return a message without names of folders, on one line, cut to `MAX_PROBLEM` characters."""
    text = re.sub(re.escape(root) + r"(/[^/\s:'\"]+)?/?", "", text)
    text = re.sub(r"(/[\w.+-]+)+/(site-packages|src|lib)/", "", text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_PROBLEM else text[: MAX_PROBLEM - 1] + "…"


def evaluation_text(evaluation: Evaluation, number: int, best: int | None, task: Task) -> str:
    """Return the summary of an evaluation, then a line a graph, by the task's numbers."""
    variants = evaluation.variants
    score = "not timed" if evaluation.score is None else f"{evaluation.score:.3f}"
    is_best = "the best so far" if best == number else f"the best so far is evaluation {best}"
    failures = Counter(_status(variant) for variant in variants if not variant.is_correct)
    numbers = _graph_numbers(task)
    untimed = [numbers[variant.graph] for variant in variants if variant.is_untimed]
    lines = [
        f"evaluation {number}: score {score}, {is_best}; "
        f"{len(variants) - failures.total()} of {len(variants)} graphs correct"
        + "".join(f", {count} {status}" for status, count in failures.items())
        + (UNTIMED.format(", ".join(untimed)) if untimed else ""),
        "graph | status | smallest t | speedup | interval | eager us | us | own us | matches | "
        "problem",
    ]
    first_graphs: dict[str, str] = {}
    for variant in variants:
        graph = numbers[variant.graph]
        problem = variant.error or _problem(variant)
        first = first_graphs.setdefault(problem, graph)
        if first != graph and len(problem) > 40:
            problem = f"as graph {first}"
        matches = ", ".join(f"{name} {count}" for name, count in variant.matches.items())
        low, high = variant.speedup_low, variant.speedup_high
        times = variant.eager_us, variant.us, variant.own_us
        cells = (
            graph,
            _status(variant),
            "–" if variant.smallest_t is None else str(variant.smallest_t),
            "–" if variant.speedup is None else f"{variant.speedup:.3f}",
            "–" if low is None or high is None else f"{low:.2f}–{high:.2f}",
            *("–" if us is None else f"{us:.1f}" for us in times),
            matches or "–",
            problem,
        )
        lines.append(" | ".join(cells).rstrip())
    return "\n".join(lines)


def unchanged_text(trials: Sequence[Trial], task: Task) -> str:
    """Return what graphs cost as they are: in eager torch, and called as passes are called."""
    numbers = _graph_numbers(task)
    timed = [trial for trial in trials if trial.speedup is not None and trial.reference_ms]
    if not timed:
        return ""
    lines = [
        "Measured here before your first turn: the graphs as they are, without a pass, called as "
        "your passes will be. The call takes the difference to eager torch, whatever a pass does, "
        "so that a pass which took no time would have the speedup `at most`. An evaluation shows "
        "`us`, a call of your folder, and `own us`, the same without the call, in the same rounds.",
        "",
        "graph | eager torch, us | unchanged, us | its speedup | the call, us | at most",
    ]
    for trial in timed:
        assert trial.speedup is not None and trial.reference_ms is not None, "both were looked at"
        eager_us = trial.reference_ms * 1e3
        times = f"{eager_us:.1f} | {eager_us / trial.speedup:.1f} | {trial.speedup:.2f}"
        call = max(1e3 * (trial.candidate_ms or 0.0) - eager_us, 0.0)
        most = f"{call:.1f} | {eager_us / call:.2f}" if call else "0.0 | –"
        lines.append(f"{numbers[trial.graph]} | {times} | {most}")
    score = task_score(trials)
    if score is not None:
        lines += ["", f"A folder that changes nothing would score {score:.3f}: do better."]
    return "\n".join(lines)


def task_score(trials: Sequence[Trial]) -> float | None:
    """Return the AS of one task from its trials; None if it was not, or not to be, timed."""
    if all(trial.status == "unstable" for trial in trials):
        return None
    if any(trial.status == "ok" and trial.speedup is None for trial in trials):
        return None
    (scores,) = score_rows([decode(encode(trial), Row) for trial in trials])
    return scores.suite.score


def _graph_numbers(task: Task) -> dict[str, str]:
    return {graph.name: str(number) for number, graph in enumerate(task.graphs)}


def _status(variant: VariantResult) -> str:
    if variant.is_correct or variant.status not in ("ok", "unstable"):
        return variant.status
    return "wrong values, unstable" if variant.is_untimed else "wrong values"


def _problem(variant: VariantResult) -> str:
    is_slow = variant.speedup_high is not None and variant.speedup_high < 1
    return "slower than eager" if is_slow else ""


def match_text(matches: Sequence[GraphMatches], task: Task, root: str) -> str:
    """Return the summary of a match check, then a line a graph, without repetitions."""
    lines = [f"{sum(graph.has_any for graph in matches)} of {len(matches)} graphs have a match"]
    first_graphs: dict[str, str] = {}
    numbers = _graph_numbers(task)
    for graph in matches:
        if graph.error is not None:
            text = plain(graph.error, root)
        else:
            text = "; ".join(
                f"{report.name} matches {times(report.num_matches)}"
                if report.num_matches or report.miss is None
                else f"no match: {plain(report.miss, root)}"
                for report in graph.passes
            ) or "the list names no pass"  # fmt: skip
        number = numbers[graph.graph]
        first = first_graphs.setdefault(text, number)
        lines.append(f"graph {number}: {text if first == number else f'as graph {first}'}")
    return "\n".join(lines)


@cache
def judge_source() -> Files:
    """Return the text of every file of the judge, by its path in the judge's folder."""
    root = Path(str(judge.__file__)).parent
    return {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted(root.rglob("*.py"))
    }


def show_source(name: str = "", first: int = 1, last: int | None = None) -> str:
    """Return numbered lines of a file of the judge, or without a name the list of its files."""
    files = judge_source()
    if not name:
        return "\n".join(f"{file}: {len(source_lines(text))} lines" for file, text in files.items())
    if name not in files:
        raise ActionError(f"the judge has no file {name[:100]!r}; call without a name for the list")
    return lines_of(name, files[name], first, last)
