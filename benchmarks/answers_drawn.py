"""What more answers of an LLM buy: best of 1, 4, 16 and 64, by likelihood, after a self-check, and
by the judge.

Run it with `python -m benchmarks.answers_drawn FOLDER [--llm training/llm] [--suite passbench-v1]`,
and again to go on; `--table` prints what there is, and `--figure FILE` draws it. An LLM answers one
graph of each task 64 times, first greedily; smaller numbers take the first ones. Of these

likelihood  submits the likeliest,
check       the likeliest that a run of its loops does not show wrong,
judge       the likeliest that the judge finds correct, asking it one by one,
both        the same after the check.

What is submitted is then timed. Each distinct answer is checked, judged and timed once.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from passnet.core.records.serialise import make_folder
from passnet.core.terminal.progress import progress
from passnet.errors import GraphError, InputError
from passnet.judge.settings import TimingPlan
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import TaskGraph
from passnet.pages.tables.tables import Table, print_table
from passnet_loops.data.row_judge import open_judge
from passnet_loops.evaluate import AnswerRecord, chosen_graphs
from passnet_loops.language.prompt import Prompt, prompt_or_none
from passnet_loops.language.run_answer import eager_run, what_is_wrong
from passnet_loops.policy import TEMPERATURE, Sampling, open_policy
from passnet_loops.summaries import SystemSummary, summary

DRAWN = 64
NUMBERS = (1, 4, 16, 64)
SELECTORS = ("likelihood", "check", "judge", "both")
AT_A_TIME = 8
"""Graphs whose answers are drawn, checked and judged before the next ones."""


@dataclass
class Facts:
    """What is known of one distinct answer; None where nobody asked yet."""

    text: str
    likelihood: float
    passes: bool = True
    check_s: float = 0.0
    judged: dict[str, Any] | None = None
    timed: dict[str, Any] | None = None


@dataclass
class Drawn:
    """The answers to a graph in the order of drawing, and the facts of the distinct ones."""

    task: str
    graph: str
    order: list[str]
    answers: dict[str, Facts]

    def first(self, number: int) -> list[Facts]:
        """Return the distinct ones of the first answers, the likeliest first."""
        distinct = [self.answers[text] for text in dict.fromkeys(self.order[:number])]
        return sorted(distinct, key=lambda facts: -facts.likelihood)


def checked(drawn: Sequence[Facts]) -> list[Facts]:
    """Return the answers that the self-check does not show wrong; all where none passes."""
    return [facts for facts in drawn if facts.passes] or list(drawn)


def selected(drawn: Drawn, number: int, selector: str) -> tuple[Facts | None, float, float, int]:
    """Return what is submitted, the seconds of the self-check and of the judge for it, and how many
    answers it judged.
    """
    answers = drawn.first(number)
    if not answers:
        return None, 0.0, 0.0, 0
    check_s = sum(facts.check_s for facts in answers) if selector in ("check", "both") else 0.0
    if check_s or selector in ("check", "both"):
        answers = checked(answers)
    if selector in ("likelihood", "check"):
        return answers[0], check_s, 0.0, 0
    judge_s, num_judged = 0.0, 0
    for facts in answers:
        assert facts.judged is not None, "the judge was asked until one was correct"
        judge_s += facts.judged["seconds"]
        num_judged += 1
        if facts.judged["verdict"] == "correct":
            return facts, check_s, judge_s, num_judged
    return answers[0], check_s, judge_s, num_judged


class Study:
    """The study in a folder."""

    def __init__(self, folder: Path) -> None:
        make_folder(folder)
        self.path = folder / "drawn.jsonl"
        self.drawn: dict[str, Drawn] = {}
        if self.path.exists():
            for line in self.path.read_bytes().splitlines():
                row = json.loads(line)
                answers = {text: Facts(**facts) for text, facts in row.pop("answers").items()}
                self.drawn[row["graph"]] = Drawn(**row, answers=answers)

    def keep(self, drawn: Drawn) -> None:
        """Write what is known of a graph; the last line of it counts."""
        self.drawn[drawn.graph] = drawn
        facts = {text: vars(each) for text, each in drawn.answers.items()}
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**vars(drawn), "answers": facts}) + "\n")


def draw(policy: Any, graphs: Sequence[TaskGraph]) -> Iterator[tuple[Drawn, Prompt | None]]:
    """Yield the answers to some graphs, with their likelihoods and the results of the check."""
    prompts = {graph.name: prompt_or_none(graph.graph) for graph in graphs}
    known = {name: prompt for name, prompt in prompts.items() if prompt is not None}
    greedy = policy.answers(list(known.values()))
    plan = Sampling(DRAWN - 1, TEMPERATURE)
    sampled = policy.answers(list(known.values()), plan)
    pairs = zip(greedy, sampled, strict=True)
    texts = dict(zip(known, [first + more for first, more in pairs], strict=True))
    for graph in graphs:
        order, prompt = texts.get(graph.name, []), prompts[graph.name]
        distinct = list(dict.fromkeys(order))
        answers: dict[str, Facts] = {}
        if prompt is not None:
            likelihoods = policy.log_likelihoods(prompt, distinct)
            answers = dict(zip(distinct, map(Facts, distinct, likelihoods), strict=True))
            _check(prompt, list(answers.values()))
        yield Drawn(graph.task, graph.name, order, answers), prompt


def _check(prompt: Prompt, answers: Sequence[Facts]) -> None:
    start = time.monotonic()
    try:
        eager = eager_run(prompt)
    except GraphError:
        return
    for facts in answers:
        try:
            facts.passes = what_is_wrong(eager, facts.text) is None
        except InputError:
            facts.passes = False
        facts.check_s, start = time.monotonic() - start, time.monotonic()


def ask(
    drawn: Drawn, judge: Callable[[str], dict[str, Any]], numbers: Sequence[int] = NUMBERS
) -> None:
    """Have answers judged until all selectors can choose."""
    for number in numbers:
        for answers in (drawn.first(number), checked(drawn.first(number))):
            for facts in answers:
                if facts.judged is None:
                    facts.judged = judge(facts.text)
                if facts.judged["verdict"] == "correct":
                    break


def study(folder: Path, llm: Path, suite: str, num_tasks: int | None) -> None:
    """Draw, check, judge and time what is missing."""
    own = Study(folder)
    graphs = {graph.name: graph for graph in chosen_graphs(load_suite(suite), 1, num_tasks)}
    missing = [graph for name, graph in graphs.items() if name not in own.drawn]
    policy = open_policy(llm)
    with open_judge() as judge, progress("drawing answers", len(missing)) as step:
        for start in range(0, len(missing), AT_A_TIME):
            for drawn, prompt in draw(policy, missing[start : start + AT_A_TIME]):
                graph = graphs[drawn.graph]
                if prompt is not None:
                    ask(drawn, lambda text, g=graph, p=prompt: vars_of(judge, g, p, text))
                own.keep(drawn)
                step(drawn.graph)
    with open_judge(TimingPlan()) as judge, progress("timing answers", len(own.drawn)) as step:
        for drawn in list(own.drawn.values()):
            graph, prompt = graphs[drawn.graph], prompt_or_none(graphs[drawn.graph].graph)
            chosen = [selected(drawn, n, each)[0] for n in NUMBERS for each in SELECTORS]
            untimed = [facts for facts in chosen if facts is not None and facts.timed is None]
            for facts in untimed:
                if facts.timed is None and prompt is not None:
                    facts.timed = vars_of(judge, graph, prompt, facts.text)
            if untimed:
                own.keep(drawn)
            step(drawn.graph)


def vars_of(judge: Any, graph: TaskGraph, prompt: Prompt, text: str) -> dict[str, Any]:
    """Return the fields of a judged answer."""
    found = judge.judge_answer(graph, prompt, text)
    return {name: getattr(found, name) for name in found.__dataclass_fields__}


def figures(folder: Path) -> Iterator[tuple[int, str, SystemSummary, float, float, float]]:
    """Yield number, selector and figures, then means over tasks: seconds of the check and of the
    judge, and the answers that it judged.
    """
    drawn = list(Study(folder).drawn.values())
    for selector in SELECTORS:
        for number in NUMBERS:
            records, costs = [], []
            for each in drawn:
                facts, *cost = selected(each, number, selector)
                costs.append(cost)
                judged = (facts.timed or facts.judged) if facts else None
                judged = judged or _nothing()
                names = ("verdict", "status", "smallest_t", "speedup", "speedup_low", "findings",
                         "error", "seconds", "flags")  # fmt: skip
                own = {name: judged[name] for name in names}
                text = facts.text if facts else ""
                records.append(AnswerRecord(selector, each.task, each.graph, text, number, **own))
            check_s, judge_s, asked = (sum(part) / len(costs) for part in zip(*costs, strict=True))
            yield number, selector, summary(selector, records, True), check_s, judge_s, asked


def _nothing() -> Mapping[str, Any]:
    return {
        **{"verdict": "wrong", "status": "compile_error", "seconds": 0.0, "smallest_t": None},
        **{"speedup": None, "speedup_low": None, "findings": (), "flags": (), "error": None},
    }


def table(folder: Path) -> Table:
    """Return the table of all numbers and selectors."""
    rows = []
    for number, selector, own, check_s, judge_s, num_judged in figures(folder):
        assert own.score is not None, "what is submitted was timed"
        score, low, high = own.score
        rows.append(
            (
                selector,
                str(number),
                f"{100 * own.correct:.1f}",
                f"{100 * own.correct_low:.1f} – {100 * own.correct_high:.1f}",
                f"{score:.3f}",
                f"{low:.3f} – {high:.3f}",
                f"{check_s:.2f}",
                f"{judge_s:.2f}",
                f"{num_judged:.1f}",
            )
        )
    heads = ("selector", "best of", "correct, %", "interval", "AS", "interval",
             "check, s", "judge, s", "judged")  # fmt: skip
    note = "The last three are means over tasks: seconds of both, and answers that the judge saw."
    return Table("Answers drawn", heads, rows, note)


def draw_figure(folder: Path, file: Path) -> None:
    """Draw correct answers and AS by the number of answers, a line for each selector."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    correct, score = figure.subplots(1, 2)
    for selector in SELECTORS:
        own = [row for row in figures(folder) if row[1] == selector]
        numbers = [row[0] for row in own]
        correct.plot(numbers, [100 * row[2].correct for row in own], marker="o", label=selector)
        score.plot(numbers, [row[2].score[0] for row in own if row[2].score], marker="o")
    for axes, title in ((correct, "correct, %"), (score, "AS")):
        axes.set_xscale("log", base=2)
        axes.set_xticks(NUMBERS, [str(number) for number in NUMBERS])
        axes.set_xlabel("answers drawn")
        axes.set_title(title)
        axes.grid(alpha=0.3)
    correct.legend()
    figure.savefig(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--llm", type=Path, default=Path("training/llm"))
    parser.add_argument("--suite", default="passbench-v1")
    parser.add_argument("--tasks", type=int)
    parser.add_argument("--table", action="store_true", help="judge nothing")
    parser.add_argument("--figure", type=Path)
    words = parser.parse_args()
    if not words.table:
        study(words.folder, words.llm, words.suite, words.tasks)
    print_table(Console(width=160), table(words.folder))
    if words.figure:
        draw_figure(words.folder, words.figure)
