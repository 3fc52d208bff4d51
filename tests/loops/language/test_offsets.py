"""Addresses are the sums that answers say, with fewer divisions; loops go on where memory does."""

from collections.abc import Mapping

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from passnet.errors import InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.passes import cpp
from passnet.passes.codegen.cpp_source import ENTRY
from passnet_loops.language.cpp.offsets import Atom, Offset, Part, offset_of
from passnet_loops.language.expand import answer_sources
from passnet_loops.language.language import Index, IndexCall
from passnet_loops.language.prompt import loops_prompt

NAMES = ("i0", "i1", "r0")
WORDS = st.sampled_from([*NAMES, "-3", "-1", "0", "1", "2", "7"])
DIVISORS = st.sampled_from(["1", "2", "5"])


def calls(parts: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
    return st.builds(IndexCall, st.sampled_from("+*"), parts, parts) | st.builds(
        IndexCall, st.sampled_from(["//", "%"]), parts, DIVISORS
    )


def number(word: str) -> int | None:
    return None if word in NAMES else int(word)


def said(index: Index, values: Mapping[str, int]) -> int:
    """What an index is by its words."""
    if isinstance(index, str):
        return values[index] if index in values else int(index)
    left, right = said(index.left, values), said(index.right, values)
    if index.name == "+":
        return left + right
    return left * right if index.name == "*" else divmod(left, right)[index.name == "%"]


def summed(offset: Offset, values: Mapping[str, int]) -> int:
    """What a sum is."""

    def of(atom: Atom) -> int:
        if not isinstance(atom, Part):
            return values[atom]
        left, right = summed(atom.left, values), summed(atom.right, values)
        return left * right if atom.name == "*" else divmod(left, right)[atom.name == "%"]

    return offset.constant + sum(times * of(atom) for atom, times in offset.terms.items())


@given(
    parts=st.lists(st.recursive(WORDS, calls, max_leaves=8), min_size=1, max_size=4),
    steps=st.lists(st.sampled_from([0, 1, 2, 5, 10]), min_size=4, max_size=4),
    values=st.tuples(*[st.integers(-20, 20)] * 3),
)
def test_a_sum_is_what_the_words_say(
    parts: list[Index], steps: list[int], values: tuple[int, int, int]
) -> None:
    at = dict(zip(NAMES, values, strict=True))
    offset = sum((offset_of(p, number) * step for p, step in zip(parts, steps, strict=False)),
                 Offset())  # fmt: skip
    assert summed(offset, at) == sum(
        said(part, at) * step for part, step in zip(parts, steps, strict=False)
    )


@given(size=st.integers(1, 9), step=st.integers(1, 9), plus=st.integers(-3, 3))
def test_what_is_taken_apart_for_two_axes_is_put_together(size: int, step: int, plus: int) -> None:
    whole = IndexCall("+", "i0", str(plus))
    quotient, rest = (IndexCall(name, whole, str(size)) for name in ("//", "%"))
    offset = offset_of(quotient, number) * (size * step) + offset_of(rest, number) * step
    assert offset == Offset(step * plus, {"i0": step})
    if size > 1:
        apart = offset_of(quotient, number) * (size * step + 1) + offset_of(rest, number) * step
        assert len(apart.terms) == 2


PROGRAM = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, w):
        y = x * w
        return (y,)
"""


def expanded(answer: str, *shapes: tuple[int, ...]) -> tuple[str, list[torch.Tensor]]:
    """The C++ of an answer, and the arguments and the result of a run of it."""
    specs = tuple(
        TensorSpec(name, shape, "float32") for name, shape in zip("xw", shapes, strict=True)
    )
    graph = Graph(parse_program(PROGRAM, "product"), specs)
    [source] = answer_sources(loops_prompt(graph), answer)
    inputs = [torch.randn(shape) for shape in shapes]
    result = torch.empty(torch.broadcast_shapes(*shapes))
    cpp.kernel(source.text, ENTRY)(*inputs, result)
    return source.text, [*inputs, result]


@pytest.mark.parametrize(
    ("answer", "shape", "num_loops"),
    [
        ("put t0 [ i0 i1 i2 ] mul a0 [ i0 i1 i2 ] a1 [ i0 i1 i2 ]", (5, 6, 7), 1),
        ("put t0 [ i0 i1 i2 ] mul a0 [ i0 i1 i2 ] a1 [ i0 0 0 ]", (5, 1, 1), 2),
        ("put t0 [ i0 i1 i2 ] mul a0 [ i0 i1 i2 ] a1 [ 0 0 i2 ]", (1, 1, 7), 3),
        ("put t0 [ i0 i1 i2 ] mul a0 [ i0 i1 i2 ] a1 [ 0 i1 0 ]", (1, 6, 1), 3),
        ("put t0 [ i0 i1 i2 ] add mul a0 [ i0 i1 i2 ] a1 [ 0 0 0 ] at [ + i1 * i1 -1 ]", (1, 1, 1),
         3),
    ],
)  # fmt: skip
def test_loops_go_on_where_all_memory_does(
    answer: str, shape: tuple[int, ...], num_loops: int
) -> None:
    text, (x, w, y) = expanded(
        f"range t0 t0 for i0 5 i1 6 i2 7 : {answer} end", (5, 6, 7), shape
    )  # fmt: skip
    assert text.count("for (int64_t") == num_loops
    assert torch.equal(y, x * w)


def test_inner_loops_of_the_same_names_go_on_each_for_itself() -> None:
    answer = """
    range t0 t0
    for i0 5 :
      over r0 6 r1 7 : put t0 [ i0 r0 r1 ] a0 [ i0 r0 r1 ] done
      over r0 6 : put t0 [ i0 r0 2 ] mul a0 [ i0 r0 2 ] a1 [ i0 r0 2 ] done
      over r0 6 r1 7 : put t0 [ i0 r0 r1 ] mul a0 [ i0 r0 r1 ] a1 [ i0 r0 r1 ] done
    end
    """
    text, (x, w, y) = expanded(answer, (5, 6, 7), (5, 6, 7))
    assert text.count("for (int64_t") == 4
    assert torch.equal(y, x * w)


EMBEDDING = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, w):
        y = torch.nn.functional.embedding(x, w)
        return (y,)
"""


def test_an_index_is_looked_up_once_for_a_row_unless_the_row_is_empty() -> None:
    def source(width: int):  # noqa: ANN202
        specs = (TensorSpec("x", (5,), "int64"), TensorSpec("w", (9, width), "float32"))
        graph = Graph(parse_program(EMBEDDING, "embedding"), specs)
        answer = f"""
        range t0 t0
        for i0 5 i1 {"N1" if width else 0} :
          pick p0 N0 a0 [ i0 ]
          put t0 [ i0 i1 ] a1 [ p0 i1 ]
        end
        """
        [made] = answer_sources(loops_prompt(graph), answer)
        return made.text

    text = source(40)
    assert text.index("picked(a0_at") < text.index("omp simd") < text.index("i1 = 0")
    x, w, y = torch.tensor([8, 0, -1, 3, 3]), torch.randn(9, 40), torch.empty(5, 40)
    cpp.kernel(text, ENTRY)(x, w, y)
    assert torch.equal(y, w[x])
    assert "omp simd" not in source(0)


def test_the_variable_of_a_merged_loop_means_nothing_after_it() -> None:
    answer = """
    range t0 t0
    for i0 5 :
      over r0 6 r1 7 : put t0 [ i0 r0 r1 ] mul a0 [ i0 r0 r1 ] a1 [ i0 r0 r1 ] done
      put t0 [ i0 r0 0 ] 1.0
    end
    """
    with pytest.raises(InputError, match="is no whole number or symbol"):
        expanded(answer, (5, 6, 7), (5, 6, 7))
