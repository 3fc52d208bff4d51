"""Products of float16 are computed in float32 where that is faster, and are right."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from passnet.agent.attempts.session import Session
from passnet.agent.authors.compiler import compiler_author
from passnet.data.mine.cut import inferred_specs
from passnet.graph.spec import Graph, TensorSpec
from passnet.judge.desk.desk import JudgeDesk
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.task import Task, TaskGraph
from passnet.passes.codegen.products import is_slow_product
from tests.graph.programs import program_of

pytestmark = pytest.mark.xdist_group("agent")

CONVOLUTION = "y = torch.conv2d(x, w, b, (2, 2), (1, 1), (1, 1), 1)"
SHAPES: dict[str, tuple[str, tuple[tuple[int, ...], ...]]] = {
    "convolution": (CONVOLUTION, ((1, 8, 24, 24), (16, 8, 3, 3), (16,))),
    "by depth": (
        "y = torch.conv2d(x, w, None, (1, 1), (1, 1), (1, 1), 32)",
        ((1, 32, 14, 14), (32, 1, 3, 3)),
    ),
    "in one dimension": ("y = torch.conv1d(x, w)", ((1, 16, 64), (16, 16, 7))),
    "linear": ("y = torch._C._nn.linear(x, w, b)", ((16, 64), (64, 64), (64,))),
    "matmul": ("y = x @ w", ((1, 64), (64, 512))),
    "of batches": ("y = torch.bmm(x, w)", ((4, 16, 32), (4, 32, 32))),
    "added": ("y = torch.addmm(b, x, w)", ((16, 32), (32, 64), (64,))),
}  # fmt: skip

FAST_AS_THEY_ARE = {
    "a convolution of few numbers": (CONVOLUTION, ((1, 4, 6, 6), (4, 4, 3, 3), (4,))),
    "a few rows": ("y = torch._C._nn.linear(x, w, b)", ((7, 256), (256, 256), (256,))),
    "attention": ("y = torch._C._nn.scaled_dot_product_attention(x, w, b)", ((1, 4, 32, 32),) * 3),
    "no product": ("y = torch.maximum(x, w)", ((512, 512), (512, 512))),
}


def graph(line: str, shapes: tuple[tuple[int, ...], ...], dtype: str = "float16") -> Graph:
    names = ("x", "w", "b")[: len(shapes)]
    tensors = tuple(
        TensorSpec(name, shape, dtype, mean=0.0, std=1.0)
        for name, shape in zip(names, shapes, strict=True)
    )
    return Graph(program_of(line, params=", ".join(names), returns="(y,)"), tensors)


def is_slow(product: Graph, has_float16: bool = False) -> bool:
    return is_slow_product(product.program.ops[0], inferred_specs(product), has_float16)


@pytest.fixture(scope="module")
def bench() -> Iterator[JudgeDesk]:
    judge = JudgeSettings(timing=None, rules="open")
    with JudgeDesk(RunSettings(judge, 1, find_sandbox("auto").name), "direct") as evaluator:
        yield evaluator


@pytest.mark.parametrize("name", SHAPES)
def test_a_product_of_float16_is_computed_in_float32(name: str, bench: JudgeDesk) -> None:
    given = graph(*SHAPES[name])
    assert is_slow(given)
    session = Session(Task("task", (TaskGraph("task", "graph", given),)), bench)
    compiler_author(session, has_float16=False)
    assert "in_0 = in_0.float()" in session.files["Float16Product0.py"]
    [result] = session.evaluations[-1].variants
    assert result.is_correct and result.matches == {"Float16Product0": 1}


@pytest.mark.parametrize("name", FAST_AS_THEY_ARE)
def test_what_is_faster_as_it_is_stays(name: str) -> None:
    assert not is_slow(graph(*FAST_AS_THEY_ARE[name]))


def test_other_dtypes_stay() -> None:
    for dtype in ("float32", "bfloat16"):
        assert not is_slow(graph(*SHAPES["convolution"], dtype))


def test_a_processor_that_computes_in_float16_is_left_to_do_so() -> None:
    assert not is_slow(graph(*SHAPES["convolution"]), has_float16=True)


def test_the_ops_around_a_product_have_kernels_and_the_strict_rules_leave_it(
    bench: JudgeDesk,
) -> None:
    line, shapes = SHAPES["convolution"]
    program = program_of(line, "s = y.sigmoid()", "z = s * y", params="x, w, b", returns="(z,)")
    given = Graph(program, graph(line, shapes).tensors)
    task = Task("task", (TaskGraph("task", "graph", given),))
    session = Session(task, bench)
    compiler_author(session, has_float16=False)
    [result] = session.evaluations[-1].variants
    assert result.is_correct and result.matches == {"Fused0": 1, "Float16Product0": 1}
    strict = replace(bench.settings, judge=replace(bench.settings.judge, rules="strict"))
    with JudgeDesk(strict, "direct") as other:
        session = Session(task, other)
        compiler_author(session, has_float16=False)
    assert "Fused0.py" in session.files and "Float16Product0.py" not in session.files
