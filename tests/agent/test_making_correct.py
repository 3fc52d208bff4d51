"""The compiler's trials until a task is right: only the first and the last state are timed."""

from collections.abc import Callable, Sequence

import pytest

from passnet.agent.attempts.attempt import VariantResult
from passnet.agent.attempts.session import Session
from passnet.agent.authors.compiler import CompilePlan, TaskCompiler, compile_plans
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.task import Task, TaskGraph
from tests.agent.brief import brief_settings
from tests.agent.generated import SILU
from tests.graph.programs import graph_of

GRAPH = TaskGraph("silu", "low", graph_of(SILU, (4,), "bfloat16"))
FIRST, SECOND, THIRD, FOURTH = compile_plans(GRAPH.graph)
PATTERNS = ["a", "b", "c", "d"]


class Judged(TaskCompiler):
    """A compiler whose results are made up: the smallest t of a plan, of the patterns that it has a
    pass for, and of whether it was timed.
    """

    def __init__(
        self, smallest_t: Callable[[CompilePlan, set[str], bool], int | None], is_busy: bool = False
    ) -> None:
        super().__init__(Session(Task("silu", (GRAPH,)), JudgeDesk(brief_settings(0.05))))
        self.smallest_t, self.is_busy = smallest_t, is_busy
        self.tried: list[tuple[CompilePlan, frozenset[str], bool]] = []

    def evaluate(self, plans: Sequence[CompilePlan], is_timed: bool = True) -> bool:
        self.tried.append((plans[0], self.dropped, is_timed))
        return True

    def results(self) -> list[VariantResult]:
        plan, dropped, is_timed = self.tried[-1]
        t = self.smallest_t(plan, {*PATTERNS} - dropped, is_timed)
        status = "unstable" if self.is_busy and is_timed else "ok"
        return [VariantResult("low", status, t, None, None, None, None, {}, ())]

    def _patterns(self, number: int) -> list[str]:
        return [pattern for pattern in PATTERNS if pattern not in self.dropped]

    @property
    def plans_tried(self) -> list[tuple[CompilePlan, bool]]:
        """What was evaluated while nothing was left out, and whether it was timed."""
        return [(plan, is_timed) for plan, dropped, is_timed in self.tried if not dropped]


def test_a_state_that_is_right_at_once_is_evaluated_once() -> None:
    compiler = Judged(lambda *_: -7)
    compiler.make_correct()
    assert compiler.tried == [(FIRST, frozenset(), True)]


def test_a_state_that_a_busy_machine_could_not_time_is_timed_again_and_not_for_ever() -> None:
    compiler = Judged(lambda *_: -7, is_busy=True)
    compiler.make_correct()
    assert compiler.tried == [(FIRST, frozenset(), True)] * 3


def test_plans_are_compared_until_one_is_right_and_that_is_timed() -> None:
    compiler = Judged(lambda plan, *_: -5 if plan == THIRD else -4)
    compiler.make_correct()
    assert compiler.plans == [THIRD]
    assert compiler.plans_tried == [
        (FIRST, True), (SECOND, False), (THIRD, False), (THIRD, True),
    ]  # fmt: skip


def test_where_no_plan_is_right_the_nearest_is_kept() -> None:
    reached = {FIRST: -2, SECOND: -4, THIRD: None, FOURTH: -1}
    compiler = Judged(lambda plan, *_: reached[plan])
    compiler.make_correct()
    assert compiler.plans == [SECOND] and not compiler.dropped
    assert compiler.plans_tried == [
        (FIRST, True), (SECOND, False), (THIRD, False), (FOURTH, False), (SECOND, False),
        (SECOND, True),
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", PATTERNS)
def test_a_pass_that_is_wrong_is_found_by_comparing(wrong: str) -> None:
    compiler = Judged(lambda plan, passes, _: 0 if wrong in passes else -6)
    compiler.make_correct()
    assert compiler.dropped == {wrong}
    *on_the_way, last = compiler.tried
    assert last == (compiler.plans[0], frozenset(wrong), True)
    assert [is_timed for *_, is_timed in on_the_way] == [True, *[False] * (len(on_the_way) - 1)]


def test_what_is_wrong_only_while_it_is_timed_gives_way_to_what_is_right_then_too() -> None:
    compiler = Judged(
        lambda plan, _, is_timed: -6 if plan == THIRD or (plan == SECOND and not is_timed) else -3
    )
    compiler.make_correct()
    assert compiler.plans == [THIRD]
    assert compiler.plans_tried == [
        (FIRST, True), (SECOND, False), (SECOND, True), (THIRD, True),
    ]  # fmt: skip


def test_a_pass_that_is_wrong_only_while_it_is_timed_is_left_out() -> None:
    compiler = Judged(
        lambda plan, passes, is_timed: 0 if "a" in passes or (is_timed and "c" in passes) else -6
    )
    compiler.make_correct()
    assert compiler.dropped == {"a", "c"}
    assert compiler.tried[-1] == (compiler.plans[0], frozenset("ac"), True)


def test_how_near_a_plan_is_counts_as_it_was_while_it_was_timed() -> None:
    reached = {FIRST: -4, SECOND: -1, THIRD: -3, FOURTH: -2}
    compiler = Judged(
        lambda plan, _, is_timed: -6 if plan == SECOND and not is_timed else reached[plan]
    )
    compiler.make_correct()
    assert compiler.plans == [FIRST]
