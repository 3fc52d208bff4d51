"""The Triton that the compiler writes as author for CUDA computes what eager torch does.

It runs on a CPU, under Triton's interpreter, and is compiled for GPUs: that tells nothing of its
speed. The graphs of the demo suite are cut down as those of the examples.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passnet.agent.authors.compiler import CompilePlan
from passnet.agent.authors.search import moves_for
from passnet.graph.spec import Graph
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import STRICT
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.passes.codegen.folder_text import pass_folder
from passnet.passes.codegen.triton_source import functions_text
from passnet.passes.files import Files, write_files
from passnet.passes.folder import inspect_folder
from tests.agent.triton_graphs import FORMS, compiler_for, folder_of, graph
from tests.graph.programs import graph_of, program_of
from tests.passes.assembled import run_assembled
from tests.passes.interpreted import Job, Result, job, run_interpreted
from tests.passes.small_graphs import SMALL, small_graphs

pytest.importorskip("triton", reason="triton is not installed")
pytestmark = pytest.mark.xdist_group("triton")  # the processes that interpret run once

DTYPES = ("float32", "bfloat16")
DEMO = [f"{start}-{dtype}" for start in SMALL for dtype in DTYPES]
FORM_NAMES = [f"{name}-{dtype}" for name in FORMS for dtype in DTYPES]


MOVED = {
    **dict.fromkeys(("tiles", "looped", "outer sum", "split sum", "online softmax"), "float32"),
    **dict.fromkeys(("persistent", "parts of a buffer", "read often"), "bfloat16"),
    "order of loops": "float32",
}
"""Graphs on which the moves of the search are tried, and their dtype."""


def all_graphs() -> dict[str, Graph]:
    graphs = {
        name: small_graph for name, (_, small_graph) in small_graphs().items() if name in DEMO
    }
    return graphs | {f"{name}-{dtype}": graph(name, dtype) for name in FORMS for dtype in DTYPES}


def job_of(name: str, files: Files, graph: Graph, root: Path) -> Job:
    root.mkdir(parents=True)
    write_files(files, root)
    return job(name, root, graph, "fresh")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> list[Job]:
    root = tmp_path_factory.mktemp("folders")
    return [
        job_of(name, folder_of(graph), graph, root / str(number))
        for number, (name, graph) in enumerate(all_graphs().items())
    ]


@pytest.fixture(scope="module")
def results(jobs: list[Job]) -> dict[str, Result]:
    return run_interpreted(jobs)


def assert_right(result: Result) -> None:
    assert result.problem is None, result
    assert any(result.matches.values()) and result.t is not None and result.t <= CORRECT_AT, result


@pytest.mark.slow
@pytest.mark.parametrize("name", DEMO)
def test_a_small_graph_of_the_demo_suite_is_computed_right(
    name: str, results: dict[str, Result]
) -> None:
    assert_right(results[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", FORM_NAMES)
def test_every_form_of_generated_code_is_computed_right(
    name: str, results: dict[str, Result]
) -> None:
    assert_right(results[name])


@pytest.mark.slow
def test_the_folders_are_clean_under_the_strict_rules(jobs: list[Job]) -> None:
    findings = {
        finished.name: inspect_code(inspect_folder(Path(finished.folder)), STRICT)
        for finished in jobs
    }
    assert {
        name: findings_of_job for name, findings_of_job in findings.items() if findings_of_job
    } == {}


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_every_kernel_compiles_for_a_gpu(capability: int, jobs: list[Job], tmp_path: Path) -> None:
    kernels = run_assembled(jobs, capability, tmp_path)
    assert kernels.keys() == {finished.name for finished in jobs} and all(kernels.values())


@pytest.mark.slow
def test_every_move_of_the_search_gives_other_folders_that_are_right(tmp_path: Path) -> None:
    graphs = {name: graph(name, dtype) for name, dtype in MOVED.items()}
    large = graph_of(program_of("y = a * b", returns="(y,)"), (2048, 1024))
    compiler = compiler_for(*graphs.values(), large)
    jobs, unrounded = [], set()
    for index, move in enumerate(moves_for("cuda")):
        num_changed = 0
        for number, (name, small_graph) in enumerate([*graphs.items(), ("large", large)]):
            before = compiler.plans[number]
            plan = move.change(before)
            sources = compiler.sources(number, plan)
            if pass_folder(sources) == pass_folder(compiler.sources(number, before)):
                continue
            num_changed += 1
            if name != "large":  # which is there to have other blocks
                root = tmp_path / f"{index}-{number}"
                jobs.append(job_of(f"{index} {name}", pass_folder(sources), small_graph, root))
            if ("emulate_precision_casts", False) in plan.options:
                unrounded.add(f"{index} {name}")
        assert num_changed, f"{move.change(CompilePlan())} changes nothing"
    for result in run_interpreted(jobs, timeout_s=1800).values():
        if result.name in unrounded:  # differs from eager torch where values cancel
            assert result.t is not None, result
        else:
            assert_right(result)


FUNCTIONS = {
    "exp": (np.exp, -110.0, 95.0),
    "expm1": (np.expm1, -20.0, 80.0),
    "sinh": (np.sinh, -89.0, 89.0),
    "cosh": (np.cosh, -89.0, 89.0),
    "tanh": (np.tanh, -12.0, 12.0),
    "log": (np.log, -1.0, 50.0),
    "log2": (np.log2, 0.0, 1e-37),
    "log10": (np.log10, 0.0, 1e30),
    "log1p": (np.log1p, -1.0, 3.0),
    "trunc": (np.trunc, -5.0, 5.0),
    "nearbyint": (np.rint, -5.0, 5.0),
}
"""Functions of ours, numpy's, and the range in which they are compared."""

EDGES = [0.0, -0.0, 0.5, 1.0, -1.0, 1.5, 2.5, np.inf, -np.inf, np.nan, 1e-20, 3e38]

HEAD = """
import json, sys
import torch, triton, triton.language as tl
sys.path.insert(0, sys.argv[1])
import functions
"""

SCRIPT = """
@triton.jit
def kernel(x_ptr, out_ptr, function: tl.constexpr, block: tl.constexpr):
    at = tl.arange(0, block)
    tl.store(out_ptr + at, function(tl.load(x_ptr + at)))

for name, given in json.load(sys.stdin).items():
    x = torch.tensor(given, dtype=torch.float32)
    out = torch.empty_like(x)
    kernel[(1,)](x, out, getattr(functions, name), len(given))
    print(json.dumps([name, out.tolist()]))
"""


EXTREMES = """
@triton.jit
def kernel(x_ptr, out_ptr, place_ptr):
    at = tl.arange(0, 4)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr, functions.max2(x, 0))
    tl.store(out_ptr + 1, functions.min2(x, 0))
    value, place = functions.max_with_index(x, at, 0)
    tl.store(place_ptr, place)
    tl.store(place_ptr + 1, functions.remainder_integer(place - 9, 4))
    tl.store(place_ptr + 2, functions.div_floor_integer(place - 9, 4))

for given in json.load(sys.stdin):
    out, place = torch.zeros(2), torch.zeros(3, dtype=torch.int32)
    kernel[(1,)](torch.tensor(given), out, place)
    print(json.dumps([out.tolist(), place.tolist()]))
"""


def printed(script: str, stdin: object, names: Iterable[str], root: Path) -> list[list[Any]]:
    """Return the output of an interpreted script with some of our functions."""
    (root / "functions.py").write_text(functions_text(names), "utf-8")
    (root / "script.py").write_text(HEAD + script, "utf-8")
    process = subprocess.run(
        [sys.executable, str(root / "script.py"), str(root)],
        input=json.dumps(stdin).encode(),
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()[-3000:]
    return [json.loads(line) for line in process.stdout.decode().splitlines()]


def test_extremes_are_the_first_of_equals_and_keep_nan(tmp_path: Path) -> None:
    names = ("max2", "min2", "max_with_index", "remainder_integer", "div_floor_integer")
    nan = float("nan")
    rows = [[1.0, 7.0, 7.0, -2.0], [1.0, nan, 9.0, 3.0], [nan, 1.0, nan, 2.0]]
    plain, inside, several = printed(EXTREMES, rows, names, tmp_path)
    assert plain == [[7.0, -2.0], [1, 0, -2]]
    assert np.isnan([*inside[0], *several[0]]).all()
    assert (inside[1], several[1]) == ([1, 0, -2], [0, 3, -3])


def test_our_functions_are_those_of_numpy(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    inputs = {
        name: np.float32([*EDGES, *draw.uniform(low, high, 1024 - len(EDGES))]).tolist()
        for name, (_, low, high) in FUNCTIONS.items()
    }
    outputs = dict(printed(SCRIPT, inputs, FUNCTIONS, tmp_path))
    for name, (exact, _, _) in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            expected = np.float32(exact(np.float64(inputs[name])))
            expected = np.where(np.abs(expected) < 1e-37, 0, expected)  # a GPU has no denormals
        is_tiny = np.abs(outputs[name]) < 1e-37
        np.testing.assert_allclose(
            np.where(is_tiny, 0, outputs[name]), expected, rtol=4e-7, atol=1e-37, err_msg=name
        )
