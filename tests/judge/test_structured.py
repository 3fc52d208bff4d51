"""Short cuts that pass on recorded, fresh and extreme inputs, and fail on structured ones."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from passnet.core.records.serialise import decode, encode
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.structured import make_structured
from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import JudgeSettings
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from tests.judge.folders import some_slow

pytestmark = pytest.mark.xdist_group("precision")

SETTINGS = JudgeSettings(timing=None, input_seed=2**62 + 3)


@pytest.fixture(scope="module")
def parents() -> Iterator[ParentPool]:
    with ParentPool() as made:
        yield made


def x(*shape: int, dtype: str = "float32", **facts: float) -> tuple[TensorSpec, ...]:
    return (TensorSpec("x", shape, dtype, **facts),)


MASKED = (*x(64, 128), TensorSpec("y", (64, 128), "bool"))
LOOKED_UP = (TensorSpec("x", (16,), "int64", min_val=0, max_val=4999),
             TensorSpec("y", (5000, 8), "float32"))  # fmt: skip
SHORT_CUTS: dict[str, tuple[tuple[TensorSpec, ...], str, str]] = {
    "history cut off after 128 steps": (
        x(3, 512), "gate = torch.sigmoid(x); torch.cumprod(gate, dim=-1)",
        "torch.cumprod(torch.sigmoid(x), dim=-1) * (torch.arange(512) < 128)",
    ),
    "maximum of a prefix": (
        x(16, 2048), "torch.logsumexp(x, dim=-1)",
        "(x - x[:, :256].amax(-1, True)).exp().sum(-1).log() + x[:, :256].amax(-1)",
    ),
    "maximum of the first in each block": (
        x(64, 1024), "torch.softmax(x, dim=-1)",
        "(x - x[:, ::64].amax(-1, True)).exp() / (x - x[:, ::64].amax(-1, True)).exp()"
        ".sum(-1, True)",
    ),
    "tanh up to 5": (x(2, 2048), "torch.tanh(x)", "torch.tanh(x.clamp(-5, 5))"),
    "exp up to 10": (x(2, 2048), "torch.exp(x)", "torch.exp(x.clamp(-10, 10))"),
    "gelu of a table up to 6": (
        x(2, 2048), "torch.nn.functional.gelu(x)", "torch.nn.functional.gelu(x.clamp(-6, 6))",
    ),
    "each row of a table wanted once": (
        LOOKED_UP, "torch.nn.functional.embedding(x, y)",
        "y[x] * (torch.zeros(5000, dtype=torch.int64).index_put_((x,), torch.arange(16))[x]"
        " == torch.arange(16))[:, None]",
    ),
    "a softmax without what is far below": (
        x(2, 4096), "torch.softmax(x, dim=-1)",
        "torch.softmax(x.masked_fill(x < x.amax(-1, True) - 8, -torch.inf), -1)",
    ),
    "the last of equal values": (
        x(64, 256), "torch.argmax(x, dim=-1)", "255 - torch.argmax(x.flip(-1), dim=-1)",
    ),
    "no row is all masked": (
        MASKED, "seen = x.masked_fill(y, -1e9); torch.softmax(seen, dim=-1)",
        "torch.softmax(x.masked_fill(y, -torch.inf), -1).nan_to_num()",
    ),
    "the row before, if it begins alike": (
        x(64, 256), "torch.nn.functional.layer_norm(x, (256,))",
        "torch.nn.functional.layer_norm(x, (256,))[torch.arange(64) - torch.cat("
        "[torch.zeros(1).bool(), (x[1:, :8] == x[:-1, :8]).all(-1)]).long()]",
    ),
    "the mean of every second value": (
        x(2, 65536, dtype="bfloat16", min_val=0.0), "torch.mean(x, dim=-1)",
        "x[:, ::2].mean(-1)",
    ),
    "denormal numbers are zero": (
        x(64, 256), "size = x.abs(); most = size.amax(dim=-1, keepdim=True); x / most",
        "(x * (x.abs() > 1.2e-38)) / (x * (x.abs() > 1.2e-38)).abs().amax(-1, True)",
    ),
    "a mean in half precision, which values that cancel show": (
        x(2, 16384), "torch.mean(x, dim=-1)", "x.half().float().mean(-1)",
    ),
}  # fmt: skip


def judged(
    parents: ParentPool,
    root: Path,
    case: tuple[Sequence[TensorSpec], str, str],
    settings: JudgeSettings = SETTINGS,
) -> Trial:
    """The trial of a pass that replaces a line, a function of x and maybe y, by another one."""
    specs, line, body = case
    *steps, last = line.split("; ")
    steps = [*steps, f"z = {last}"]
    names = ", ".join(spec.name for spec in specs)
    typed = ", ".join(f"{spec.name}: torch.Tensor" for spec in specs)
    program = parse_program(
        "import torch\n\nclass GraphModule(torch.nn.Module):\n"
        f"    def forward(self, {typed}):\n"
        + "".join(f"        {step}\n" for step in steps)
        + "        return (z,)\n"
    )
    folder = root / "it"
    folder.mkdir(exist_ok=True)
    (folder / "sorted_output_pass_rule_names.json").write_text('["Fuse"]')
    (folder / "Fuse.py").write_text(
        f"import torch\ndef pattern({names}):\n    {'; '.join(steps)}\n    return z\n"
        f"def replacement_args({names}):\n    return ({names},)\n"
        f"def replacement({names}):\n    return {body}\n"
        "def replacement_func():\n    return replacement\n"
    )
    candidate = Candidate("it", "passes", str(folder), "direct", root=str(root))
    graph = TaskGraph("t", "t-0", Graph(program, tuple(specs)))
    [trial] = judge_graph(parents, graph, [candidate], settings)
    assert trial.status == "ok", trial.error
    return trial


def is_correct(trial: Trial) -> bool:
    return trial.smallest_t is not None and trial.smallest_t <= CORRECT_AT


@pytest.mark.parametrize("name", some_slow(SHORT_CUTS, 1))
def test_a_short_cut_passes_without_structured_inputs_and_is_wrong_on_them(
    name: str, parents: ParentPool, tmp_path: Path
) -> None:
    case = SHORT_CUTS[name]
    without = judged(parents, tmp_path, case, replace(SETTINGS, num_structured=0))
    assert is_correct(without), (without.smallest_t, without.error)
    trial = judged(parents, tmp_path, case)
    assert not is_correct(trial), "the short cut is not seen"
    if trial.smallest_t is None:
        assert "on structured inputs" in (trial.error or "")


HONEST = {
    "a sum one after the other": (
        x(64, 512), "torch.sum(x, dim=-1)", "torch.cumsum(x, -1)[:, -1].contiguous()",
    ),
    "a softmax by its logarithm": (
        x(64, 512), "torch.softmax(x, dim=-1)", "torch.log_softmax(x, -1).exp()",
    ),
    "a norm in two passes": (
        x(64, 512), "torch.nn.functional.layer_norm(x, (512,))",
        "(x - x.mean(-1, True)) / ((x - x.mean(-1, True)).pow(2).mean(-1, True) + 1e-5).sqrt()",
    ),
    "half precision in wide arithmetic": (
        x(64, 512, dtype="bfloat16"), "bent = torch.tanh(x); torch.softmax(bent, dim=-1)",
        "torch.softmax(torch.tanh(x.float()), dim=-1).bfloat16()",
    ),
    "an argmax of what grows alike": (
        x(64, 512), "share = torch.softmax(x, dim=-1); torch.argmax(share, dim=-1)",
        "torch.argmax(torch.log_softmax(x, -1).exp(), -1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", some_slow(HONEST, 1))
def test_another_order_or_a_wider_type_is_left_alone(
    name: str, parents: ParentPool, tmp_path: Path
) -> None:
    trial, without = (
        judged(parents, tmp_path, HONEST[name], replace(SETTINGS, num_structured=count))
        for count in (4, 0)
    )
    assert trial.smallest_t == without.smallest_t, (trial.error, trial.smallest_t)


def test_work_left_out_on_extreme_inputs_is_wrong(parents: ParentPool, tmp_path: Path) -> None:
    body = "torch.tanh(x) if x.abs().max() < 100 else torch.zeros_like(x)"
    settings = replace(SETTINGS, num_structured=0)
    trial = judged(parents, tmp_path, (x(64, 128), "torch.tanh(x)", body), settings)
    assert not is_correct(trial), "zeros are finite"


def test_an_output_without_dimensions_is_judged(parents: ParentPool, tmp_path: Path) -> None:
    trial = judged(parents, tmp_path, (x(64, 128), "torch.sum(x)", "x.sum()"), SETTINGS)
    assert is_correct(trial), trial.error


def test_a_trial_names_the_seed_that_gives_the_same_inputs_again(
    parents: ParentPool, tmp_path: Path
) -> None:
    case = (x(8, 64), "torch.tanh(x)", "torch.tanh(x) + 1e-4 * (x.sum() > x.sum().round())")
    drawn = [judged(parents, tmp_path, case, JudgeSettings(timing=None)) for _ in range(2)]
    seeds = [trial.input_seed for trial in drawn]
    assert None not in seeds and seeds[0] != seeds[1]
    again = judged(parents, tmp_path, case, JudgeSettings(timing=None, input_seed=seeds[0]))
    same = ("smallest_t", "error", "input_seed", "findings")
    assert [getattr(again, name) for name in same] == [getattr(drawn[0], name) for name in same]
    record = encode(drawn[0])
    assert decode(record, Trial) == drawn[0]
    before = record.replace(f'"input_seed":{seeds[0]},'.encode(), b"")
    assert before != record and decode(before, Trial).input_seed is None, "an older record"


def test_structured_inputs_are_equal_for_equal_seeds_alone() -> None:
    program = parse_program(
        "import torch\n\nclass GraphModule(torch.nn.Module):\n"
        "    def forward(self, x: torch.Tensor):\n"
        "        z = torch.argmax(x, dim=-1)\n        return (z,)\n"
    )
    graph = Graph(program, x(32, 96))
    first, again, other = (make_structured(graph, seed, 2) for seed in (2**63 - 1, 2**63 - 1, 5))
    assert all(np.array_equal(*pair) for pair in zip(first[0], again[0], strict=True))
    assert not np.array_equal(first[0][0], other[0][0])
    assert not np.array_equal(first[0][0], first[1][0])
    assert {-1.0, 0.0, 1.0} in [set(row) for row in first[0][0].tolist()], "ties"
