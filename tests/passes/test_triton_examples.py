"""The passes in `examples/triton` match every graph of their task, and compute what it computes.

They run on a CPU, under Triton's interpreter: that tells nothing of their speed.
"""

from pathlib import Path

import pytest

from passnet.data.mine.dtypes import in_dtype
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import STRICT
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.passes.folder import inspect_folder
from tests.passes.assembled import run_assembled
from tests.passes.interpreted import Result, job, run_interpreted
from tests.passes.small_graphs import DTYPES, NETS, SMALL, demo, small_graphs

pytest.importorskip("triton", reason="triton is not installed")
pytestmark = pytest.mark.xdist_group("triton")  # the processes that interpret run once

FOLDER = Path(__file__).parents[2] / "examples" / "triton"
FOLDERS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
OWN = ("masked_mean_pooling", "patch_embed")
"""Folders for graphs that are not in the demo suite."""

LOOSER = {("gelu_tanh", "float16"): -3}
"""Where the outputs agree with those of the CPU at a looser level only: in float16 it rounds a cube
once, and CUDA, which the kernel follows, after either product."""

NAMES = [f"{start}-{dtype}" for start in [*SMALL, *NETS] for dtype in DTYPES]


@pytest.fixture(scope="module")
def interpreted() -> dict[str, Result]:
    jobs = [
        job(name, FOLDER / folder, graph, "fresh")
        for name, (folder, graph) in small_graphs().items()
    ]
    for task, variant in demo():
        jobs.append(job(variant.name, FOLDER / task, variant.graph))
        if variant.name.endswith("bfloat16"):
            half = in_dtype(variant.graph, "float16")
            jobs.append(job(f"{variant.name} as float16", FOLDER / task, half))
    return run_interpreted(jobs)


NUMPY_TOO_NEW = "only 0-dimensional arrays can be converted to Python scalars"
"""What Triton 3.6's own interpreter raises for every kernel under numpy 2.4."""


def assert_agrees(result: Result, folder: str, dtype: str) -> None:
    if NUMPY_TOO_NEW in (result.problem or ""):
        pytest.skip("Triton's interpreter does not run with this numpy; use numpy<2.4")
    assert result.problem is None, result
    assert result.t is not None and result.t <= LOOSER.get((folder, dtype), CORRECT_AT), result


@pytest.mark.parametrize("name", NAMES)
def test_the_rewritten_graph_agrees_with_eager(name: str, interpreted: dict[str, Result]) -> None:
    assert_agrees(interpreted[name], name.split("-")[0], name.split("-")[-1])


def test_every_task_of_the_demo_suite_has_a_folder() -> None:
    assert sorted({*OWN, *(task for task, _ in demo())}) == FOLDERS


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_clean_under_the_strict_rules(name: str) -> None:
    folder = inspect_folder(FOLDER / name)
    assert folder.passes and folder.unlisted == ()
    assert inspect_code(folder, STRICT) == []


def test_a_pass_matches_every_graph_of_its_task_in_every_dtype(
    interpreted: dict[str, Result],
) -> None:
    names = {variant.name for _, variant in demo()}
    names |= {f"{name} as float16" for name in names if name.endswith("bfloat16")}
    results = {name: interpreted[name] for name in names}
    assert [result for result in results.values() if result.problem] == []
    assert all(any(result.matches.values()) for result in results.values())


@pytest.mark.slow
def test_the_graphs_of_other_shapes_agree_with_eager() -> None:
    jobs = [
        job(variant.name, FOLDER / task, variant.graph, "fresh")
        for task, variant in demo("demo-held-out")
    ]
    for result in run_interpreted(jobs, timeout_s=1800).values():
        assert_agrees(result, result.name.split("-")[0], result.name.split("-")[-1])


@pytest.mark.slow
@pytest.mark.parametrize("capability", [80, 90])
def test_every_kernel_compiles_for_a_gpu(capability: int, tmp_path: Path) -> None:
    jobs = [job(name, FOLDER / folder, graph) for name, (folder, graph) in small_graphs().items()]
    kernels = run_assembled(jobs, capability, tmp_path)
    assert kernels.keys() == {case.name for case in jobs} and all(kernels.values())
