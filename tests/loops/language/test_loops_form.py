import subprocess
from pathlib import Path

import pytest
import torch

from passnet.agent.graph_text import op_times_us
from passnet.errors import InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.suite.suite import load_suite
from passnet.passes import cpp
from passnet.passes.codegen.cpp_source import ENTRY
from passnet.passes.compilation import FLAGS, INCLUDE
from passnet_loops.data.examples import whole_or_ranges
from passnet_loops.data.own_answers import share_of_answer
from passnet_loops.language.answer_text import parse_answer, print_answer
from passnet_loops.language.expand import answer_sources, expand_answer
from passnet_loops.language.prompt import loops_prompt
from tests.loops.softmax import ANSWER, SOFTMAX, softmax_graph


def results(given: Graph, answer: str) -> tuple[torch.Tensor, torch.Tensor]:
    [source] = answer_sources(loops_prompt(given), answer)
    x, w = (torch.randn(spec.shape) for spec in given.tensors)
    y, z = torch.empty_like(x), torch.empty_like(x)
    cpp.kernel(source.text, ENTRY)(x, w, y, z)
    assert torch.equal(y, x + w)
    return z, torch.softmax(x + w, -1)


def test_an_answer_is_computed_as_it_says() -> None:
    actual, expected = results(softmax_graph(), ANSWER)
    torch.testing.assert_close(actual, expected)


def test_an_answer_in_symbols_holds_for_other_sizes() -> None:
    assert loops_prompt(softmax_graph(12, 40)).text == loops_prompt(softmax_graph(13, 50)).text
    actual, expected = results(softmax_graph(13, 50), ANSWER)
    torch.testing.assert_close(actual, expected)


def test_the_size_of_memory_is_counted_as_it_says() -> None:
    answer = ANSWER.replace("for i0", "buf b0 float32 % N1 N0 // N1 N0 ; for i0", 1)
    [source] = answer_sources(loops_prompt(softmax_graph(12, 40)), answer)
    assert "b0_memory(12)" in source.text, "4 times 3 numbers"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_loops_are_vectorised_in_each_dtype(dtype: str, tmp_path: Path) -> None:
    if dtype == "bfloat16" and not torch.cpu._is_avx512_supported():
        pytest.skip("g++ vectorises the rounding to bfloat16 with AVX-512 alone")
    shape = (64, 512)
    program = parse_program(SOFTMAX.replace("softmax(y, dim=-1)", "relu(y)"), "sum")
    specs = (TensorSpec("x", shape, dtype), TensorSpec("w", shape, dtype))
    cast = "" if dtype == "float32" else f"{dtype} "
    answer = (
        f"range t0 t1 for i0 N0 i1 N1 : t0 = {cast}add a0 [ i0 i1 ] a1 [ i0 i1 ]"
        f" put t0 [ i0 i1 ] t0 put t1 [ i0 i1 ] {cast}relu t0 end"
    )
    [source] = answer_sources(loops_prompt(Graph(program, specs)), answer)
    file = tmp_path / "loops.cpp"
    file.write_text(source.text)
    out = str(tmp_path / "loops.so")
    told = ("-fopt-info-vec-optimized", f"-I{INCLUDE}", str(file), "-o", out)
    compiled = subprocess.run(["g++", *FLAGS, *told], capture_output=True, text=True, check=True)
    assert "loops.cpp" in compiled.stderr and "loop vectorized" in compiled.stderr


def test_printing_and_parsing_an_answer_are_inverse() -> None:
    tree = parse_answer(ANSWER)
    assert parse_answer(print_answer(tree)) == tree
    assert print_answer(tree).split() == ANSWER.split()


RESIZE = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x):
        y = torch.nn.functional.interpolate(x, size=(9, 9), mode="bilinear")
        z = torch.relu(y)
        return (z,)
"""


def test_the_teacher_says_the_same_each_time() -> None:
    small = Graph(parse_program(RESIZE, "resize"), (TensorSpec("x", (1, 3, 5, 5), "float32"),))
    answers = {print_answer(whole_or_ranges(loops_prompt(small), "resize")) for _ in range(6)}
    assert len(answers) == 1
    assert "pick p1" in answers.pop(), "it reads where values say"


def test_what_the_teacher_says_can_be_parsed_and_expanded() -> None:
    prompt = loops_prompt(softmax_graph())
    answer = print_answer(whole_or_ranges(prompt, "norm"))
    assert answer.startswith("range t0 t1")
    assert print_answer(parse_answer(answer)) == answer
    assert "Fused0.py" in expand_answer(prompt, answer)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("range t0 t1", "range t0 t9", "is no op of the prompt"),
        ("a1 [ r0 ]", "a1 [ i0 r0 ]", "has 1 axes, and an index of 2 parts"),
        ("a1 [ r0 ]", "a1 [ r1 ]", "is no whole number or symbol"),
        ("sum s1", "sum", "is no name|is not known|not '='"),
        ("max s0 t0", "put a0 [ i0 r0 ] t0 max s0 t0", "nothing may be put into it"),
        ("put t0 [ i0 r0 ] t0", "", "nothing is put into it"),
        ("s0 s1", "s0 s7", "'s7' is not known where it is used"),
        ("for i0 N0 :", "for i0 N9 :", "'N9' is no whole number or symbol"),
        ("for i0 N0 :", "for i0 // N0 0 :", "divided by 0"),
        ("for i0 N0 :", "buf b0 float32 % N0 0 ; for i0 N0 :", "divided by 0"),
        ("for i0 N0 :", "buf b0 float32 + N0 -99 ; for i0 N0 :", "memory of a size of -87"),
        ("for i0 N0 :", f"buf b0 float32 {30 * 'N1 '}; for i0 N0 :", "buf b0: has more than"),
        ("end", "", "ends in the middle"),
    ],
)
def test_an_answer_without_meaning_is_refused_in_a_sentence(
    before: str, after: str, reason: str
) -> None:
    assert before in ANSWER
    with pytest.raises(InputError, match=reason):
        expand_answer(loops_prompt(softmax_graph()), ANSWER.replace(before, after))


COMPLEX = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x):
        y = torch.view_as_complex(x)
        return (y,)
"""


def test_an_answer_in_a_dtype_without_arithmetic_is_refused_in_a_sentence() -> None:
    given = Graph(parse_program(COMPLEX, "complex"), (TensorSpec("x", (12, 2), "float32"),))
    answer = "range t0 t0 for i0 N0 : put t0 [ i0 ] a0 [ i0 0 ] end"
    with pytest.raises(InputError, match="t0 is of complex64, in which .* does not compute"):
        expand_answer(loops_prompt(given), answer)


def test_the_expander_decides_nothing_about_what_is_fused() -> None:
    shorter = """
    range t0 t0
    for i0 N0 i1 N1 :
      put t0 [ i0 i1 ] add a0 [ i0 i1 ] a1 [ i1 ]
    end
    """
    [source] = answer_sources(loops_prompt(softmax_graph()), shorter)
    assert source.num_ops == 1


def test_an_answer_is_worth_more_the_more_of_the_graph_it_replaces() -> None:
    prompt = loops_prompt(softmax_graph())
    first = ANSWER.replace("range t0 t1", "range t0 t0")
    least_us = op_times_us(prompt.graph)
    assert share_of_answer(prompt, ANSWER, least_us) == 1
    assert 0 < share_of_answer(prompt, first, least_us) < 1


@pytest.mark.slow
def test_the_teacher_through_text_is_judged_correct_on_the_demo_tasks() -> None:
    from passnet_loops.data.row_judge import open_judge

    with open_judge() as judge:
        for task in load_suite("demo").tasks:
            given = task.graphs[0].graph
            prompt = loops_prompt(given)
            answer = print_answer(whole_or_ranges(prompt, task.name))
            judged = judge.judge_files(task.graphs[0], expand_answer(prompt, answer))
            assert judged.verdict == "correct", (task.name, judged)
