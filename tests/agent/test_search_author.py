"""The search as author: it begins with the compiler's passes, and keeps the best."""

import random
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt
from passnet.agent.attempts.session import Session
from passnet.agent.authors.compiler import CompilePlan, TaskCompiler
from passnet.agent.authors.search import OPTIONS, _Search, search_author
from passnet.agent.settings import SEARCH_TURNS
from passnet.cli.terminal.fields import turns_of
from passnet.core.records.serialise import read_lines
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.task import Task, TaskGraph
from passnet.passes.codegen.lowered_ranges import GraphLowering, Span
from tests.agent.brief import brief_settings
from tests.bench.runs import passnet, write_small_suite
from tests.graph.programs import graph_of, program_of

pytestmark = [pytest.mark.xdist_group("agent"), pytest.mark.slow]

PROGRAM = program_of(
    "x = torch.nn.functional.silu(a)", "y = x * b", "z = torch.softmax(y, -1)", returns="(z,)"
)
TASK = Task(
    "softmax",
    tuple(
        TaskGraph("softmax", f"softmax-{number}", graph_of(PROGRAM, (8, size)))
        for number, size in enumerate((33, 64))
    ),
)


def test_a_search_stays_within_its_budget_and_submits_its_best() -> None:
    with JudgeDesk(brief_settings(0.05, rules="strict"), "direct") as bench:
        session = Session(TASK, bench)
        search_author(session, seed=1, budget=4)
    assert session.is_submitted and len(session.evaluations) <= 4
    assert session.evaluations[0].is_passing
    scores = [
        evaluation.score for evaluation in session.evaluations if evaluation.score is not None
    ]
    assert session.best is not None and session.evaluations[session.best].score == max(scores)
    folders = [tuple(sorted(evaluation.files.items())) for evaluation in session.evaluations[:-1]]
    assert len(set(folders)) == len(folders), "what was evaluated is not evaluated again"
    assert [evaluation.turn for evaluation in session.evaluations] == list(
        range(1, len(scores) + 1)
    )


def test_a_run_of_the_search_takes_the_turns_that_it_is_given(tmp_path: Path) -> None:
    suite, out = write_small_suite(tmp_path / "small.parquet", 1), tmp_path / "out"
    words = ["agent", "run", "--suite", suite, "--task", "add_relu", "--author", "search", "--out",
             out, "--turns", 4, "--seconds", 0.01, "--self-tolerance", 1e9]  # fmt: skip
    assert passnet(*words).returncode == 0
    (attempt,) = read_lines(out / ATTEMPTS_FILE, Attempt)
    assert 1 < len(attempt.evaluations) <= 4


def test_turns_that_are_not_given_are_those_of_the_author() -> None:
    assert turns_of(None, "search") == SEARCH_TURNS
    assert turns_of(None, "llm") == 50


class SpanTimes:
    """A compiler whose graphs all have the speedup that is given for their spans."""

    device, num_threads, graphs = "cpu", 1, TASK.graphs

    def __init__(self, speedups: dict[tuple[Span, ...], float]) -> None:
        self.speedups = speedups
        self.plans = [CompilePlan(spans=((0, 3),)) for _ in self.graphs]
        self.evaluated: list[tuple[Span, ...]] = []

    def sources(self, number: int, plan: CompilePlan) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(lowered=SimpleNamespace(span=span), text="")
            for span in plan.spans or ()
        ]

    def evaluate(self, plans: list[CompilePlan]) -> bool:
        self.evaluated.append(plans[0].spans or ())
        return True

    def results(self) -> list[SimpleNamespace]:
        speedup = self.speedups[self.evaluated[-1]]
        return [SimpleNamespace(is_correct=True, speedup=speedup) for _ in self.graphs]


@pytest.mark.parametrize(
    ("speedups", "kept", "num_tried"),
    [
        ({((0, 3),): 0.2, ((0, 2),): 1.5}, ((0, 2),), 1),
        ({((0, 3),): 0.2, ((0, 2),): 0.1, ((1, 3),): 0.9}, ((1, 3),), 2),
        ({((0, 3),): 0.2, ((0, 2),): 0.4, ((1, 2),): 0.3}, ((0, 2),), 2),
        ({((0, 3),): 1.1}, ((0, 3),), 0),
    ],
    ids=["last", "first", "both", "faster"],
)
def test_graphs_that_are_slower_leave_an_op_to_torch(
    speedups: dict[tuple[Span, ...], float], kept: tuple[Span, ...], num_tried: int
) -> None:
    compiler = SpanTimes(speedups)
    search = _Search(cast("TaskCompiler", compiler), random.Random(0))
    compiler.evaluate(compiler.plans)
    search._record_speedups(compiler.plans)
    for move in islice(search.moves(), 2):
        search.try_move(move)
    assert [plan.spans for plan in compiler.plans] == [kept, kept]
    assert len(compiler.evaluated) == 1 + num_tried


def test_every_setting_that_is_tried_is_known_to_inductor() -> None:
    graph = GraphLowering(graph_of(PROGRAM, (8, 33)), "graph")
    for options in OPTIONS["cpu"]:
        assert graph.lowered((0, 3), options) is not None, options
