"""The compiler as author: what it writes keeps the rules, computes the same, and leaves out what
calls a library.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from passnet.agent.attempts.session import Session
from passnet.agent.authors.compiler import compiler_author
from passnet.errors import AuthorError
from passnet.graph.spec import Graph
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import STRICT
from passnet.judge.task import Task, TaskGraph
from passnet.passes.codegen.cpp_source import cpp_source
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.files import write_files
from passnet.passes.folder import inspect_folder
from tests.agent.brief import brief_settings
from tests.agent.generated import NORM, specs
from tests.graph.programs import graph_of, program_of

pytestmark = pytest.mark.xdist_group("agent")

LINEAR = program_of(
    "x = torch.relu(a)",
    "y = x * 2.0",
    "z = torch.matmul(y, b)",
    "u = torch.tanh(z)",
    "v = u + 1.0",
    returns="(v,)",
)
HALVES = program_of(
    "x = a * c", "y = torch.tanh(x)", "z = b * c", "w = torch.tanh(z)",
    params="a, b, c", returns="(y, w)",
)  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> Iterator[JudgeDesk]:
    with JudgeDesk(brief_settings(0.05, rules="strict"), "direct") as evaluator:
        yield evaluator


def folder_of(graph: Graph, options: tuple[tuple[str, object], ...] = ()) -> dict[str, str]:
    lowering = GraphLowering(graph, "graph")
    ranges = [lowering.lowered(span, options) for span in lowering.largest(options)]
    return pass_folder(
        [RangeSource(lowered, cpp_source(lowered.code)) for lowered in ranges if lowered]
    )


def test_a_folder_passes_the_strict_rules_and_goes_around_a_product(tmp_path: Path) -> None:
    files = folder_of(graph_of(LINEAR, (16, 16)))
    write_files(files, tmp_path)
    folder = inspect_folder(tmp_path)
    assert inspect_code(folder, STRICT) == []
    assert [file.name for file in folder.passes] == ["Fused0", "Fused1"]
    patterns = [files[f"Fused{number}.py"].split("def replacement_args")[0] for number in (0, 1)]
    assert not any("matmul" in text for text in patterns)
    assert "relu" in "".join(patterns) and "tanh" in "".join(patterns)


def test_halves_of_a_pattern_may_be_given_in_either_order() -> None:
    graph = Graph(HALVES, specs(a=((4, 8), "float32"), b=((2, 8), "float32"), c=((8,), "float32")))
    lowering = GraphLowering(graph, "graph")
    (span,) = lowering.largest(())
    lowered = lowering.lowered(span, ())
    assert lowered is not None
    for order in lowered.orders:
        shapes = [list(lowered.code.inputs.values())[number].shape for number in order.arguments]
        results = [lowered.code.outputs[number][1].shape for number in order.results]
        assert sorted(results) == sorted([(4, 8), (2, 8)]) and (8,) in shapes


@pytest.mark.slow
def test_one_folder_serves_all_graphs_of_a_task_and_is_correct(bench: JudgeDesk) -> None:
    forms = (((4, 16, 40), "float32"), ((3, 7, 40), "float32"), ((3, 7, 40), "bfloat16"))
    graphs = tuple(
        TaskGraph(
            "norm",
            f"norm-{number}",
            Graph(NORM, specs(a=(shape, dtype), b=(shape, dtype), c=((40,), dtype),
                              d=((40,), dtype))),
        )
        for number, (shape, dtype) in enumerate(forms)
    )  # fmt: skip
    session = Session(Task("norm", graphs), bench)
    compiler_author(session)
    assert session.is_submitted and session.best is not None
    best = session.evaluations[session.best]
    assert best.is_passing, best.variants
    assert all(variant.matches == {"Fused0": 1} for variant in best.variants)
    assert not any(variant.findings for variant in best.variants)


def test_a_pass_for_tensors_leaves_alone_what_has_a_number_in_the_place_of_one(
    bench: JudgeDesk,
) -> None:
    by_tensor = program_of("y = a * b", "z = y.exp()", params="a, b", returns="(z,)")
    by_number = program_of("y = a * 8.0", "z = y.exp()", params="a", returns="(z,)")
    given = {"a": ((4, 16), "float32"), "b": ((16,), "float32")}
    graphs = (
        TaskGraph("scale", "by_tensor", Graph(by_tensor, specs(**given))),
        TaskGraph("scale", "by_number", Graph(by_number, specs(a=given["a"]))),
    )
    session = Session(Task("scale", graphs), bench)
    compiler_author(session)
    best = session.evaluations[-1]
    assert best.is_passing, best.variants
    assert [sum(variant.matches.values()) for variant in best.variants] == [1, 1]


@pytest.mark.slow
def test_a_pass_that_copies_leaves_alone_what_eager_torch_does_not_copy(bench: JudgeDesk) -> None:
    program = program_of("x = torch.matmul(a, b)", "y = x.view(4, 16, 2, 8)",
                         "z = y.transpose(1, 2)", "u = c.reshape(8, 16, 8)",
                         "v = z.reshape(8, 16, 8)", params="a, b, c", returns="(u, v)")  # fmt: skip
    given = specs(a=((4, 16, 16), "float32"), b=((16, 16), "float32"), c=((4, 2, 16, 8), "float32"))
    session = Session(Task("heads", (TaskGraph("heads", "heads", Graph(program, given)),)), bench)
    compiler_author(session)
    (result,) = session.evaluations[-1].variants
    assert result.is_correct and result.matches == {"Fused0": 1}, result.error


def test_halves_that_are_found_exchanged_are_computed_right(bench: JudgeDesk) -> None:
    graphs = tuple(
        TaskGraph(
            "halves",
            f"halves-{number}",
            Graph(HALVES, specs(a=((4, size), "float32"), b=((2, size), "float32"),
                                c=((size,), "float32"))),
        )
        for number, size in enumerate((8, 24))
    )  # fmt: skip
    session = Session(Task("halves", graphs), bench)
    compiler_author(session)
    assert session.best is not None and session.evaluations[session.best].is_passing


@pytest.mark.slow
def test_a_guarded_compiler_submits_nothing_where_nothing_wins(bench: JudgeDesk) -> None:
    program = program_of("y = a + b", returns="(y,)")  # eager torch is as fast as can be
    graph = TaskGraph("add", "add-0", graph_of(program, (2, 2)))
    session = Session(Task("add", (graph,)), bench, is_guarded=True)
    compiler_author(session)
    assert session.is_submitted and session.evaluations[-1].is_passing
    score = session.evaluations[-1].score
    assert score is not None and (session.best is None) == (score <= 1)


@pytest.mark.parametrize("size", [8, 128])  # strict rules let no op of torch compute it
def test_a_task_without_a_kernel_is_an_error_that_says_so(bench: JudgeDesk, size: int) -> None:
    program = program_of("y = torch.matmul(a, b)", returns="(y,)")
    session = Session(
        Task("product", (TaskGraph("product", "p", graph_of(program, (size, size))),)), bench
    )
    with pytest.raises(AuthorError, match="nothing to write"):
        compiler_author(session)
