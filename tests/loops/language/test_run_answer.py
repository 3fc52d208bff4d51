"""The run of an answer's loops by torch, held to eager torch, to the judge and to wrong answers."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from passnet.core.records.serialise import open_lines
from passnet.errors import InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.suite.suite import load_suite
from passnet_loops.evaluate import chosen_graphs, teacher_answers
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.prompt import loops_prompt, prompt_or_none
from passnet_loops.language.run_answer import (
    eager_run,
    is_right_where_run,
    not_shown_wrong,
    what_is_wrong,
)
from passnet_loops.language.run_nest import RunLimits
from passnet_loops.language.torch_calls import reduced, torch_call
from tests.graph.programs import program_of
from tests.loops.softmax import ANSWER, softmax_graph

BASELINES = Path(__file__).parents[3] / "baselines" / "training"


@pytest.mark.parametrize("limits", [RunLimits(max_rounds=479), RunLimits(max_bytes=479)])
def test_what_takes_too_much_memory_is_left_to_the_judge(limits: RunLimits) -> None:
    prompt = loops_prompt(softmax_graph(12, 40))
    wrong = ANSWER.replace("add a0", "sub a0")
    assert what_is_wrong(eager_run(prompt), wrong) is not None
    limited = replace(eager_run(prompt), limits=limits)
    assert what_is_wrong(limited, wrong) is None
    assert not is_right_where_run(limited, ANSWER)


def test_memory_that_only_seems_to_be_empty_is_refused_and_not_run() -> None:
    prompt = loops_prompt(softmax_graph(12, 40))
    long = "* N1 " * 20 + "N1"
    huge = ANSWER.replace("\nfor", f"\nbuf b9 float32 0 {long} {long} ;\nfor", 1)
    assert what_is_wrong(eager_run(prompt), huge) is None
    assert not_shown_wrong(prompt, [huge, ANSWER]) == [huge, ANSWER]
    with pytest.raises(InputError, match="memory of a size of|has more than"):
        expand_answer(prompt, huge)
    wide = " ".join(["134217728"] * 3)
    several = ANSWER.replace("\nfor", f"\nbuf b9 float32 0 {wide} ;\nfor", 1)
    with pytest.raises(InputError, match="has more than"):
        expand_answer(prompt, several)


VIEWS = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, w):
        y = x.transpose(0, 1)
        z = x + w
        v = z.transpose(0, 1)
        return (y, z, v)
"""
TRANSPOSED = "for i0 N1 i1 N0 : put {} [ i0 i1 ] {} [ i1 i0 ] end"


def test_what_shares_memory_in_eager_torch_is_not_put_anew() -> None:
    specs = (TensorSpec("x", (12, 40), "float32"), TensorSpec("w", (40,), "float32"))
    eager = eager_run(loops_prompt(Graph(parse_program(VIEWS, "views"), specs)))
    summed = "for i0 N0 i1 N1 : put t1 [ i0 i1 ] add a0 [ i0 i1 ] a1 [ i1 ] end"
    assert what_is_wrong(eager, f"range t1 t1 {summed}") is None, "t2 still views t1"
    view = TRANSPOSED.format("t0", "a0")
    assert "t0 shares memory" in (what_is_wrong(eager, f"range t0 t0 {view}") or "")
    both = f"range t1 t2 {summed} {TRANSPOSED.format('t2', 't1')}"
    assert "shares memory" in (what_is_wrong(eager, both) or "")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("add a0", "sub a0", "of t0 is not"),
        ("a1 [ r0 ]", "a1 [ 0 ]", "of t0 is not"),
        ("max s0 t0", "min s0 t0", None),  # the same but where it overflows, which the judge sees
        ("sum s1 exp sub t0 [ i0 r0 ] s0", "sum s1 exp sub t0 [ i0 r0 ] 0", "of t1 is not"),
        ("put t0 [ i0 r0 ] t0", "put t0 [ i0 r0 ] bfloat16 t0", "of t0 is not"),
        ("t0 [ i0 r0 ] t0", "t0 [ i0 + r0 1 ] t0", "beyond its axis of 40"),
        ("put t1 [ i0 r0 ]", "put t1 [ i0 0 ]", "of t1 is not"),
    ],
)
def test_an_answer_that_computes_something_else_is_shown_wrong(
    old: str, new: str, what: str | None
) -> None:
    eager = eager_run(loops_prompt(softmax_graph()))
    assert what_is_wrong(eager, ANSWER) is None
    assert ANSWER.count(old) >= 1
    found = what_is_wrong(eager, ANSWER.replace(old, new, 1))
    assert (found is None) if what is None else (what in (found or "")), found


def test_what_has_no_meaning_is_refused_and_what_is_too_large_is_left_to_the_judge() -> None:
    prompt = loops_prompt(softmax_graph())
    eager = eager_run(prompt)
    for text, match in (
        ("range t0 t1", "has no loops"),
        (ANSWER.replace("add a0", "add b9"), "b9"),
        (ANSWER.replace("put t0", "put a0"), "is an argument"),
        (ANSWER.replace("a1 [ r0 ]", "a1 [ i0 r0 ]"), "has 1 axes"),
    ):
        with pytest.raises(InputError, match=match):
            what_is_wrong(eager, text)
    huge = ANSWER.replace("for i0 N0 :", "for i0 * N0 999999 :").replace("add a0", "sub a0")
    assert what_is_wrong(eager, huge) is None
    wrong, nonsense = ANSWER.replace("add a0", "sub a0"), "range t0"
    assert not_shown_wrong(prompt, [wrong, ANSWER, nonsense]) == [ANSWER]
    assert not_shown_wrong(prompt, [wrong, nonsense]) == [wrong, nonsense], "none is left"


def test_a_range_that_cannot_be_cut_out_is_refused_and_ends_no_evaluation() -> None:
    lines = ("pair = torch.split(x, 2)", "z = pair[0]", "y = z + 1")
    program = program_of(*lines, params="x", returns="(y,)")
    prompt = loops_prompt(Graph(program, (TensorSpec("x", (4, 3), "float32"),)))
    uncut = "range t0 t0 for i0 2 : put t0 [ i0 ] 1 end"
    with pytest.raises(InputError, match="the range cannot be replaced: .* is no tensor"):
        what_is_wrong(eager_run(prompt), uncut)
    right = "range t2 t2 for i0 2 i1 3 : put t2 [ i0 i1 ] add t1 [ i0 i1 ] 1 end"
    assert not_shown_wrong(prompt, [uncut, right]) == [right]


def test_nothing_is_shown_wrong_of_what_the_teacher_says() -> None:
    graphs = chosen_graphs(load_suite("demo"), 1, None)
    prompts = [loops_prompt(graph.graph) for graph in graphs]
    answers = teacher_answers(prompts)
    assert len(prompts) == 14
    for prompt, [answer] in zip(prompts, answers, strict=True):
        assert what_is_wrong(eager_run(prompt), answer) is None, answer


def test_calls_compute_what_their_cpp_does() -> None:
    whole, half = torch.tensor([7, -7]), torch.tensor([0.5, 2.5])
    assert torch_call("mod", [whole, torch.tensor(3)]).tolist() == [1, -1], "as C++ takes a rest"
    assert torch_call("floordiv", [whole, torch.tensor(2)]).tolist() == [3, -4]
    assert torch_call("truncdiv", [whole, torch.tensor(2)]).tolist() == [3, -3]
    assert torch_call("truediv", [whole, torch.tensor(2)]).dtype is torch.float32
    assert torch_call("round", [half]).tolist() == [0.0, 2.0], "to the even one"
    assert torch_call("bfloat16", [torch.tensor(1.001)]).item() == 1.0
    assert torch_call("int32", [torch.tensor(-1.7)]).item() == -1
    assert torch_call("add", [torch.tensor(True), torch.tensor(True)]).item() == 2
    assert torch_call("lt", [whole, torch.tensor(0.5)]).tolist() == [False, True]
    kept = torch_call("masked", [torch.tensor([True, False]), half, torch.tensor(0)])
    assert kept.tolist() == [0.5, 0.0]
    mean, squares = reduced("welford", torch.tensor([[1.0, 3.0], [5.0, 5.0]]), 1)
    assert mean.tolist() == [2.0, 5.0] and squares.tolist() == [2.0, 0.0]
    assert reduced("argmax", torch.tensor([[1.0, 3.0], [3.0, 2.0]]), 2)[0].item() == 1
    assert reduced("sum", torch.tensor([[True, True]]), 1)[0].tolist() == [2]
    assert reduced("max", torch.tensor([[1.0, float("nan")]]), 1)[0].isnan().all()


@pytest.mark.slow
def test_it_agrees_with_the_judge() -> None:
    """On answers that llms and the teacher gave to PassBench v1, and the judge decided on."""
    folder = BASELINES / "passbench-v1-judged"
    if not folder.exists():
        pytest.skip("no records beside the package")
    graphs = {
        graph.name: graph for task in load_suite("passbench-v1").tasks for graph in task.graphs
    }
    lines = open_lines(folder / "answers.jsonl").read().decode().splitlines()
    counts: Counter[tuple[bool, bool]] = Counter()
    for record in map(json.loads, lines):
        graph = graphs.get(record["graph"])  # six tasks were exchanged since
        prompt = prompt_or_none(graph.graph) if graph and record["answer"] else None
        if prompt is None:
            continue
        try:
            expand_answer(prompt, record["answer"])
        except InputError:
            continue
        is_shown = what_is_wrong(eager_run(prompt), record["answer"]) is not None
        counts[is_shown, record["verdict"] == "correct"] += 1
    assert counts[True, True] == 0, "no correct answer is shown wrong"
    assert counts[False, True] > 100
    assert counts[True, False] > 9 * counts[False, False], "most wrong ones are"
