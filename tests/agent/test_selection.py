"""Each filter leaves out its own cases, and no evaluation task is ever learned from."""

from dataclasses import replace

import pytest

from passnet.agent.attempts.attempt import Message, ToolCall
from passnet.agent.trajectories.selection import (
    Filters,
    Selection,
    TrainingForm,
    find_tasks,
    select,
)
from passnet.data.dataset.splits import SuiteKeys
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from tests.agent.attempts import ATTEMPT, SUITE, attempt, chat, different, evaluation, folder

NOTHING = SuiteKeys({}, {}, {})
GOOD = different(1)
"""One that stays beside `ATTEMPT`."""


def chosen(
    *attempts, form: TrainingForm = "chat", evaluation: SuiteKeys = NOTHING, **filters
) -> Selection:
    return select(attempts, [SUITE], evaluation, Filters(**filters), form)


def suites_of(suite: Suite) -> SuiteKeys:
    """Return the result of `read_suites` for a suite."""
    graphs = [graph for task in suite.tasks for graph in task.graphs]
    return SuiteKeys(
        {suite.name: suite.content_hash},
        {task.ops: suite.name for task in suite.tasks},
        {fingerprints(graph.graph).structure: suite.name for graph in graphs},
    )


CHEAT = Trial("relu", "relu-0", "p", "cheat", findings=(Finding("reject", "static_buffer", ""),))
BROKEN = (
    *chat("create"),
    Message("assistant", "", (ToolCall("c", "create", '{"name": '),)),
    Message("tool", "error: not JSON", tool_call_id="c"),
)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (different(2, best=None, score=None, final_score=None), "nothing submitted"),
        (different(2, ending="turns"), "ended before it submitted"),
        (different(2, final_score=None), "not measured anew"),
        (different(2, final_score=0.99), "score too low"),
        (different(2, judged=(CHEAT,)), "exploit"),
        (
            different(2, evaluations=(evaluation(1, None, findings=("zeros",)),) * 2, best=1),
            "exploit",
        ),
        (different(2, messages=()), "no chat"),
        (different(2, messages=BROKEN), "call without JSON"),
        (attempt(number=2, messages=chat("evaluate"), final_score=1.3), "same code"),
        (replace(different(2), messages=ATTEMPT.messages), "same messages"),
    ],
)
def test_a_filter_drops_what_it_is_for_and_says_so(bad, reason: str) -> None:
    selection = chosen(ATTEMPT, bad, GOOD)
    assert selection.info.dropped == {reason: 1}
    assert [example.attempt for example in selection.examples] == [ATTEMPT, GOOD]
    assert selection.info.num_read == 3


def test_bounds_can_be_moved() -> None:
    low, late = different(2, final_score=0.5), different(3, ending="turns")
    assert chosen(low, late, min_score=0.5, only_submitted=False).info.dropped == {}


def test_pairs_need_no_chat() -> None:
    silent = different(2, author="compiler", llm=None, messages=())
    assert chosen(silent, form="pairs").info.dropped == {}


def test_of_the_same_code_the_best_stays_then_the_shortest() -> None:
    worse = attempt(number=1, messages=chat("evaluate"), final_score=1.2)
    longer = attempt(number=2, messages=chat("view", "evaluate"), num_turns=9)
    for order in ((worse, longer, ATTEMPT), (ATTEMPT, longer, worse)):
        selection = chosen(*order)
        assert [example.attempt for example in selection.examples] == [ATTEMPT]
        assert selection.info.dropped == {"same code": 2}


def test_layout_comments_and_docstrings_do_not_make_code_another() -> None:
    code = 'def replacement(x, y):\n    """Add."""\n\n    return (x  +  y)  # fast\n'
    same = attempt(
        number=1, messages=chat("evaluate"), evaluations=(evaluation(2, 1.5, **folder(code)),)
    )
    assert chosen(ATTEMPT, same).info.dropped == {"same code": 1}


def test_the_same_code_for_another_task_stays() -> None:
    same_code = attempt(task="tanh", messages=chat("evaluate"))
    assert len(chosen(ATTEMPT, same_code).examples) == 2


def test_ids_of_calls_do_not_make_a_chat_another() -> None:
    renamed = tuple(
        replace(
            message,
            tool_calls=tuple(replace(call, id=f"x{call.id}") for call in message.tool_calls),
            tool_call_id=message.tool_call_id and f"x{message.tool_call_id}",
        )
        for message in ATTEMPT.messages
    )
    assert chosen(ATTEMPT, different(1, messages=renamed)).info.dropped == {"same messages": 1}


def test_the_order_is_that_of_the_attempts_themselves() -> None:
    attempts = [
        different(
            number,
            task=task,
            messages=chat("evaluate", note=f"{task} {number}"),
            final_score=1.0 + number,
        )
        for number in range(1, 3)
        for task in ("tanh", "relu")
    ]
    forwards, backwards = chosen(*attempts), chosen(*reversed(attempts))
    assert forwards == backwards
    assert [(example.attempt.task, example.attempt.number) for example in forwards.examples] == [
        ("relu", 1), ("relu", 2), ("tanh", 1), ("tanh", 2)
    ]  # fmt: skip


def test_a_task_of_evaluation_never_appears_whatever_it_is_called_there() -> None:
    graphs = [replace(graph, task="renamed", name=f"other-{number}")
              for number, graph in enumerate(SUITE.tasks[0].graphs[:1])]  # fmt: skip
    apart = suites_of(make_suite("eval", graphs))
    tanh = attempt(task="tanh")
    selection = chosen(ATTEMPT, GOOD, tanh, evaluation=apart)
    assert [example.attempt for example in selection.examples] == [tanh]
    assert selection.info.dropped == {"task of evaluation": 2}
    assert selection.info.evaluation == apart.hashes


@pytest.mark.parametrize("keys", ["sequences", "structures"])
def test_the_op_sequence_or_the_structure_alone_is_enough(keys: str) -> None:
    apart = suites_of(make_suite("eval", SUITE.tasks[0].graphs))
    half = replace(NOTHING, **{keys: getattr(apart, keys)})
    assert chosen(ATTEMPT, attempt(task="tanh"), evaluation=half).info.dropped == {
        "task of evaluation": 1
    }


def test_a_task_of_evaluation_can_be_named() -> None:
    selection = chosen(ATTEMPT, attempt(task="tanh"), eval_tasks=("relu",))
    assert selection.info.dropped == {"task of evaluation": 1}


def test_nothing_left_is_refused_with_the_reasons() -> None:
    with pytest.raises(InputError, match="none of 2 attempts is left.*2 task of evaluation"):
        chosen(ATTEMPT, GOOD, evaluation=suites_of(SUITE))


def test_an_attempt_at_a_task_that_nobody_knows_is_refused() -> None:
    unknown = attempt(suite_hash="0" * 64)
    with pytest.raises(InputError, match="task relu: was tried on suite train 000000000000, which"):
        chosen(ATTEMPT, unknown)
    with pytest.raises(InputError, match="given are|give that suite too"):
        chosen(attempt(task="absent"))


def test_a_run_on_some_tasks_of_a_suite_is_recognised() -> None:
    part = make_suite("train", SUITE.tasks[1].graphs)
    tried = attempt(task="tanh", suite_hash=part.content_hash)
    assert find_tasks([tried], [SUITE]) == {(part.content_hash, "tanh"): SUITE.tasks[1]}
