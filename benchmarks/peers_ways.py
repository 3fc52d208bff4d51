"""The nets and the ways of each peer that `benchmarks.peers` measures.

Olive: its command `auto-opt` as it is, with the newer exporter, and for int8; `optimize`; and a
workflow that searches passes for latency with a goal of accuracy. pruna: `smash` with each
algorithm that runs on CPUs; the open-source package leaves the choice to the user. passnet: in the
net's own precision, with frozen weights.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import torch

from benchmarks.in_turns import engines_of
from passnet.data.capture.mismatched_wheels import import_with_torchvision

BUDGET_S = 300.0
NET = "PASSNET_PEERS_NET"
"""The environment variable by which Olive's script knows the net."""


@dataclass(frozen=True)
class Case:
    """A net, an example of its arguments, and arguments of another size along `dynamic` axes."""

    net: torch.nn.Module
    args: tuple[torch.Tensor, ...]
    other: tuple[torch.Tensor, ...]
    dynamic: tuple[int, ...] = (0,)

    def fresh(self, seed: int) -> tuple[torch.Tensor, ...]:
        """Return other values of the example's sizes."""
        own = torch.Generator().manual_seed(seed + 1)
        return tuple(
            torch.randn(x.shape, generator=own)
            if x.is_floating_point()
            else torch.randint(1000, 30_000, x.shape, generator=own)
            for x in self.args
        )


@dataclass(frozen=True)
class Result:
    """What a peer returns: how to call it, its type, and what the peer chose."""

    run: Callable[..., Any]
    kind: str
    chosen: str = ""


Build: TypeAlias = Callable[[Case, Path], Result]
"""One way of a peer: it gets a case and an empty folder."""


def _bert() -> Case:
    transformers: Any = import_with_torchvision("transformers")
    net = transformers.BertModel(transformers.BertConfig(num_hidden_layers=4)).eval()
    ids, fewer = torch.randint(1000, 30_000, (1, 128)), torch.randint(1000, 30_000, (1, 64))
    return Case(net, (ids,), (fewer,), (0, 1))


def _resnet() -> Case:
    torchvision: Any = import_with_torchvision("torchvision")
    net = torchvision.models.resnet50().eval()
    return Case(net, (torch.randn(1, 3, 224, 224),), (torch.randn(2, 3, 224, 224),))


def _mlp() -> Case:
    layers = torch.nn.Linear(50, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()
    net = torch.nn.Sequential(*layers, torch.nn.Linear(256, 1)).eval()
    return Case(net, (torch.randn(1, 50),), (torch.randn(7, 50),))


NETS: Mapping[str, Callable[[], Case]] = {
    "mlp": _mlp,
    "bert_4_layers": _bert,
    "resnet50": _resnet,
}


def _onnx(path: Path, chosen: str, settings: Mapping[str, Any] | None = None) -> Result:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    for name, value in (settings or {}).get("session_options", {}).items():
        setattr(options, name, value)
    session = onnxruntime.InferenceSession(str(path), options)
    (name,) = [port.name for port in session.get_inputs()]

    def run(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.from_numpy(each) for each in session.run(None, {name: x.numpy()})]

    return Result(run, "ONNX file", chosen)


def _olive_command(*words: str) -> Build:
    def build(case: Case, folder: Path) -> Result:
        from olive.cli.launcher import main as olive

        script = str(Path(__file__).resolve().with_name("peers_olive.py"))
        out = folder / "-".join(words)
        olive([*words, "--model_script", script, "--output_path", str(out), "--disable_telemetry"])
        return _onnx(next(out.rglob("*.onnx")), "fixed list of passes")

    return build


def _olive_search(case: Case, folder: Path) -> Result:
    import olive

    from benchmarks.peers_olive import workflow

    found: Any = olive.run(workflow(folder, folder / "-".join(_DYNAMO) / "model.onnx"))
    best = found.get_best_candidate()
    chosen = f"{best.from_pass()}, {json.dumps(best.metrics_value)}"
    return _onnx(Path(best.model_path), chosen, best.get_inference_config())


def _pruna(*algorithms: str, **settings: Mapping[str, Any]) -> Build:
    def build(case: Case, folder: Path) -> Result:
        from pruna import SmashConfig, smash

        config = SmashConfig({**dict.fromkeys(algorithms, {}), **settings}, device="cpu")
        smashed: Any = smash(case.net, config)
        return Result(smashed, type(smashed).__name__)

    return build


def _passnet(**consent: float) -> Build:
    def build(case: Case, folder: Path) -> Result:
        import passnet

        fast = passnet.optimize(case.net, *case.args, freeze=True, budget_s=BUDGET_S, **consent)
        return Result(fast, type(fast).__name__, ", ".join(engines_of(fast)))

    return build


_TUNED = {"mode": "max-autotune-no-cudagraphs"}
_DYNAMO = ("auto-opt", "--use_dynamo_exporter")
PEERS: Mapping[str, Mapping[str, Build]] = {
    "passnet": {"optimize": _passnet(), "with consent": _passnet(tolerance=5e-2)},
    "olive": {
        "optimize": _olive_command("optimize", "--exporter", "dynamo_exporter"),
        "auto-opt": _olive_command("auto-opt"),
        "auto-opt dynamo": _olive_command(*_DYNAMO),
        "auto-opt dynamo int8": _olive_command(*_DYNAMO, "--precision", "int8"),
        "search": _olive_search,
    },
    "pruna": {
        "torch_compile": _pruna("torch_compile"),
        "torch_compile max-autotune": _pruna(torch_compile=_TUNED),
        "torch_compile openvino": _pruna(torch_compile={"backend": "openvino"}),
        "half + torch_compile": _pruna("half", torch_compile=_TUNED),
        "torch_dynamic": _pruna("torch_dynamic"),
        "torchao + torch_compile": _pruna("torchao", torch_compile=_TUNED),
    },
}
DISTRIBUTIONS = {"passnet": "passnet", "olive": "olive-ai", "pruna": "pruna"}
