"""The demo suite: subgraphs cut from nets of timm and transformers, with random weights.

Run it with `python recipes/demo_suite.py suites`; it needs `pip install passnet[models]` and takes
a few minutes. It writes `demo.parquet`, `demo-small.parquet` with one graph a task, and
`demo-held-out.parquet` with other shapes of the same tasks. Each task is an op sequence, found in
captures by `passnet.capture`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from passnet.data.capture.capture import capture_values
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.data.mine.cut import cut_range, parent_of, single_assignment
from passnet.errors import CutError
from passnet.graph.canonical import fingerprints
from passnet.graph.fx.build import build
from passnet.graph.fx.from_fx import spec_from_tensor
from passnet.graph.spec import Graph, TensorSpec
from passnet.judge.suite.suite import make_suite, write_suite
from passnet.judge.task import NetSource, TaskGraph

MAX_GRAPHS_PER_NET = 1
"""Graphs that one capture adds to one task: the first range that is found."""

NORM = "torch.nn.functional.layer_norm"
RMS = ("Tensor.to", "Tensor.pow", "Tensor.mean", "operator.add", "torch.rsqrt", "operator.mul",
       "Tensor.to", "operator.mul")  # fmt: skip
ROTATE = ("operator.mul", "operator.getitem", "operator.getitem", "operator.neg", "torch.cat",
          "operator.mul", "operator.add")  # fmt: skip

TASKS: dict[str, tuple[str, ...]] = {
    "residual_layer_norm": ("operator.add", NORM),
    "rms_norm": RMS,
    "residual_rms_norm": ("operator.add", *RMS),
    "rotary_embedding": ("Tensor.unsqueeze", "Tensor.unsqueeze", *ROTATE, *ROTATE),
    "masked_softmax": ("operator.mul", "operator.add", "torch.nn.functional.softmax", "Tensor.to",
                       "torch.nn.functional.dropout"),
    "relative_bias_softmax": ("Tensor.view", "operator.getitem", "Tensor.view", "Tensor.permute",
                              "Tensor.contiguous", "Tensor.unsqueeze", "operator.add",
                              "torch.nn.functional.softmax", "torch.nn.functional.dropout"),
    "gelu_tanh": ("operator.mul", "torch.pow", "operator.mul", "operator.add", "operator.mul",
                  "torch.tanh", "operator.add", "operator.mul"),
    "gated_activation": ("Tensor.chunk", "operator.getitem", "operator.getitem",
                         "torch.nn.functional.silu", "operator.mul"),
    "window_partition": ("torch.roll", "torch._C._nn.pad", "Tensor.view", "Tensor.permute",
                         "Tensor.contiguous", "Tensor.view", "Tensor.view"),
    "window_reverse_residual": ("Tensor.view", "Tensor.view", "Tensor.permute", "Tensor.contiguous",
                                "Tensor.view", "operator.getitem", "Tensor.contiguous",
                                "torch.roll", "operator.add"),
    "batch_norm_add_relu": ("torch.nn.functional.batch_norm", "operator.iadd",
                            "torch.nn.functional.relu"),
    "batch_norm_silu_squeeze": ("torch.nn.functional.batch_norm", "torch.nn.functional.silu",
                                "Tensor.mean"),
    "squeeze_excite_scale": ("torch.sigmoid", "operator.mul"),
    "pool_concat": ("torch.nn.functional.max_pool2d", "torch.cat"),
}  # fmt: skip
"""Name of a task -> the ops of its graphs, in order."""


@dataclass(frozen=True)
class Net:
    """A net to capture: its factory and inputs."""

    name: str
    library: str
    make: Callable[[], torch.nn.Module]
    inputs: Callable[[torch.dtype], dict[str, Any]]
    tasks: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.bfloat16)


def timm_net(name: str, batch: int, side: int, *tasks: str) -> Net:
    """Return a net of timm on square images."""

    def make() -> torch.nn.Module:
        import timm

        return timm.create_model(name)

    def inputs(dtype: torch.dtype) -> dict[str, Any]:
        return {"x": torch.randn(batch, 3, side, side).to(dtype)}

    return Net(f"{name}_b{batch}_s{side}", "timm", make, inputs, tasks)


def transformers_net(
    config: str, model: str, batch: int, length: int, *tasks: str, **sizes: Any
) -> Net:
    """Return a text net of transformers with a configuration of its own size."""

    def make() -> torch.nn.Module:
        import transformers

        settings = getattr(transformers, config)(num_hidden_layers=2, **sizes)
        settings._attn_implementation = "eager"
        return getattr(transformers, model)(settings)

    def inputs(dtype: torch.dtype) -> dict[str, Any]:
        tokens = torch.randint(0, 1000, (batch, length))
        return {"input_ids": tokens, "use_cache": False}

    name = model.lower().removesuffix("model")
    return Net(f"{name}_b{batch}_l{length}", "transformers", make, inputs, tasks)


LLM = ("rms_norm", "residual_rms_norm", "rotary_embedding", "masked_softmax")
SWIN = ("relative_bias_softmax", "window_partition", "window_reverse_residual")

NETS = (
    transformers_net("LlamaConfig", "LlamaModel", 1, 256, *LLM, hidden_size=1024,
                     intermediate_size=2816, num_attention_heads=16, num_key_value_heads=16,
                     vocab_size=1000),
    transformers_net("Qwen2Config", "Qwen2Model", 2, 128, *LLM, hidden_size=896,
                     intermediate_size=2432, num_attention_heads=14, num_key_value_heads=2,
                     vocab_size=1000),
    transformers_net("MistralConfig", "MistralModel", 1, 384, *LLM, hidden_size=768,
                     intermediate_size=2048, num_attention_heads=12, num_key_value_heads=4,
                     vocab_size=1000),
    transformers_net("Phi3Config", "Phi3Model", 1, 256, "gated_activation", hidden_size=1024,
                     intermediate_size=2816, num_attention_heads=16, num_key_value_heads=16,
                     vocab_size=1000, pad_token_id=0),
    transformers_net("GPT2Config", "GPT2Model", 1, 256, "gelu_tanh", "residual_layer_norm",
                     n_embd=768, n_head=12, vocab_size=1000, bos_token_id=0, eos_token_id=0),
    transformers_net("GPTNeoConfig", "GPTNeoModel", 2, 128, "gelu_tanh", "residual_layer_norm",
                     hidden_size=512, num_layers=2, attention_types=[[["global", "local"], 1]],
                     num_heads=8, vocab_size=1000, bos_token_id=0, eos_token_id=0),
    timm_net("gmixer_24_224", 1, 224, "gated_activation"),
    timm_net("vit_small_patch16_224", 2, 224, "residual_layer_norm"),
    timm_net("swin_tiny_patch4_window7_224", 1, 224, *SWIN),
    timm_net("swin_small_patch4_window7_224", 2, 224, *SWIN),
    timm_net("swin_base_patch4_window7_224", 1, 224, *SWIN),
    timm_net("resnet18", 1, 224, "batch_norm_add_relu"),
    timm_net("resnet50", 1, 224, "batch_norm_add_relu"),
    timm_net("resnext50_32x4d", 2, 160, "batch_norm_add_relu"),
    timm_net("efficientnet_b0", 1, 224, "batch_norm_silu_squeeze", "squeeze_excite_scale"),
    timm_net("efficientnet_b2", 1, 260, "batch_norm_silu_squeeze", "squeeze_excite_scale"),
    timm_net("tf_efficientnetv2_s", 1, 224, "batch_norm_silu_squeeze", "squeeze_excite_scale"),
    timm_net("inception_v4", 1, 299, "pool_concat"),
    timm_net("inception_resnet_v2", 1, 299, "pool_concat"),
)  # fmt: skip


HELD_OUT = (
    transformers_net("LlamaConfig", "LlamaModel", 3, 72, *LLM, hidden_size=640,
                     intermediate_size=1728, num_attention_heads=10, num_key_value_heads=5,
                     vocab_size=1000),
    transformers_net("Phi3Config", "Phi3Model", 3, 56, "gated_activation", hidden_size=640,
                     intermediate_size=1728, num_attention_heads=10, num_key_value_heads=10,
                     vocab_size=1000, pad_token_id=0),
    transformers_net("GPT2Config", "GPT2Model", 3, 72, "gelu_tanh", "residual_layer_norm",
                     n_embd=640, n_head=10, vocab_size=1000, bos_token_id=0, eos_token_id=0),
    timm_net("swin_tiny_patch4_window7_224", 3, 224, *SWIN),
    timm_net("resnet18", 3, 160, "batch_norm_add_relu"),
    timm_net("efficientnet_b0", 3, 192, "batch_norm_silu_squeeze", "squeeze_excite_scale"),
    timm_net("inception_v4", 2, 235, "pool_concat"),
)  # fmt: skip
"""Nets in shapes that are in no other suite, chosen by hand: every task has two of them."""


def observed_specs(graph: Graph, values: Sequence[object]) -> dict[str, TensorSpec]:
    """Return the specs of all tensors of a `single_assignment` graph, run on `values`."""
    names = [op.output for op in graph.program.ops]
    specs = {spec.name: spec for spec in graph.tensors}

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> object:
            result = super().run_node(n)
            if "custom" in n.meta and isinstance(result, torch.Tensor):
                name = names[n.meta["custom"]["op"]]
                if name is not None:
                    specs[name] = spec_from_tensor(name, result)
            return result

    with torch.no_grad():
        Recorder(build(graph.program)).run(*values)
    return specs


def subgraphs(net: Net, dtype: torch.dtype) -> Iterator[TaskGraph]:
    """Return the subgraphs that a net adds to its tasks in one dtype."""
    torch.manual_seed(0)
    module = net.make().eval().to(dtype)
    inputs = net.inputs(dtype)
    if net.library == "timm":
        captures = capture_values(module, inputs["x"])
    else:
        captures = capture_values(module, **inputs)
    label = str(dtype).removeprefix("torch.")
    for task in net.tasks:
        num_found = 0
        for captured in captures:
            program = single_assignment(captured.graph.program)
            single = Graph(program, captured.graph.tensors)
            parent = parent_of(program, observed_specs(single, captured.values))
            targets = [op.target for op in program.ops]
            sequence = list(TASKS[task])
            for start in range(len(targets) - len(sequence) + 1):
                stop = start + len(sequence)
                if targets[start:stop] != sequence or num_found == MAX_GRAPHS_PER_NET:
                    continue
                try:
                    graph = cut_range(parent, start, stop)
                except CutError:
                    continue
                if not all(spec.dtype in ("float32", label, "int64") for spec in graph.tensors):
                    continue
                num_found += 1
                source = NetSource(net.name, net.library, version(net.library), start, stop)
                yield TaskGraph(task, f"{task}-{net.name}-{label}", graph, source)
        if not num_found:
            print(f"warning: {net.name} ({label}) has no {task}", file=sys.stderr)


def collect(nets: Sequence[Net]) -> list[TaskGraph]:
    """Return the subgraphs of some nets, without repetition, task by task."""
    graphs: dict[str, TaskGraph] = {}
    for net in nets:
        for dtype in net.dtypes:
            for task_graph in subgraphs(net, dtype):
                graphs.setdefault(fingerprints(task_graph.graph).full or "", task_graph)
            print(f"{net.name} {dtype}: {len(graphs)} graphs", flush=True)
    order = list(TASKS)
    return sorted(
        graphs.values(), key=lambda task_graph: (order.index(task_graph.task), task_graph.name)
    )


def main() -> None:
    """Build the suites and write them to the folder given."""
    folder = Path(sys.argv[1])
    import_torchvision()
    suite = make_suite("demo", collect(NETS))
    write_suite(folder / "demo.parquet", suite)
    for task in suite.tasks:
        print(f"{task.name}: {len(task.graphs)} graphs, {len(task.ops)} ops")
    first = [
        next(graph for graph in task.graphs if "float32" in graph.name) for task in suite.tasks
    ]
    write_suite(folder / "demo-small.parquet", make_suite("demo-small", first))
    held_out = make_suite("demo-held-out", collect(HELD_OUT))
    write_suite(folder / "demo-held-out.parquet", held_out)


if __name__ == "__main__":
    main()
