"""What a pass demands of its tensors: words, sizes with names, a function; and what is refused."""

import logging
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.errors import PassError
from passnet.passes import backend
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.match.guards import ValuesNeededError, make_guards, note_inputs
from passnet.passes.match.pattern import Pass, make_pass
from tests.passes.graphs import graph_of, write_folder

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it

TUTORIAL = (Path(__file__).parents[2] / "docs" / "passes.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    backend._warn_once.cache_clear()
    yield
    torch._dynamo.reset()


def refused(guards: Any, guard: Any = None, **values: Any) -> str | None:
    """The parameter that guards refuse, None where they cover all."""
    made = make_guards("Fuse.guards", guards, guard, list(values))
    assert made is not None
    why = made.refusal(values)
    return why and why.name


FLOAT, HALF, WHOLE = torch.zeros(2, 4), torch.zeros(2, 4).half(), torch.zeros(2, 4).long()
CASES: list[tuple[Any, dict[str, Any], str | None]] = [
    ("x: float32", {"x": FLOAT}, None),
    ("x: float32", {"x": HALF}, "x"),
    ("x: float32 or float16", {"x": HALF}, None),
    ("x: float32, bfloat16 or float16, contiguous", {"x": HALF}, None),
    ("x: contiguous, float32, bfloat16 or float16", {"x": FLOAT}, None),
    ("x: float32, bfloat16 or float16", {"x": WHOLE}, "x"),
    ("x: floating, float32 or bfloat16", {"x": HALF}, "x"),
    ("x: floating", {"x": WHOLE}, "x"),
    ("x: integer", {"x": WHOLE}, None),
    ("x: integer", {"x": FLOAT > 0}, "x"),
    ("x, y: same dtype", {"x": FLOAT, "y": HALF}, "y"),
    ("x, y: same shape", {"x": FLOAT, "y": FLOAT[:1]}, "y"),
    ("x, y: same shape", {"x": FLOAT, "y": FLOAT[0]}, "y"),
    ("x, y: same device", {"x": FLOAT, "y": FLOAT.to("meta")}, "y"),
    ("x: cpu", {"x": FLOAT.to("meta")}, "x"),
    ("x: contiguous", {"x": FLOAT.t()}, "x"),
    ("x: not empty", {"x": FLOAT[:0]}, "x"),
    ("x: rank 1 or 3", {"x": FLOAT}, "x"),
    ("x: rank 1 or 2", {"x": FLOAT}, None),
    ("x: shape (2, 4)", {"x": FLOAT}, None),
    ("x: shape (n, n)", {"x": FLOAT}, "x"),
    ("x: shape (*, *)", {"x": FLOAT}, None),
    ("x: shape (n)", {"x": FLOAT}, "x"),
    (("x: shape (..., n)", "w: shape (n)"), {"x": FLOAT, "w": FLOAT[0]}, None),
    (("x: shape (..., n)", "w: shape (n)"), {"x": FLOAT, "w": FLOAT[:, 0]}, "w"),
    (("x: shape (..., n)", "y: shape (..., 1)"), {"x": FLOAT, "y": FLOAT[:, :1]}, None),
    (("x: shape (..., n)", "y: shape (..., 1)"), {"x": FLOAT, "y": FLOAT[:1, :1]}, "y"),
    ("x, m: shape (b, n) or (1, n)", {"x": FLOAT, "m": FLOAT[:1]}, None),
    ("x, m: shape (b, n) or (1, n)", {"x": FLOAT[:1], "m": FLOAT[:, :2]}, "m"),
    (("x: shape (b, n)", "n: multiple of 4"), {"x": FLOAT}, None),
    (("x: shape (b, n)", "n: multiple of 3"), {"x": FLOAT}, "n"),
    ("x: shape (b, width)", {"x": FLOAT, "width": 4}, None),
    ("x: shape (b, width)", {"x": FLOAT, "width": 5}, "x"),
    ("x: float32", {"x": None}, "x"),
    ("x: float32", {"x": 2.0}, "x"),
]


@pytest.mark.parametrize(("guards", "values", "name"), CASES)
def test_words_cover_what_they_say(guards: Any, values: dict[str, Any], name: str | None) -> None:
    assert refused(guards, **values) == name


def test_a_function_says_what_words_do_not() -> None:
    def guard(x: torch.Tensor, width: int) -> bool:
        return x.shape[-1] == 2 * width

    assert refused((), guard, x=FLOAT, width=2) is None
    assert refused((), guard, x=FLOAT, width=3) == "x"


MALFORMED: list[tuple[Any, Any, str]] = [
    ("x float32", None, "is no 'parameters: condition, condition'"),
    ("z: float32", None, "names 'z'; there are x, y"),
    ("x: float33", None, "'float33' in 'x: float33' is no condition"),
    ("x: float32, float16", None, "never holds; write 'float32 or float16' for one of these"),
    ("x: shape (n", None, "is no condition"),
    ("x: shape (..., ...)", None, "is no condition"),
    ("x: multiple of 8", None, "is no condition"),
    (3, None, "must be sentences such as"),
    ((), lambda z: True, r"guard\(z\) must take parameters of the pattern, which are x, y"),
]


@pytest.mark.parametrize(("guards", "guard", "words"), MALFORMED)
def test_a_malformed_guard_is_one_sentence(guards: Any, guard: Any, words: str) -> None:
    with pytest.raises(PassError, match=words):
        make_guards("Fuse.guards", guards, guard, ["x", "y"])


def add_relu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.relu(x + y)


def gelu(x: torch.Tensor) -> torch.Tensor:
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def compiled(
    folder: Path, function: Callable[..., Any] = add_relu, **options: Any
) -> tuple[Callable[..., Any], list[int]]:
    counts: list[int] = []
    report = {"report": lambda reports: counts.extend(one.num_matches for one in reports)}
    options = {"passes": folder, **report, **options}
    return torch.compile(function, backend="passnet", options=options), counts


def tutorial(folder: Path) -> Path:
    """The pass that the documentation begins with."""
    text = TUTORIAL.split("```python\n# FuseGelu.py\n")[1].split("```")[0]
    return write_folder(folder / "passes", FuseGelu=text)


ROWS, ROW = torch.randn(8, 64), torch.randn(64)
OTHERS = {
    "float16": ROWS.half(),
    "float64": ROWS.double(),
    "int64": ROWS.long(),
    "transposed": ROWS.t(),
}


@pytest.mark.parametrize("name", OTHERS)
@torch.no_grad()
def test_the_pass_of_the_tutorial_leaves_alone_what_it_is_not_for(
    name: str, tmp_path: Path
) -> None:
    optimised, counts = compiled(tutorial(tmp_path), gelu)
    x = OTHERS[name]
    for _ in range(3):
        actual, expected = optimised(x), gelu(x)
        assert actual.dtype == expected.dtype and actual.stride() == expected.stride()
        assert torch.equal(actual, expected)
    assert counts == [0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_the_pass_of_the_tutorial_is_applied_to_what_it_is_for(
    dtype: torch.dtype, tmp_path: Path
) -> None:
    optimised, counts = compiled(tutorial(tmp_path), gelu)
    x = ROWS.to(dtype)
    torch.testing.assert_close(optimised(x), gelu(x))
    assert counts == [1]
    optimised(ROWS.double())  # another graph, whose tensors are looked at again
    assert counts == [1, 0]


@pytest.mark.slow
def test_the_pass_of_the_tutorial_matches_the_graphs_that_it_is_tried_on(tmp_path: Path) -> None:
    tutorial(tmp_path).rename(tmp_path / "my_passes")
    [command] = re.findall(r"^passnet (pass check .*)$", TUTORIAL, re.MULTILINE)
    words = [sys.executable, "-P", "-m", "passnet.cli", *command.split()]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.strip() in TUTORIAL and run.stdout.count("matches once") == 4


UNGUARDED = """
import torch

def pattern(x, y):
    return torch.relu(x + y)

def replacement_args(x, y):
    return x, y

def fused(x, y):
    {body}

def replacement_func():
    return fused
"""
FORMS = {
    "(x + y).relu()[:1]": "returns float32 (1, 64)",
    "(x + y).relu().double()": "returns float64 (8, 64)",
    "(x + y).relu().t().contiguous().t()": r"with strides \(1, 8\)",
    "(x, y)": "returns 2 values",
    "3": "returns a int",
    "{}[x.dtype]": "KeyError",
}


@pytest.mark.parametrize("residual", ["eager", "inductor"])
@pytest.mark.parametrize("body", FORMS)
@torch.no_grad()
def test_a_replacement_whose_first_call_returns_another_form_gives_way(
    body: str, residual: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = UNGUARDED.replace("{body}", f"return {body}")
    optimised, counts = compiled(write_folder(tmp_path / "p", Fuse=text), residual=residual)
    with caplog.at_level(logging.WARNING, "passnet"):
        for _ in range(3):
            assert torch.equal(optimised(ROWS, ROWS), add_relu(ROWS, ROWS))
    assert counts == [1]
    if residual == "inductor" and "t()" in body:  # there it is laid out as Inductor counts on
        assert not caplog.records
        return
    assert len(caplog.records) == 1
    assert "Fuse is not applied, the original ops stay: its replacement" in caplog.text


BARE = UNGUARDED.replace("import torch", """
import torch
from passnet.passes import cpp

SOURCE = '''#include <cstdint>
extern "C" void f(const float* x, const float* y, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) { float v = x[i] + y[i]; out[i] = v < 0 ? 0 : v; }
}
'''
ADD = cpp.kernel(SOURCE, "f", "pppn")
""").replace("{body}", """out = torch.empty_like(x)
    ADD(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel())
    return out""")  # fmt: skip


@torch.no_grad()
def test_kernels_that_take_addresses_are_for_a_judge_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_folder(tmp_path / "p", Fuse=BARE)
    optimised, counts = compiled(folder)
    with caplog.at_level(logging.WARNING, "passnet"):
        for dtype in (torch.float16, torch.float32):
            x = ROWS.to(dtype)
            assert torch.equal(optimised(x, x), add_relu(x, x))
    assert counts == []
    assert caplog.text.count("Fuse is not applied: its folder has C++ kernels that take") == 1
    torch._dynamo.reset()
    optimised, counts = compiled(folder, is_judged=True)
    assert torch.equal(optimised(ROWS, ROWS), add_relu(ROWS, ROWS)) and counts == [1]


def test_guards_on_arguments_of_a_graph_need_no_run_and_others_ask_for_one() -> None:
    def passes(pattern: Callable[..., Any], guard: str) -> list[Pass]:
        return [make_pass("Fuse", pattern, lambda x: (x,), lambda: torch.relu, guards=(guard,))]

    for guard, num_matches in (("x: float32, cpu", 1), ("x: bfloat16", 0)):
        module = graph_of(lambda x: torch.relu(x.exp()))
        note_inputs(module, [torch.empty(2)])
        whole = passes(lambda x: torch.relu(x.exp()), guard)
        assert apply_passes(module, whole)[0][0].num_matches == num_matches
    module = graph_of(lambda x: torch.relu(x.exp()))
    note_inputs(module, [torch.empty(2)])
    with pytest.raises(ValuesNeededError):
        apply_passes(module, passes(lambda x: torch.relu(x), "x: float32"))
