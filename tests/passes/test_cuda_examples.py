"""The passes in `examples/cuda` load without a GPU, are clean, and match their tasks' graphs.

Nothing tests what they compute: that takes a GPU.
"""

from pathlib import Path

import pytest

from passnet.data.mine.dtypes import in_dtype
from passnet.graph.fx.build import build
from passnet.graph.values.inputs import make_inputs
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import STRICT
from passnet.judge.suite.suite import load_suite
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from tests.passes.values import tensors

FOLDER = Path(__file__).parents[2] / "examples" / "cuda"
FOLDERS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_clean_under_the_strict_rules(name: str) -> None:
    folder = inspect_folder(FOLDER / name)
    assert folder.passes and folder.unlisted == ()
    assert {finding.weight for finding in inspect_code(folder, STRICT)} <= {"note"}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_pass_matches_every_graph_of_its_task_without_compiling(name: str) -> None:
    [task] = [task for task in load_suite("demo").tasks if task.name == name]
    passes = load_passes(inspect_folder(FOLDER / name))
    graphs = [variant.graph for variant in task.graphs]
    halves = [variant.graph for variant in task.graphs if variant.name.endswith("bfloat16")]
    graphs += [in_dtype(graph, "float16") for graph in halves]
    for graph in graphs:
        inputs = tensors(graph, make_inputs(graph, "fresh", seed=0))
        reports, _ = apply_passes(build(graph.program), passes, inputs)
        assert [report.num_matches for report in reports] == [1], reports
