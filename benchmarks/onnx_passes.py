"""Passes inside ONNX Runtime: matches, and times against the plain file of a net.

`python -m benchmarks.onnx_passes NET` prints a row of the table of `docs/inductor.md`, for one of
bert, gpt2, llama and resnet. Weights are random; one thread. In each round every session runs once.
"""

import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import passnet
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.passes.onnx_op import DOMAIN

EXAMPLES = Path(__file__).parents[1] / "examples" / "passes"
SECONDS = 20
OF_GPT = "gelu_tanh", "residual_layer_norm"
PASSES = {
    "bert": OF_GPT, "gpt2": OF_GPT, "llama": ("residual_rms_norm", "rms_norm"),
    "resnet": ("batch_norm_add_relu",),
}  # fmt: skip


class FirstOutput(torch.nn.Module):
    """A net of transformers, of whose outputs only the first is returned."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.net = net
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the first output."""
        first: torch.Tensor = self.net(x)[0]
        return first


def made(name: str) -> tuple[torch.nn.Module, torch.Tensor]:
    """Return a net by its name, and its argument."""
    import_with_torchvision("transformers")
    import transformers as tf

    torch.manual_seed(0)
    sizes: dict[str, Any] = {"vocab_size": 1000}
    if name == "resnet":
        config = tf.ResNetConfig(
            embedding_size=32, hidden_sizes=[64, 128], depths=[2, 2], layer_type="basic"
        )
        return FirstOutput(tf.ResNetModel(config)), torch.randn(1, 3, 96, 96)
    if name == "gpt2":
        sizes |= {"n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 128}
        config = tf.GPT2Config(**sizes, use_cache=False, attn_implementation="eager")
        net = tf.GPT2Model(config)
    else:
        sizes |= {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4}
        if name == "bert":
            config = tf.BertConfig(**sizes, intermediate_size=1024, hidden_act="gelu_new")
            net = tf.BertModel(config, add_pooling_layer=False)
        else:
            sizes |= {"intermediate_size": 688, "num_key_value_heads": 2}
            net = tf.LlamaModel(tf.LlamaConfig(**sizes, use_cache=False))
    return FirstOutput(net), torch.randint(0, 1000, (1, 64))


def examples(name: str) -> dict[str, tuple[Any, ...]]:
    """Return for each pass of a net arguments of its pattern, with the literals of the net."""
    x, image, weight, eps = torch.rand(2, 3, 256), torch.rand(2, 3, 4, 4), torch.rand(256), 1e-6
    layer_eps = 1e-12 if name == "bert" else 1e-5
    return {
        "gelu_tanh": (x,),
        "residual_layer_norm": (x, x, weight, weight, (256,), layer_eps),
        "residual_rms_norm": (x, x, weight, eps, torch.float32),
        "rms_norm": (x, weight, eps, torch.float32),
        "batch_norm_add_relu": (image, *[torch.rand(3)] * 4, image, 1e-5),
    }


def num_by_rules(name: str, model: Any) -> int:
    """Return how many kernels rules put into the plain file of a net."""
    from onnxscript.rewriter import rewrite

    for folder in PASSES[name]:
        rewrite(model, passnet.onnx_rules(EXAMPLES / folder, *examples(name)[folder]))
    return sum(node.domain == DOMAIN for node in model.graph)


def session(path: Path, library: Path | None = None) -> Any:
    """Return a session of one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if library is not None:
        options.register_custom_ops_library(str(library))
    return onnxruntime.InferenceSession(path, options)


def main(name: str, folder: Path) -> None:
    """Print the row of a net, and how far each session's output is from eager torch."""
    net, x = made(name)
    passes = [EXAMPLES / each for each in PASSES[name]]
    files = passnet.onnx_with_passes(net, x, passes=passes, path=folder / "net.onnx")
    with torch.no_grad():
        expected = net(x)
        plain = torch.onnx.export(net, (x,), dynamo=True, verbose=False)
    plain.save(folder / "plain.onnx")
    sessions = [session(folder / "plain.onnx"), session(files.net, files.library)]
    sessions.append(session(folder / "plain.onnx"))
    feeds = [{run.get_inputs()[0].name: x.numpy()} for run in sessions]
    for run, feed in zip(sessions, feeds, strict=True):
        output = torch.from_numpy(run.run(None, feed)[0])
        print(f"largest difference {(output - expected).abs().max().item():.1e}")
    times_ms: list[list[float]] = [[] for _ in sessions]
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for times, run, feed in zip(times_ms, sessions, feeds, strict=True):
            start = time.perf_counter()
            run.run(None, feed)
            times.append((time.perf_counter() - start) * 1000)
    first, second = (
        statistics.median(a / b for a, b in zip(times_ms[0], times, strict=True))
        for times in times_ms[1:]
    )
    plain_ms, with_ms = (statistics.median(times) for times in times_ms[:2])
    counts = f"{files.num_kernels} | {num_by_rules(name, plain.model)}"
    speeds = f"{plain_ms:.2f} | {with_ms:.2f} | {first:.2f} | {second:.2f}"
    print(f"| {name} | {counts} | {speeds} |  of {len(times_ms[0])} rounds")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PASSES:
        sys.exit(f"name one of {', '.join(PASSES)}")
    torch.set_num_threads(1)
    with TemporaryDirectory() as temporary:
        main(sys.argv[1], Path(temporary))
