"""Nets that people deploy, in compilers and runtimes as their guides set them up, and in passnet.

Run it with `python -m benchmarks.deployed FOLDER [--net NAME ...] [--threads N] [--budget 10m]`,
and again to go on. Each net has a process of its own, in which all ways are timed in turns; its
record is a line of FOLDER/records.jsonl. `--table` prints what there is.

A way that serves several sizes is built once, with dynamic sizes. Weights do not change. By hand:
torch.compile, AOTInductor with freezing, OpenVINO, ONNX Runtime and, on AMD's processors, zentorch
with freezing in float32; with consent, NNCF and ONNX Runtime in int8, and OpenVINO in bfloat16.
passnet may then be off by 5e-2, on all inputs that it tries; of the others those count that are off
by no more, on the calls that are timed. `--net drawn` measures the 40 nets of `optimize_nets.txt`,
in float32 alone.
"""

import copy
import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.export import Dim, export
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

import passnet
from benchmarks.in_turns import Run, engines_of, main, tensors_of
from benchmarks.optimize import drawn
from passnet.core.hardware import is_of_amd
from passnet.core.jobs.run_plan import seconds_of
from passnet.data.capture.catalog import build_entry
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import input_values
from passnet.inductor.compiler import inductor_settings, inductor_settings_kept
from passnet.judge.timing.rounds import time_calls
from passnet.judge.verdict.precision import relative_error
from passnet.pages.tables.tables import Table

SECONDS = 4.0
"""Time for the rounds of each way."""

TOLERANCE = 5e-2

BY_HAND = ("compile", "aot", "openvino", "onnxruntime", "zentorch")
WITH_CONSENT = ("openvino_int8", "onnxruntime_int8", "openvino_bf16")


@dataclass(frozen=True)
class Deployed:
    """A net with the calls of a round; `dynamic` are the ranges of sizes, by axis."""

    net: torch.nn.Module
    calls: Sequence[tuple[torch.Tensor, ...]]
    dynamic: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    def shapes(self) -> Any:
        """Return the dynamic sizes as `torch.export` takes them; None without any."""
        if not self.dynamic:
            return None
        dims = {a: Dim(f"axis_{a}", min=low, max=high) for a, (low, high) in self.dynamic.items()}
        return tuple({a: dim for a, dim in dims.items() if a < x.dim()} for x in self.calls[0])

    def settings(self) -> dict[str, Any]:
        """Return the dynamic sizes as passnet takes them."""
        names = {0: "batch", 1: "length"}
        return {"dynamic": {names[axis]: ends for axis, ends in self.dynamic.items()}}


class First(torch.nn.Module):
    """A net of transformers that returns its first output."""

    def __init__(self, net: torch.nn.Module, **settings: Any) -> None:
        super().__init__()
        self.net, self.settings = net, settings

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """Return the first output."""
        return self.net(*tensors, **self.settings)[0]


class Stream(torch.nn.Module):
    """An LSTM that takes a frame and its state."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.last = torch.nn.LSTM(80, 512, 2, batch_first=True), torch.nn.Linear(512, 64)

    def forward(
        self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Return the output of a frame and the state after it."""
        out, (hidden, cell) = self.lstm(x, (hidden, cell))
        return self.last(out), hidden, cell


class Recommender(torch.nn.Module):
    """Dense features and 26 bags of ids, as in DLRM."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = torch.nn.ModuleList(
            torch.nn.EmbeddingBag(20_000, 64, mode="sum") for _ in range(26)
        )
        self.bottom = torch.nn.Sequential(
            torch.nn.Linear(13, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64), torch.nn.ReLU()
        )
        first, second = torch.tril_indices(27, 27, -1)
        self.register_buffer("below", 27 * first + second)
        self.top = torch.nn.Sequential(
            torch.nn.Linear(64 + 27 * 26 // 2, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)
        )

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Return a score for each row."""
        rows = [self.bottom(dense), *(bag(ids[:, n]) for n, bag in enumerate(self.bags))]
        stacked = torch.stack(rows, 1)
        pairs = torch.matmul(stacked, stacked.transpose(1, 2))
        below = pairs.flatten(1)[:, self.below]
        return self.top(torch.cat([rows[0], below], 1)).sigmoid()


def _images(name: str, *batches: int) -> Deployed:
    torchvision: Any = import_with_torchvision("torchvision")
    net = getattr(torchvision.models, name)().eval()
    return Deployed(net, [(torch.randn(batch, 3, 224, 224),) for batch in batches])


def _ids(config: Mapping[str, Any], batch: int, lengths: Sequence[int]) -> Deployed:
    transformers: Any = import_with_torchvision("transformers")
    net = First(transformers.BertModel(transformers.BertConfig(**config)), return_dict=False)
    calls = [(torch.randint(1000, 30_000, (batch, n)),) for n in lengths]
    dynamic = {1: (min(lengths), max(lengths))} if len(lengths) > 1 else {}
    return Deployed(net.eval(), calls, dynamic)


def _whisper() -> Deployed:
    transformers: Any = import_with_torchvision("transformers")
    config = transformers.WhisperConfig(
        d_model=512, encoder_layers=6, encoder_attention_heads=8, encoder_ffn_dim=2048
    )
    encoder = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return Deployed(First(encoder, return_dict=False).eval(), [(torch.randn(1, 80, 3000),)])


def _vit() -> Deployed:
    timm: Any = import_with_torchvision("timm")
    net = timm.create_model("vit_small_patch16_224").eval()
    return Deployed(net, [(torch.randn(1, 3, 224, 224),)])


def _yolo() -> Deployed:
    tasks: Any = import_with_torchvision("ultralytics.nn.tasks")
    net = tasks.DetectionModel("yolov8n.yaml", verbose=False).eval()
    net.model[-1].export, net.model[-1].format = True, "torchscript"
    return Deployed(net, [(torch.randn(1, 3, 320, 320),)])


def _mlp() -> Deployed:
    layers = torch.nn.Linear(50, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU()
    net = torch.nn.Sequential(*layers, torch.nn.Linear(256, 1))
    return Deployed(net.eval(), [(torch.randn(1, 50),)])


class Named(torch.nn.Module):
    """A net that takes its tensors in a row, wherever they are among its arguments."""

    def __init__(self, net: torch.nn.Module, leaves: Sequence[Any], spec: TreeSpec) -> None:
        super().__init__()
        self.net, self.spec = net, spec
        self.fixed = [None if isinstance(leaf, torch.Tensor) else (leaf,) for leaf in leaves]

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the tensors among the outputs."""
        given = iter(tensors)
        leaves = [next(given) if own is None else own[0] for own in self.fixed]
        args, kwargs = tree_unflatten(leaves, self.spec)
        return tuple(tensors_of(self.net(*args, **kwargs)))


def _drawn(entry: str) -> Deployed:
    made = build_entry(entry)
    leaves, spec = tree_flatten(input_values(made))
    return Deployed(Named(made.module.eval(), leaves, spec).eval(), [tuple(tensors_of(leaves))])


NETS: Mapping[str, Callable[[], Deployed]] = {
    "mlp": _mlp,
    "lstm_stream": lambda: Deployed(
        Stream().eval(), [(torch.randn(1, 1, 80), *torch.randn(2, 2, 1, 512))]
    ),
    "recommender": lambda: Deployed(
        Recommender().eval(), [(torch.randn(64, 13), torch.randint(20_000, (64, 26, 4)))]
    ),
    "vit_s": _vit,
    "yolov8n": _yolo,
    "whisper_encoder": _whisper,
    "resnet50_b1": lambda: _images("resnet50", 1),
    "resnet50_b8": lambda: _images("resnet50", 8),
    "convnext_tiny_b1": lambda: _images("convnext_tiny", 1),
    "convnext_tiny_b8": lambda: _images("convnext_tiny", 8),
    "embeddings_b32": lambda: _ids(
        {
            **{"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12},
            "intermediate_size": 1536,
        },
        32,
        [64],
    ),
    "bert_base": lambda: _ids({}, 1, range(16, 257, 16)),
}
"""The nets by name, the quick ones first. `benchmarks.decoding` has the decoders."""

DRAWN = {entry: partial(_drawn, entry) for entry in drawn()}
"""The 40 nets that were drawn from the catalog; they are measured in float32 alone."""


def _numpy(call: Sequence[torch.Tensor]) -> list[Any]:
    return [x.numpy() for x in call]


def _compile(case: Deployed, folder: Path) -> Callable[..., Any]:
    compiled: Any = torch.compile(case.net, dynamic=bool(case.dynamic) or None)
    return compiled


def _program(case: Deployed) -> Any:
    return export(case.net, tuple(case.calls[-1]), dynamic_shapes=_of_varargs(case), strict=False)


def _of_varargs(case: Deployed) -> Any:
    shapes = case.shapes()
    return shapes and ((shapes,) if isinstance(case.net, First) else shapes)


def _aot(case: Deployed, folder: Path) -> Callable[..., Any]:
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    path = aoti_compile_and_package(
        _program(case),
        package_path=str(folder / "net.pt2"),
        inductor_configs={"freezing": True},
    )
    return aoti_load_package(path)


def _zentorch(case: Deployed, folder: Path) -> Callable[..., Any]:
    if not is_of_amd():
        raise RuntimeError("zentorch is for AMD's processors")
    import zentorch  # noqa: F401 (it registers itself)

    compiled: Any = torch.compile(case.net, backend="zentorch", dynamic=bool(case.dynamic) or None)
    with inductor_settings_kept(), inductor_settings({"freezing": True}):
        for call in case.calls:
            compiled(*call)
    return compiled


def _onnx(case: Deployed, folder: Path) -> Path:
    path = folder / "net.onnx"
    if not path.exists():
        torch.onnx.export(_program(case), (), path, dynamo=True, verbose=False)
    return path


def _session(path: Path) -> Callable[..., Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(str(path), options)
    names = [port.name for port in session.get_inputs()]

    def run(*call: torch.Tensor) -> list[torch.Tensor]:
        outputs = session.run(None, dict(zip(names, _numpy(call), strict=True)))
        return [torch.from_numpy(output) for output in outputs]

    return run


def _onnxruntime(case: Deployed, folder: Path) -> Callable[..., Any]:
    return _session(_onnx(case, folder))


def _onnxruntime_int8(case: Deployed, folder: Path) -> Callable[..., Any]:
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(_onnx(case, folder), folder / "int8.onnx")
    return _session(folder / "int8.onnx")


def _openvino_model(case: Deployed) -> Any:
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino.convert_model(_program(case))


def _openvino_run(net: Any, **settings: Any) -> Callable[..., Any]:
    import openvino

    own = {
        **{"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": torch.get_num_threads()},
        **settings,
    }
    compiled = openvino.Core().compile_model(net, "CPU", own)
    return lambda *call: [torch.from_numpy(each) for each in compiled(_numpy(call)).values()]


def _openvino(case: Deployed, folder: Path) -> Callable[..., Any]:
    return _openvino_run(_openvino_model(case), INFERENCE_PRECISION_HINT="f32")


def _openvino_bf16(case: Deployed, folder: Path) -> Callable[..., Any]:
    return _openvino_run(_openvino_model(case), INFERENCE_PRECISION_HINT="bf16")


def _openvino_int8(case: Deployed, folder: Path) -> Callable[..., Any]:
    net = _openvino_model(case)
    import nncf

    samples = [_numpy(call) for call in case.calls for _ in range(max(1, 8 // len(case.calls)))]
    kind = nncf.ModelType.TRANSFORMER if isinstance(case.net, First) else None
    return _openvino_run(nncf.quantize(net, nncf.Dataset(samples), model_type=kind))


WAYS: Mapping[str, Callable[[Deployed, Path], Callable[..., Any]]] = {
    "compile": _compile,
    "aot": _aot,
    "openvino": _openvino,
    "onnxruntime": _onnxruntime,
    "zentorch": _zentorch,
    "openvino_int8": _openvino_int8,
    "onnxruntime_int8": _onnxruntime_int8,
    "openvino_bf16": _openvino_bf16,
}


def _error(run: Callable[..., Any], case: Deployed, right: Sequence[list[torch.Tensor]]) -> float:
    """Return the largest relative error of an output, as passnet takes it."""
    return max(
        relative_error(own.detach().double().numpy(), true.double().numpy())
        for call, trues in zip(case.calls, right, strict=True)
        for own, true in zip(tensors_of(run(*call)), trues, strict=False)
    )


def measure(name: str, threads: int, budget: str) -> dict[str, Any]:
    """Build and time one net in every way, in this process."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    case = (NETS | DRAWN)[name]()
    consents = () if name in DRAWN else WITH_CONSENT
    record: dict[str, Any] = {"net": name, "threads": threads, "ways": {}}
    runs: dict[str, Callable[..., Any]] = {"eager": case.net}
    with tempfile.TemporaryDirectory() as made, torch.no_grad():
        right = [tensors_of(case.net(*call)) for call in case.calls]
        for way in (*BY_HAND, *consents):
            start = time.perf_counter()
            try:
                own = copy.deepcopy(case)
                run = WAYS[way](own, Path(made))
                error = _error(run, case, right)
                for call in case.calls:
                    run(*call)
                runs[way] = run
                record["ways"][way] = {"build_s": time.perf_counter() - start, "error": error}
            except Exception as cause:  # noqa: BLE001 (of foreign code; the record says why)
                record["ways"][way] = {"reason": f"{type(cause).__name__}: {cause}"[:300]}
        ours = {"passnet": {}, "passnet_consent": {"tolerance": TOLERANCE}}
        for way, settings in [*ours.items()][: 1 + bool(consents)]:
            start = time.perf_counter()
            asked = {**case.settings(), **settings, "freeze": True, "budget_s": seconds_of(budget)}
            middle = case.calls[len(case.calls) // 2]
            fast = passnet.optimize(case.net, *middle, **asked)
            runs[way] = fast
            spent = time.perf_counter() - start
            error = _error(fast, case, right)
            record["ways"][way] = {"build_s": spent, "error": error, "chosen": engines_of(fast)}

        def all_calls(run: Callable[..., Any]) -> Callable[[], None]:
            return lambda: [run(*call) for call in case.calls] and None

        ways = {way: all_calls(run) for way, run in runs.items()}
        times = time_calls(ways, SECONDS, always=tuple(ways))
    record["ways"].setdefault("eager", {"error": 0.0})
    for way in runs:
        record["ways"][way]["ms"] = times.ms(way)
    record["max_rss_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return record


def tables(records: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Yield the tables of float32 and of lower precision, for each number of threads."""
    for threads in sorted({record["threads"] for record in records}):
        own = [record for record in records if record["threads"] == threads]
        own.sort(key=lambda record: [*NETS, *DRAWN].index(record["net"]))
        for title, rivals, ours in (
            ("float32", ("eager", *BY_HAND), "passnet"),
            ("with consent", ("eager", *BY_HAND, *WITH_CONSENT), "passnet_consent"),
        ):
            shown = rivals if ours == "passnet" else ("eager", *WITH_CONSENT)
            rows, gains = [], []
            for record in own:
                ways = record["ways"]
                if ours not in ways:
                    continue
                best = min(
                    facts["ms"]
                    for way, facts in ways.items()
                    if way in rivals and "ms" in facts and facts["error"] <= TOLERANCE
                )
                gains.append(best / ways[ours]["ms"])
                cells = [_ms(ways.get(way, {})) for way in shown]
                chosen = ", ".join(ways[ours]["chosen"]) or "eager"
                rows.append((record["net"], *cells, _ms(ways[ours]), f"{gains[-1]:.2f}", chosen))
            mean = math.exp(sum(map(math.log, gains)) / len(gains)) if gains else math.nan
            yield Table(
                f"Milliseconds of a round of calls, {title}, {threads} threads",
                ("net", *shown, "passnet", "over the best", "chosen"),
                rows,
                f"Geometric mean over the best by hand: {mean:.3f}.",
            )


def _ms(way: Mapping[str, Any]) -> str:
    if "ms" not in way:
        return "–"
    error = way.get("error", 0.0)
    return f"{way['ms']:.3f}" + (f" ({error:.0e})" if error > 1e-4 else "")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
        sys.exit()
    main(Run("benchmarks.deployed", tuple(NETS), tables, tuple(DRAWN)), str(__doc__))
