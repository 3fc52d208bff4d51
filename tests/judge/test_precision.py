"""The accuracy of outputs relative to eager torch's, and its findings."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.settings import JudgeSettings
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from passnet.judge.verdict.check import KINDS, Expected
from passnet.judge.verdict.precision import Accuracy, precision_findings, relative_error
from tests.judge.folders import some_slow, write_passes

pytestmark = pytest.mark.xdist_group("precision")  # they share parents of workers

SETTINGS = JudgeSettings(timing=None, input_seed=2)


@pytest.fixture(scope="module")
def parents() -> Iterator[ParentPool]:
    with ParentPool() as made:
        yield made


def trial_of(parents: ParentPool, folder: Path, line: str, body: str, dtype: str) -> Trial:
    """The trial of a pass that replaces `line`, a function of x, by `body`."""
    program = f"""
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = {line}
        return (y,)
"""
    graph = Graph(parse_program(program), (TensorSpec("x", (64, 512), dtype),))
    write_passes(folder, body)
    path = folder / "Fuse.py"
    text = path.read_text().replace("def pattern(x, y):\n    return torch.relu(x + y)",
                                    f"def pattern(x):\n    return {line}")  # fmt: skip
    text = text.replace(
        "def replacement_args(x, y):\n    return x, y", "def replacement_args(x):\n    return (x,)"
    )
    path.write_text(text)
    candidate = Candidate("it", "passes", str(folder), "direct", root=str(folder.parent.parent))
    [trial] = judge_graph(parents, TaskGraph("t", "t-0", graph), [candidate], SETTINGS)
    return trial


def names(trial: Trial) -> set[str]:
    return {item.name for item in trial.findings if item.weight == "flag"}


SOFTMAX = "torch.softmax(x, dim=-1)"
NORM = "torch.nn.functional.layer_norm(x, (512,))"
CASES = {
    "in bfloat16 inside": (
        "torch.tanh(x)", "torch.tanh(x.bfloat16()).float()", {"precision_downgrade"}, False,
    ),
    "the variance as a difference of means": (
        NORM, "(x - x.mean(-1, True)) * "
        "((x * x).mean(-1, True) - x.mean(-1, True) ** 2 + 1e-5).rsqrt()",
        {"unstable_maths"}, False,
    ),
    "a softmax that overflows": (
        SOFTMAX, "x.exp() / x.exp().sum(-1, True)", {"unstable_maths"}, True,
    ),
    "the same by other ops": (SOFTMAX, "torch.exp(torch.log_softmax(x, -1))", set(), False),
    "a norm by other ops": (
        NORM, "(x - x.mean(-1, True)) * ((x - x.mean(-1, True)).pow(2).mean(-1, True) + 1e-5)"
        ".rsqrt()", set(), False,
    ),
}  # fmt: skip


@pytest.mark.parametrize("claim", some_slow(CASES, 1))
def test_loss_of_precision_is_named(claim: str, parents: ParentPool, place: Path) -> None:
    line, body, expected, is_wrong = CASES[claim]
    body = f"def replacement(x):\n    return {body}\n"
    trial = trial_of(parents, place / "it", line, body, "float32")
    assert trial.status == "ok" and trial.speedup is None
    assert names(trial) == expected, (trial.findings, trial.error)
    assert (trial.smallest_t is None) == is_wrong, trial.error
    if is_wrong:
        assert "on extreme inputs" in (trial.error or "")


def test_rounding_in_bfloat16_is_no_downgrade_of_a_bfloat16_graph(
    parents: ParentPool, place: Path
) -> None:
    body = "def replacement(x):\n    return torch.tanh(x.float()).bfloat16()\n"
    trial = trial_of(parents, place / "it", "torch.tanh(x)", body, "bfloat16")
    assert trial.smallest_t == -10 and not names(trial)


def test_elements_that_are_not_finite_are_left_out_of_the_error() -> None:
    right = np.array([1.0, 2.0, np.inf])
    assert relative_error(np.array([1.0, 2.0, 3.0]), right) == 0.0


def test_an_error_counts_only_where_it_is_large_and_larger_than_eagers() -> None:
    usual = Accuracy(0, "float32", 1e-3, 2e-4)
    assert not precision_findings(usual, None)  # eager is nearly as bad
    assert not precision_findings(Accuracy(0, "float32", 1e-6, 1e-9), None)  # and this is small
    [found] = precision_findings(Accuracy(0, "float32", 1e-3, 1e-7), None)
    assert "1.0e-03" in found.evidence and "1.0e-07" in found.evidence


@pytest.mark.parametrize(("dtype", "is_forgiven"), [("float32", True), ("bfloat16", False)])
def test_timed_calls_forgive_what_eager_torch_is_off_by_where_t_5_is_finer(
    parents: ParentPool, dtype: str, is_forgiven: bool
) -> None:
    program = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        y = torch.sum(x, -1)
        return (y,)
"""
    graph = Graph(parse_program(program), (TensorSpec("x", (37, 1021), dtype),))
    prepared = prepare_graph(graph, [make_inputs(graph, kind, 0) for kind in KINDS])
    with LoadedWorker(parents.reference(), prepared, REFERENCE, SETTINGS) as loaded:
        expected = Expected(prepared, loaded)
    (slack,) = expected.fresh_slack()
    assert (1e-7 < slack < 1e-2) == is_forgiven and (slack > 0) == is_forgiven
