"""Graphs of nothing but calls of libraries: their passes make the same calls, and no others."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from passnet.agent.attempts.session import Session
from passnet.agent.authors.compiler import compiler_author
from passnet.agent.authors.search import search_author
from passnet.errors import AuthorError
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, Program, TensorSpec
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.task import Task, TaskGraph
from passnet.passes.backend import compile_graph
from passnet.passes.codegen.library_calls import library_form, library_passes
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.files import write_files
from passnet.passes.folder import LIST_FILE
from passnet.passes.load import loaded_passes
from tests.agent.brief import brief_settings
from tests.graph.programs import graph_of, program_of

pytestmark = pytest.mark.xdist_group("agent")

HEADS = program_of(
    "x = torch.nn.functional.linear(a, b, c)",
    "y = torch.nn.functional.dropout(x, 0.1, False, False)",
    "z = y.chunk(2, dim=-1)",
    "u = z[0]",
    "v = z[1]",
    "w = u.transpose(0, 1)",
    params="a, b, c",
    returns="(w, v)",
)
ATTENTION = program_of(
    "x = torch.nn.functional.multi_head_attention_forward(a, a, a, 16, 4, b, c, None, None, False,"
    " 0.0, d, e, training=False, need_weights=True)",
    "y = x[0]",
    "z = x[1]",
    params="a, b, c, d, e",
    returns="(y, z)",
)


def heads(size: int, dtype: str = "float32") -> Graph:
    shapes = {"a": (size, 3, 8), "b": (12, 8), "c": (12,)}
    return graph_with(HEADS, shapes, dtype)


def attention(size: int) -> Graph:
    shapes = {"a": (size, 2, 16), "b": (48, 16), "c": (48,), "d": (16, 16), "e": (16,)}
    return graph_with(ATTENTION, shapes)


def graph_with(
    program: Program, shapes: dict[str, tuple[int, ...]], dtype: str = "float32"
) -> Graph:
    return Graph(program, tuple(TensorSpec(name, shape, dtype) for name, shape in shapes.items()))


def whole(graph: Graph) -> Graph:
    lowering = GraphLowering(graph, "graph")
    assert lowering.is_library_only
    return lowering.whole()


@pytest.mark.parametrize(
    ("graphs", "num_lines"),
    [((heads(5), heads(7), heads(5, "bfloat16")), 5), ((attention(5), attention(6)), None)],
    ids=["heads", "attention"],
)
def test_the_same_calls_are_made_without_what_is_around_them(
    graphs: tuple[Graph, ...], num_lines: int | None, tmp_path: Path
) -> None:
    forms = [library_form(whole(graph), "graph") for graph in graphs]
    text = "\n".join(forms[0].lines)
    assert "dropout" not in text
    assert "multi_head" not in text
    assert num_lines is None or len(forms[0].lines) == num_lines
    write_files(library_passes(forms) | {LIST_FILE: '["Library0"]'}, tmp_path)
    for graph in graphs:
        inputs = [torch.randn(spec.shape).to(getattr(torch, spec.dtype)) for spec in graph.tensors]
        function, [report] = compile_graph(build(graph.program), inputs, loaded_passes(tmp_path))
        assert report.num_matches == 1
        for given, expected in zip(function(*inputs), build(graph.program)(*inputs), strict=True):
            assert torch.equal(given, expected)
            assert given.stride() == expected.stride()


def test_other_forms_than_those_that_were_judged_are_left_alone(tmp_path: Path) -> None:
    write_files(
        library_passes([library_form(whole(heads(5)), "graph")]) | {LIST_FILE: '["Library0"]'},
        tmp_path,
    )
    others = (torch.randn(6, 3, 8), torch.randn(3, 5, 8).transpose(0, 1))
    for value in others:
        inputs = [value, torch.randn(12, 8), torch.randn(12)]
        _, [report] = compile_graph(build(HEADS), inputs, loaded_passes(tmp_path))
        assert report.num_matches == 0


def test_a_graph_with_a_kernel_of_its_own_is_not_one_of_calls() -> None:
    program = program_of("x = torch.matmul(a, b)", "y = x * 2.0", returns="(y,)")
    assert not GraphLowering(graph_of(program, (4, 4)), "graph").is_library_only


@pytest.fixture(scope="module")
def bench() -> Iterator[JudgeDesk]:
    with JudgeDesk(brief_settings(0.05, rules="open"), "direct") as evaluator:
        yield evaluator


def test_the_compiler_writes_these_calls_where_the_rules_allow_them(bench: JudgeDesk) -> None:
    task = Task(
        "heads", (TaskGraph("heads", "small", heads(5)), TaskGraph("heads", "large", heads(7)))
    )
    session = Session(task, bench)
    compiler_author(session)
    assert {"Library0.py", LIST_FILE} == set(session.files)
    assert all(result.is_correct for result in session.evaluations[-1].variants)
    strict = replace(bench.settings, judge=replace(bench.settings.judge, rules="strict"))
    with JudgeDesk(strict, "direct") as other, pytest.raises(AuthorError, match="nothing to write"):
        compiler_author(Session(task, other))


def test_the_search_has_nothing_to_vary_in_calls_of_libraries(bench: JudgeDesk) -> None:
    session = Session(Task("heads", (TaskGraph("heads", "small", heads(5)),)), bench)
    search_author(session)
    assert session.is_submitted and len(session.evaluations) == 1
    assert {"Library0.py", LIST_FILE} == set(session.files)
