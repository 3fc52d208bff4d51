"""The trained LLM as an author, with a policy whose answers are written in advance."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from passnet.agent.attempts.session import Session
from passnet.agent.authors.programs import program_author
from passnet.errors import AuthorError, InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.task import Task, TaskGraph
from passnet_loops.author import trained_author
from passnet_loops.scripted_policy import ScriptedPolicy
from tests.agent.brief import brief_settings
from tests.graph.programs import program_of

pytestmark = pytest.mark.xdist_group("agent")

SCALED = program_of("x = a + b", "y = torch.tanh(x)", returns="(y,)")
RIGHT = "range t0 t1 for i0 N0 i1 N1 : put t1 [ i0 i1 ] tanh add a0 [ i0 i1 ] a1 [ i0 i1 ] end"
WRONG = RIGHT.replace("tanh", "sin")
NONSENSE = "range t0 t1 for i0 N0 : end"


def giving(*answers: str) -> ScriptedPolicy:
    return ScriptedPolicy(lambda prompt: answers)


@pytest.fixture(scope="module")
def bench() -> Iterator[JudgeDesk]:
    with JudgeDesk(brief_settings(0.05, rules="strict"), "direct") as evaluator:
        yield evaluator


def session(bench: JudgeDesk, *shapes: tuple[int, int]) -> Session:
    graphs = tuple(
        TaskGraph("scaled", f"scaled-{n}",
                   Graph(SCALED, tuple(TensorSpec(name, shape, "float32") for name in "ab")))
        for n, shape in enumerate(shapes)
    )  # fmt: skip
    return Session(Task("scaled", graphs), bench)


def test_what_is_shown_wrong_is_not_evaluated(bench: JudgeDesk) -> None:
    made = session(bench, (12, 40), (9, 70))
    trained_author(made, policy=giving(WRONG, NONSENSE, RIGHT))
    assert made.is_submitted and len(made.evaluations) == 1, "the wrong one was passed over"
    assert made.evaluations[0].is_passing, made.evaluations[0].variants
    assert all(variant.matches == {"Fused0": 1} for variant in made.evaluations[0].variants)


def test_where_all_are_shown_wrong_the_judge_says_it(bench: JudgeDesk) -> None:
    made = session(bench, (12, 40))
    trained_author(made, policy=giving(NONSENSE, WRONG))
    assert not made.evaluations[0].is_passing and made.evaluations[0].variants[0].matches


def test_no_answer_that_can_be_expanded_is_an_error_that_says_why(bench: JudgeDesk) -> None:
    with pytest.raises(AuthorError, match="nothing is put into it"):
        trained_author(session(bench, (12, 40)), policy=giving(NONSENSE))


def test_an_author_of_this_name_needs_a_folder_with_an_llm(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give trained:FOLDER"):
        program_author("trained", 1)
    pytest.importorskip("transformers", reason="needs passnet[train]")
    with pytest.raises(InputError, match="holds no llm"):
        program_author(f"trained:{tmp_path}", 1)
