"""A session: actions and their answers, with the judge and its sandbox at work."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from passnet.agent.attempts.attempt import Evaluation, VariantResult, num_flips
from passnet.agent.attempts.observations import (
    evaluation_text,
    task_score,
    unchanged_text,
    variant_result,
)
from passnet.agent.attempts.session import Session
from passnet.agent.attempts.tools import Compare, Evaluate, parse_action
from passnet.errors import ActionError
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from tests.agent.brief import brief_settings
from tests.graph.programs import graph_of, program_of
from tests.judge.folders import GOOD, PATTERN, small_graph

pytestmark = pytest.mark.xdist_group("agent")

GRAPHS = tuple(
    replace(small_graph((32, 16 * number)), name=f"add_relu-{number}") for number in (1, 2)
)
TASK = Task("add_relu", GRAPHS)
LIST = "sorted_output_pass_rule_names.json"


@pytest.fixture(scope="module")
def bench() -> Iterator[JudgeDesk]:
    with JudgeDesk(brief_settings(), "direct") as evaluator:
        yield evaluator


def written(session: Session, body: str) -> None:
    session.call("create", '{"name": "' + LIST + '", "text": "[\\"Fuse\\"]"}')
    session.files = {**session.files, "Fuse.py": PATTERN + body}


def test_a_session_goes_from_a_miss_to_a_submission(bench: JudgeDesk) -> None:
    session = Session(TASK, bench)
    assert session.call("evaluate", "").startswith("error: ")
    written(session, GOOD)
    good = session.files["Fuse.py"]
    session.files["Fuse.py"] = good.replace("torch.relu(x + y)", "torch.relu(x - y)")
    missed = session.call("check_match", "").splitlines()
    assert missed[0] == "0 of 2 graphs have a match"
    assert "sub" in missed[1] and missed[2] == "graph 1: as graph 0"
    session.files["Fuse.py"] = good.replace("x + y, min=0", "x + y, min=0.5")
    wrong = session.call("evaluate", "").splitlines()
    assert "0 of 2 graphs correct, 2 wrong values" in wrong[0]
    assert "| output 0 is wrong at [" in wrong[2] and "times the tolerance at t = -5" in wrong[2]
    session.files["Fuse.py"] = good
    session.turn += 1
    right = session.call("evaluate", "").splitlines()
    assert right[0].startswith("evaluation 1: score ") and "2 of 2 graphs correct" in right[0]
    assert len(right) == 4 and right[2].startswith("0 | ok | ")
    scores = [evaluation.score for evaluation in session.evaluations]
    assert session.best is not None and scores[session.best] == max(scores)
    answer = session.call("submit", "")
    assert answer.startswith(f"submitted: the state of evaluation {session.best}")
    assert (
        session.call("view", "") == "error: the attempt has ended; nothing can be changed any more"
    )
    assert [evaluation.is_passing for evaluation in session.evaluations] == [False, True]
    assert [evaluation.turn for evaluation in session.evaluations] == [1, 2]


def test_a_shown_graph_has_the_strides_of_what_is_not_contiguous() -> None:
    lines = ("t = a.transpose(0, 1)", "y = t + 1", "c = y.contiguous()", "part = b[:, :2]")
    lines += ("e = c.nonzero()", "f = e.t()", "g = f.contiguous()", "last = g[:, 0]")
    program = program_of(*lines, returns="(c, part, last)")
    task = Task("strided", (TaskGraph("strided", "strided-0", graph_of(program, (2, 3))),))
    text = Session(task, JudgeDesk(brief_settings())).call("show_graph", '{"graph": 0}')
    ends = [line.partition("# ")[2] for line in text.splitlines() if "# " in line][1:]
    assert ends == [
        "float32[3, 2] strides [1, 3]",
        "float32[3, 2] strides [1, 3]",
        "float32[3, 2]",
        "float32[2, 2] strides [3, 1]",
        "int64[-1, 2]",
        "int64[2, -1]",
        "int64[2, -1]",
        "int64[2]",  # its strides depend on values
    ]
    assert "a: float32[2, 3]\n" in text


def test_what_is_written_wrongly_is_told_without_names_of_folders(bench: JudgeDesk) -> None:
    session = Session(TASK, bench)
    written(session, "def replacement(x, y):\n    return nothing(x)\n")
    text = session.call("evaluate", "")
    assert "NameError" in text and "runtime_error" in text
    session.files["Fuse.py"] += "\nimport no_such_module\n"
    text += session.call("check_match", "")
    session.files["Fuse.py"] = "def ("
    text += session.call("evaluate", "")
    assert "not Python" in text and "no_such_module" in text
    assert bench.root not in text and "/tmp" not in text and not re.search(r"/[\w.]+/[\w.]+/", text)


def test_code_that_is_only_marked_elsewhere_is_refused_here(bench: JudgeDesk) -> None:
    session = Session(TASK, bench)
    written(session, "import socket\n" + GOOD)
    text = session.call("evaluate", "")
    assert "2 cheat" in text and "network" in text and "Fuse.py:" in text
    assert session.evaluations[0].exploits == ("network",)


def test_graphs_are_judged_as_they_are(bench: JudgeDesk) -> None:
    trials = bench.unchanged(TASK)
    assert [(trial.graph, trial.status) for trial in trials] == [
        (graph.name, "ok") for graph in GRAPHS
    ]
    assert all(trial.smallest_t == -10 and trial.reference_ms for trial in trials)


def test_an_author_is_told_what_graphs_score_as_they_are() -> None:
    right = Trial("add_relu", "add_relu-1", "passes", "ok", smallest_t=-10, reference_ms=0.02)
    slow = replace(right, candidate_ms=0.04, speedup=0.5)
    trials = [slow, replace(right, graph="add_relu-2", candidate_ms=0.02, speedup=1.0)]
    text = unchanged_text(trials, TASK)
    assert "0 | 20.0 | 40.0 | 0.50 | 20.0 | 1.00" in text
    assert "1 | 20.0 | 20.0 | 1.00 | 0.0 | –" in text
    assert f"would score {task_score(trials):.3f}" in text
    assert unchanged_text([right, unstable(trials[1])], TASK) == ""


def test_an_evaluation_shows_the_time_of_a_call_and_what_of_it_the_folder_takes() -> None:
    mine = Trial("add_relu", "add_relu-1", "passes", "ok", smallest_t=-10, reference_ms=0.02)
    mine = replace(mine, candidate_ms=0.0402, speedup=0.5, speedup_low=0.4, speedup_high=0.6)
    lines = evaluation_text(
        state(replace(mine, direct_ms=0.0262), replace(mine, graph="add_relu-2")), 0, 0, TASK
    ).splitlines()
    assert "0.40–0.60 | 20.0 | 40.2 | 26.2 | –" in lines[2]
    assert "0.40–0.60 | 20.0 | 40.2 | – | –" in lines[3]


def unstable(trial: Trial) -> Trial:
    return replace(trial, status="unstable", speedup=None, speedup_low=None, speedup_high=None)


def test_a_correct_state_that_could_not_be_timed_is_kept_and_says_so() -> None:
    right = Trial("add_relu", "add_relu-1", "passes", "ok", smallest_t=-5, speedup=1.2)
    untimed, wrong = unstable(right), replace(right, status="runtime_error", smallest_t=None)
    busy = Evaluation(1, {}, (variant_result(untimed, "/root"),), task_score([untimed]), 1.0, 0.1)
    failed = Evaluation(1, {}, (variant_result(wrong, "/root"),), task_score([wrong]), 1.0, 0.1)
    fast = Evaluation(1, {}, (variant_result(right, "/root"),), task_score([right]), 1.0, 0.1)
    assert busy.score is None and busy.is_passing and failed.score is not None
    for guarded in (False, True):
        session = Session(TASK, JudgeDesk(brief_settings()), is_guarded=guarded)
        session.evaluations = [failed, busy, failed]
        assert session.best == 1
        assert session.call("submit", "") == (
            "submitted: the state of evaluation 1, which is correct but was not timed"
        )
        session.evaluations = [fast, busy]
        assert session.best == 0
    text = evaluation_text(busy, 1, 1, TASK)
    assert text.startswith(
        "evaluation 1: score not timed, the best so far; 1 of 1 graphs correct; too noisy to "
        "time graph 0: the score and the choice of the best leave it out"
    )


def test_a_state_that_was_timed_on_some_graphs_alone_has_won_if_all_are_correct() -> None:
    right = Trial("add_relu", "add_relu-1", "passes", "ok", smallest_t=-5, speedup=1.5)
    trials = [right, unstable(replace(right, graph="add_relu-2"))]
    variants = tuple(variant_result(trial, "/root") for trial in trials)
    session = Session(TASK, JudgeDesk(brief_settings()), is_guarded=True)
    session.evaluations = [Evaluation(1, {}, variants, task_score(trials), 1.0, 0.1)]
    assert session.best == 0 and task_score(trials) == task_score(trials[:1])
    off = replace(trials[1], smallest_t=1)
    variants = (variants[0], variant_result(off, "/root"))
    session.evaluations = [Evaluation(1, {}, variants, task_score([right, off]), 1.0, 0.1)]
    assert session.best is None


def state(*trials: Trial) -> Evaluation:
    variants = tuple(variant_result(trial, "/root") for trial in trials)
    return Evaluation(1, {}, variants, task_score(trials), 1.0, 0.1)


@pytest.mark.parametrize(
    ("first", "second", "best"),
    [
        ((1.5, 1.1), (1.4, None), 0),  # without its slow graph the second has the higher mean
        ((1.5, 1.1), (1.6, None), 1),
        ((3.0, 1.1), (None, 1.2), 1),  # without its fast graph it has the lower mean
        ((3.0, 1.1), (None, 1.0), 0),
        ((1.4, None), (1.5, 1.1), 1),
        ((None, 1.2), (1.5, None), 0),
        ((None, 1.2), (1.5, 1.1), 0),
    ],
)
def test_a_graph_that_was_not_timed_decides_nothing_about_the_best_state(
    first: tuple[float | None, ...], second: tuple[float | None, ...], best: int
) -> None:
    def trials(speedups: tuple[float | None, ...]) -> list[Trial]:
        names = zip(("add_relu-1", "add_relu-2"), speedups, strict=True)
        made = [
            (Trial("t", name, "p", "ok", smallest_t=-5, speedup=s or 1), s) for name, s in names
        ]
        return [trial if speedup else unstable(trial) for trial, speedup in made]

    session = Session(TASK, JudgeDesk(brief_settings()))
    session.evaluations = [state(*trials(first)), state(*trials(second))]
    assert session.best == best
    last = trials((2.0, None))
    session.evaluations.append(state(last[0], replace(last[1], smallest_t=None)))
    assert session.best == best  # what is wrong does not win by being untimed
    lines = evaluation_text(session.evaluations[2], 2, best, TASK).splitlines()
    assert "; too noisy to time graph 1: the score" in lines[0]
    assert lines[3].startswith("1 | wrong values, unstable | ")


def test_what_was_measured_before_counts_where_the_best_state_was_not_timed() -> None:
    right = Trial("add_relu", "add_relu-1", "passes", "ok", smallest_t=-5, speedup=1.1)
    other = replace(right, graph="add_relu-2", speedup=1.1)
    session = Session(TASK, JudgeDesk(brief_settings()))
    session.evaluations = [state(right, other)]
    session.evaluations += [state(replace(right, speedup=1.4), unstable(other))]
    assert session.best == 1
    session.evaluations += [state(replace(right, speedup=1.3), replace(other, speedup=2.0))]
    assert session.best == 2


def test_a_guarded_session_submits_nothing_where_nothing_won(bench: JudgeDesk) -> None:
    slow = GOOD.replace(
        "    return", "    for _ in range(200):\n        torch.clamp(x + y, min=0)\n    return"
    )
    for guarded, best in ((True, None), (False, 0)):
        session = Session(TASK, bench, is_guarded=guarded)
        written(session, slow)
        session.call("evaluate", "")
        assert session.best == best
    assert Session(TASK, bench, is_guarded=True).call("submit", "").startswith("submitted: nothing")


def test_what_is_only_compared_has_no_time_and_is_not_submitted(bench: JudgeDesk) -> None:
    session = Session(TASK, bench)
    with pytest.raises(ActionError, match="no tool 'compare'"):  # it is for programs
        parse_action("compare", "")
    written(session, GOOD)
    session.tool_times.clear()
    assert "score not timed" in session.act(Compare()) and session.best is None
    [evaluation] = session.evaluations
    assert evaluation.is_passing and evaluation.score is None
    assert [variant.speedup for variant in evaluation.variants] == [None] * len(TASK.graphs)
    session.act(Evaluate())
    assert session.best == 1 and session.evaluations[1].score is not None
    assert [each.tool for each in session.tool_times] == ["compare", "evaluate"]


def test_held_out_shapes_are_judged_and_not_told(bench: JudgeDesk) -> None:
    unseen = replace(small_graph((7, 48)), name="secret-7x48")
    session = Session(TASK, bench, unseen=[unseen])
    body = """
def replacement(x, y):
    return torch.clamp(x + y, min=0) if x.shape[0] == 32 else torch.zeros_like(x)
"""
    written(session, body)
    text = session.call("evaluate", "")
    assert "2 cheat" in text and "wrong on other shapes of this task" in text
    assert "secret" not in text and "48" not in text and "held-out" not in text


def test_a_finding_of_the_run_is_named_and_not_explained() -> None:
    finding = Finding("reject", "late_write", "at address 7ffe, 3.1 us after the call")
    trial = Trial(
        "add_relu", "add_relu-1", "passes", "cheat", error="late_write: at", findings=(finding,)
    )
    assert variant_result(trial, "/root").error == "rejected: late_write"


def test_the_same_problem_is_told_once() -> None:
    problem = "a long explanation of what went wrong in this graph"
    variants = tuple(
        VariantResult(graph.name, "runtime_error", None, None, None, None, problem, {}, ())
        for graph in GRAPHS
    )
    text = evaluation_text(Evaluation(1, {}, variants, 0.1, 1.0, 0.1), 0, 0, TASK)
    assert text.count(problem) == 1 and "as graph 0" in text


def test_flips_are_counted() -> None:
    def state(is_ok: bool) -> Evaluation:
        t = -5 if is_ok else 1
        return Evaluation(
            1, {}, (VariantResult("g", "ok", t, 1.0, 1.0, 1.0, None, {}, ()),), 1.0, 1.0, 0.1
        )

    assert num_flips(tuple(map(state, (False, True, False, False, True, True, False)))) == 1
    assert num_flips(tuple(map(state, (True, False, True, False, True)))) == 2
