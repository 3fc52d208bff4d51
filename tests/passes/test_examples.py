"""The passes in `examples/passes` match every graph of their task and compute what it computes."""

from pathlib import Path

import numpy as np
import pytest

from passnet.graph.fx.build import build
from passnet.graph.values.inputs import make_inputs
from passnet.judge.score.tolerance import smallest_t
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import Task
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.folder import PassFolder, inspect_folder
from passnet.passes.load import load_passes
from tests.passes.values import stored, tensors

FOLDER = Path(__file__).parents[2] / "examples" / "passes"
FOLDERS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return {task.name: task for task in load_suite("demo").tasks}


def test_every_task_of_the_demo_suite_has_a_folder(tasks: dict[str, Task]) -> None:
    assert sorted(tasks) == FOLDERS


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_clean(name: str) -> None:
    folder = inspect_folder(FOLDER / name)
    assert folder.passes and folder.unlisted == ()


@pytest.fixture(params=FOLDERS)
def folder(request: pytest.FixtureRequest) -> PassFolder:
    return inspect_folder(FOLDER / request.param)


def test_on_every_graph_of_its_task_a_pass_matches_and_keeps_the_values(
    folder: PassFolder, tasks: dict[str, Task]
) -> None:
    passes = load_passes(folder)
    for variant in tasks[folder.path.name].graphs:
        module = build(variant.graph.program)
        inputs = tensors(variant.graph, make_inputs(variant.graph, "fresh", seed=0))
        reports, _ = apply_passes(module, passes, inputs)
        misses = [report.miss.sentence() for report in reports if report.miss]
        assert any(report.num_matches for report in reports), (variant.name, misses)
        original = build(variant.graph.program)
        for kind in ("fresh", "recorded"):
            values = make_inputs(variant.graph, kind, seed=0)
            expected = original(*tensors(variant.graph, values))
            args = tensors(variant.graph, values)
            actual = module(*args)
            assert len(actual) == len(expected)
            for first, second in zip(actual, expected, strict=True):
                assert (first.dtype, first.shape) == (second.dtype, second.shape), variant.name
                assert first.stride() == second.stride(), variant.name
                dtype = str(second.dtype).removeprefix("torch.")
                t = smallest_t(stored(first), stored(second), dtype)
                assert t is not None and t <= -5, (variant.name, kind, t)
            for value, arg in zip(values, args, strict=True):
                assert np.array_equal(value, arg if isinstance(arg, int) else stored(arg)), (
                    f"{variant.name} writes into an argument"
                )
