"""The search as author: it begins with what the compiler writes, and keeps what is best."""

import pytest

from passnet.agent.authors.lowered_ranges import GraphLowering
from passnet.agent.authors.search import OPTIONS, search_author
from passnet.agent.evaluator import Evaluator
from passnet.agent.session import Session
from passnet.suite.suite import SuiteGraph, Task
from tests.agent.test_compiler_author import settings
from tests.graph.programs import graph_of, program_of

pytestmark = [pytest.mark.xdist_group("agent"), pytest.mark.slow]

PROGRAM = program_of(
    "x = torch.nn.functional.silu(a)", "y = x * b", "z = torch.softmax(y, -1)", returns="(z,)"
)
TASK = Task(
    "softmax",
    tuple(
        SuiteGraph("softmax", f"softmax-{number}", graph_of(PROGRAM, (8, size)))
        for number, size in enumerate((33, 64))
    ),
)


def test_a_search_stays_within_its_budget_and_submits_its_best() -> None:
    with Evaluator(settings(), "direct") as bench:
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


def test_every_setting_that_is_tried_is_known_to_inductor() -> None:
    graph = GraphLowering(graph_of(PROGRAM, (8, 33)), "graph")
    for options in OPTIONS["cpu"]:
        assert graph.lowered((0, 3), options) is not None, options
