"""Small graphs with odd sizes for kernels in Triton, which are slow where they are interpreted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from passnet.data.capture.capture import capture
from passnet.data.mine.dtypes import in_dtype
from passnet.graph.spec import Graph
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.judge.suite.suite import load_suite
from passnet.judge.task import TaskGraph

DTYPES = ("float32", "float16", "bfloat16")

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


def demo(suite: str = "demo") -> list[tuple[str, TaskGraph]]:
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
