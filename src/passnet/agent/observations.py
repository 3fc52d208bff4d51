"""What an author is told: short, complete, the summary first, always in the same form.

Nothing in it tells of held-out shapes, or of how the judge finds out what it finds out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from passnet.agent.attempt import Evaluation, VariantResult
from passnet.judge.findings import Finding
from passnet.judge.match_check import GraphMatches
from passnet.judge.trial import Trial
from passnet.suite.suite import Task

MAX_PROBLEM = 400
HELD_OUT = "hard_coded_shape"
HELD_OUT_TEXT = "wrong on other shapes of this task than those shown"


def variant_result(trial: Trial, root: str) -> VariantResult:
    """What an author may know of a trial.

    Args:
        trial: of the judge.
        root: the folder of the workbench, which is left out of messages.
    """
    rejected = [item for item in trial.findings if item.weight == "reject"]
    error = _said(rejected[0]) if rejected else trial.error
    return VariantResult(
        trial.graph,
        trial.status,
        trial.smallest_t,
        trial.speedup,
        trial.speedup_low,
        trial.speedup_high,
        None if error is None else plain(error, root),
        dict(trial.matches),
        tuple(dict.fromkeys(item.name for item in rejected)),
    )


def _said(finding: Finding) -> str:
    """What is said of a finding: of the text of a file where it is and what; else its name."""
    if finding.name == HELD_OUT:
        return f"rejected: {HELD_OUT_TEXT}"
    if finding.place is not None:
        return f"rejected at {finding.place}: {finding.name}: {finding.evidence}"
    return f"rejected: {finding.name}"


def plain(text: str, root: str) -> str:
    """A message without the names of folders, on one line, cut to `MAX_PROBLEM` characters."""
    text = re.sub(re.escape(root) + r"(/[^/\s:'\"]+)?/?", "", text)
    text = re.sub(r"(/[\w.+-]+)+/(site-packages|src|lib)/", "", text)
    text = " ".join(text.split())
    return text if len(text) <= MAX_PROBLEM else text[: MAX_PROBLEM - 1] + "…"


def evaluation_text(evaluation: Evaluation, number: int, best: int | None, task: Task) -> str:
    """The summary of an evaluation, then a line a graph, by the numbers that the task has."""
    variants = evaluation.variants
    correct = sum(item.is_correct for item in variants)
    score = "not measured" if evaluation.score is None else f"{evaluation.score:.3f}"
    is_best = "the best so far" if best == number else f"the best so far is evaluation {best}"
    lines = [f"evaluation {number}: score {score}, {is_best}; "
             f"{correct} of {len(variants)} graphs correct"
             + "".join(f", {count} {status}" for status, count in _others(variants)),
             "graph | status | smallest t | speedup | interval | matches | problem"]  # fmt: skip
    said: dict[str, str] = {}
    numbers = _numbers(task)
    for item in variants:
        name = numbers[item.graph]
        problem = item.error or _problem(item)
        if problem in said and len(problem) > 40:
            problem = f"as graph {said[problem]}"
        else:
            said.setdefault(problem, name)
        status = "wrong values" if item.status == "ok" and not item.is_correct else item.status
        cells = (name, status, _number(item.smallest_t, "d"), _number(item.speedup, ".3f"),
                 _interval(item), _matches(item.matches), problem)  # fmt: skip
        lines.append(" | ".join(cells).rstrip())
    return "\n".join(lines)


def _numbers(task: Task) -> dict[str, str]:
    return {item.name: str(number) for number, item in enumerate(task.graphs)}


def _others(variants: Sequence[VariantResult]) -> Iterable[tuple[str, int]]:
    counts: dict[str, int] = {}
    for item in variants:
        if not item.is_correct:
            status = "wrong values" if item.status == "ok" else item.status
            counts[status] = counts.get(status, 0) + 1
    return counts.items()


def _problem(item: VariantResult) -> str:
    if item.status == "ok" and not item.is_correct:
        from_t = item.smallest_t
        return "outputs are wrong" if from_t is None else f"outputs agree from t = {from_t} on only"
    return "slower than eager" if _is_slow(item) else ""


def _is_slow(item: VariantResult) -> bool:
    return item.speedup_high is not None and item.speedup_high < 1


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _interval(item: VariantResult) -> str:
    if item.speedup_low is None or item.speedup_high is None:
        return "–"
    return f"{item.speedup_low:.2f}–{item.speedup_high:.2f}"


def _matches(matches: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in matches.items()) or "–"


def match_text(found: Sequence[GraphMatches], task: Task, root: str) -> str:
    """The summary of a dry run, then a line a graph and pass that differs from those before."""
    matched = sum(item.has_any for item in found)
    lines = [f"{matched} of {len(found)} graphs have a match"]
    said: dict[str, str] = {}
    numbers = _numbers(task)
    for item in found:
        name = numbers[item.graph]
        if item.error is not None:
            text = plain(item.error, root)
        else:
            text = "; ".join(
                f"{each.name} matches {each.num_matches} times"
                if each.num_matches or each.miss is None
                else f"no match: {plain(each.miss, root)}"
                for each in item.passes
            ) or "the list names no pass"  # fmt: skip
        if text in said:
            text = f"as graph {said[text]}"
        else:
            said[text] = name
        lines.append(f"graph {name}: {text}")
    return "\n".join(lines)
