"""The passes in `examples/triton` match every graph of their task, and compute what it computes.

They run on a CPU, under Triton's interpreter: that tells nothing of their speed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.extract.capture import capture
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program
from passnet.graph.spec import Graph
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import STRICT
from passnet.mine.dtypes import in_dtype
from passnet.passes.folder import inspect_folder
from passnet.score.tolerance import CORRECT_AT
from passnet.suite.suite import SuiteGraph, load_suite
from tests.passes.assembled import run_assembled
from tests.passes.interpreted import Result, job, run_interpreted

pytest.importorskip("triton", reason="triton is not installed")
pytestmark = pytest.mark.xdist_group("triton")  # the processes that interpret run once

FOLDER = Path(__file__).parents[2] / "examples" / "triton"
FOLDERS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
OWN = ("masked_mean_pooling", "patch_embed")
"""Folders for graphs that are not in the demo suite."""
DTYPES = ("float32", "float16", "bfloat16")

LOOSER = {("gelu_tanh", "float16"): -3}
"""Where the outputs agree with those of the CPU at a looser level only: in float16 it rounds a cube
once, and CUDA, which the kernel follows, after either product."""

Shape = tuple[int, ...]

SMALL: dict[str, tuple[list[Shape], dict[str, str]]] = {
    "residual_layer_norm-gpt2": ([(2, 5, 40), (2, 5, 40), (40,), (40,)], {"(768,)": "(40,)"}),
    "residual_layer_norm-gptneo": ([(5, 40), (2, 5, 40), (40,), (40,)], {"(512,)": "(40,)"}),
    "rms_norm-llama": ([(2, 5, 40), (40,)], {}),
    "residual_rms_norm-llama": ([(2, 5, 40), (2, 5, 40), (40,)], {}),
    "rotary_embedding-llama": (
        [(1, 6, 24), (1, 6, 24), (2, 3, 6, 24), (2, 1, 6, 24)], {"32": "12"}
    ),
    "rotary_embedding-qwen2": (
        [(2, 6, 24), (2, 6, 24), (2, 3, 6, 24), (2, 1, 6, 24)], {"32": "12"}
    ),
    "masked_softmax-llama": ([(2, 3, 5, 7), (2, 1, 5, 7)], {}),
    "masked_softmax-qwen2": ([(2, 3, 5, 7), (1, 1, 1, 7)], {}),
    "relative_bias_softmax-swin_tiny": ([(9, 9), (25, 3), (4, 3, 9, 9)], {"49": "9"}),
    "gelu_tanh-gpt2": ([(3, 700)], {}),
    "gated_activation-phi3": ([(2, 3, 2060)], {}),
    "gated_activation-gmixer": ([(2, 3, 2060)], {}),
    "window_partition-swin_base": (
        [(2, 6, 9, 130)],
        {
            "1, 8, 7, 8, 7, 128": "2, 2, 3, 3, 3, 130",
            "-1, 7, 7, 128": "-1, 3, 3, 130",
            "-1, 49, 128": "-1, 9, 130",
            "(-3, -3)": "(-1, -2)",
        },
    ),
    "window_reverse_residual-swin_base": (
        [(12, 9, 130), (2, 6, 9, 130)],
        {
            "-1, 8, 8, 7, 7, 128": "-1, 2, 3, 3, 3, 130",
            "-1, 7, 7, 128": "-1, 3, 3, 130",
            "-1, 56, 56, 128": "-1, 6, 9, 130",
            "slice(None, 56, None), slice(None, 56, None)": (
                "slice(None, 6, None), slice(None, 9, None)"
            ),
            "(3, 3)": "(1, 2)",
        },
    ),
    "batch_norm_add_relu-resnet18": ([(2, 3, 35, 33), *[(3,)] * 4, (2, 3, 35, 33)], {}),
    "batch_norm_silu_squeeze-efficientnet_b0": ([(2, 3, 50, 47), *[(3,)] * 4], {}),
    "squeeze_excite_scale-efficientnet_b0": ([(2, 3, 1, 1), (2, 3, 35, 33)], {}),
    "pool_concat-inception_v4": ([(2, 3, 11, 9), (2, 2, 5, 4)], {}),
    "pool_concat-inception_resnet_v2": ([(2, 3, 11, 9), (2, 2, 5, 4), (2, 4, 5, 4)], {}),
}  # fmt: skip
"""Graphs of the demo suite with odd sizes that are quickly interpreted: by the start of the name,
the shapes of the arguments, and what changes in the text. They reach every loop and ragged end.
"""


def mean_float(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).expand(hidden.size()).float()
    return torch.sum(hidden * weights, 1) / torch.clamp(weights.sum(1), min=1e-9)


def mean_method(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).expand(hidden.size()).float()
    return (hidden * weights).sum(1) / torch.clamp(weights.sum(1), min=1e-9)


def mean_same_dtype(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    weights = mask.unsqueeze(-1).expand(hidden.size()).to(hidden.dtype)
    return torch.sum(hidden * weights, 1) / torch.clamp(weights.sum(1), min=1e-9)


def patches(image: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    stride = 2 if weight.shape[-1] == 3 else weight.shape[-2:]
    return torch.conv2d(image, weight, bias, stride).flatten(2).transpose(1, 2)


NETS: dict[str, tuple[Callable[..., torch.Tensor], list[Shape]]] = {
    "masked_mean_pooling-float": (mean_float, [(3, 37, 150), (3, 37)]),
    "masked_mean_pooling-method": (mean_method, [(3, 37, 150), (3, 37)]),
    "masked_mean_pooling-same_dtype": (mean_same_dtype, [(3, 37, 150), (3, 37)]),
    "masked_mean_pooling-nothing_kept": (mean_float, [(6, 1, 20), (6, 1)]),
    "masked_mean_pooling-nothing_kept_same_dtype": (mean_same_dtype, [(6, 1, 20), (6, 1)]),
    "patch_embed-square": (patches, [(2, 3, 20, 41), (70, 3, 4, 4), (70,)]),
    "patch_embed-oblong": (patches, [(1, 2, 9, 10), (5, 2, 3, 5), (5,)]),
    "patch_embed-overlapping": (patches, [(1, 2, 9, 10), (5, 2, 3, 3), (5,)]),
}
"""Nets of the graphs that are not in the demo suite, and the shapes of their arguments."""


def small(graph: Graph, shapes: Sequence[Shape], changes: dict[str, str]) -> Graph:
    text = render_program(graph.program)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    tensors = [
        replace(spec, shape=shape, data=None, max_val=24 if spec.dtype == "int64" else None)
        for spec, shape in zip(graph.tensors, shapes, strict=True)
    ]
    return Graph(parse_program(text), tuple(tensors))


def captured(net: Callable[..., Any], shapes: Sequence[Shape], dtype: str) -> Graph:
    def value(shape: Shape) -> torch.Tensor:
        if net is patches or len(shape) == 3:
            return torch.randn(shape, dtype=getattr(torch, dtype))
        return torch.arange(shape[0] * shape[1]).view(shape) % 2

    with torch.no_grad():
        [graph] = capture(net, *map(value, shapes))
    return graph


def demo(suite: str = "demo") -> list[tuple[str, SuiteGraph]]:
    return [(task.name, graph) for task in load_suite(suite).tasks for graph in task.graphs]


def small_graphs() -> dict[str, tuple[str, Graph]]:
    """By name: the folder, and a graph that is quick to interpret, in every dtype."""
    graphs: dict[str, tuple[str, Graph]] = {}
    for start, (shapes, changes) in SMALL.items():
        for task, variant in demo():
            if variant.name.startswith(start) and (dtype := variant.name.split("-")[-1]) in DTYPES:
                graph = small(variant.graph, shapes, changes)
                graphs.setdefault(f"{start}-{dtype}", (task, graph))
                if dtype == "bfloat16":
                    graphs.setdefault(f"{start}-float16", (task, in_dtype(graph, "float16")))
    for name, (net, shapes) in NETS.items():
        for dtype in DTYPES:
            graphs[f"{name}-{dtype}"] = (name.split("-")[0], captured(net, shapes, dtype))
    return graphs


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
