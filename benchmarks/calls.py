"""What it costs to find out whether a call fits: our check, FastNet, and torch.compile's guards.

Run it with `make bench BENCH=calls`. All ways return a tensor that was made before, so that nothing
but the call itself is timed; each gets its turn in every round. Hot: in a loop of its own. Cold:
one call after 64 MiB of other memory were read, the worst that a call finds after a large net.

A second table is of folded weights that may change: the check with the kernel telling which pages
were written, and with all bytes summed. A third one is of a small net in runtimes: as their guides
call them, with tensors of torch in and out, and as the returned net does. A fourth one is of passes
inside `torch.compile`: chains of GELUs of 16 numbers, where one more costs little but its call.
"""

import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console
from torch.utils._pytree import tree_flatten

from passnet.inductor.compiler import empty_strided_cpu
from passnet.optimizer.backends.backend import build_backend
from passnet.optimizer.backends.openvino import import_openvino
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.call_check import input_signature, python_check
from passnet.optimizer.call.compiled_check import compiled_check, num_watched_bytes
from passnet.optimizer.call.fast_net import FastNet, served
from passnet.optimizer.call.net_call import BuiltBackend, NetCall, weights_of
from passnet.optimizer.call.values import flattened
from passnet.pages.tables.tables import Table, print_table
from passnet.passes.inductor_pass import InductorPass
from passnet.passes.load import loaded_passes
from passnet.passes.match.pattern import Pass

NUM_WEIGHTS = (10, 300)
FOLDED = ((1, 4), (25, 4), (100, 1), (400, 1))
"""How many weights are folded in, and of how many MiB each."""

GELU = Path(__file__).parents[1] / "examples/passes/gelu_tanh"
NUM_GELUS = (1, 9)

NUM_ROUNDS = 9
ROUND_S = 0.02
NUM_COLD = 60
MEMORY_FLOATS = 16 * 2**20


class Net(torch.nn.Module):
    """As many linear layers as make up a number of weights; each but the first adds its bias."""

    def __init__(self, num_weights: int) -> None:
        super().__init__()
        linears = [torch.nn.Linear(4, 4) for _ in range(num_weights // 2)]
        self.layers = torch.nn.ModuleList(
            torch.nn.Sequential(each, torch.nn.ReLU()) for each in linears
        )

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The layers on the sum of the inputs."""
        out = torch.stack(inputs).sum(0)
        for layer in self.layers:
            out = layer(out)
        return out


def calls_table() -> Table:
    """One row for each way to call and number of weights."""
    table = Table(
        "A call of a net of 4 inputs, engine empty",
        ("weights", "modules", "way", "hot us", "cold us"),
        note=f"Hot: median of {NUM_ROUNDS} interleaved rounds. Cold: median of {NUM_COLD} calls.",
    )
    memory = torch.zeros(MEMORY_FLOATS)
    for num_weights in NUM_WEIGHTS:
        net = Net(num_weights).eval()
        with torch.no_grad():
            ways = _ways(net, [torch.randn(3, 4) for _ in range(4)])
            hot: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(NUM_ROUNDS):
                for name, call in ways.items():
                    hot[name].append(_hot_us(call))
            for name, call in ways.items():
                table.rows.append((
                    str(num_weights), str(len(list(net.modules()))), name,
                    f"{statistics.median(hot[name]):.2f}", f"{_cold_us(call, memory):.1f}",
                ))  # fmt: skip
    return table


def folded_table() -> Table:
    """One row for each number and size of folded weights."""
    table = Table(
        "The check of folded weights that may change",
        ("weights", "MiB", "watched MiB", "watched us", "summed us", "cold: watched", "summed"),
        note="Watched MiB: of which the kernel tells whether they were written.",
    )
    memory, x = torch.zeros(MEMORY_FLOATS), torch.randn(3, 4)
    for num_weights, mib in FOLDED:
        net = torch.nn.Module()
        for number in range(num_weights):
            net.register_buffer(f"weight_{number}", torch.randn(mib * 2**18))
        leaves, args_spec = tree_flatten(((x,), {}))
        entry = BuiltBackend(
            "empty", args_spec, tuple(leaves), lambda tensors: tensors, flattened(x)[1],
            weights_of(net), is_frozen=True, compares=True,
        )  # fmt: skip
        form = input_signature(net, entry)
        checks = [compiled_check(form), compiled_check(form, is_to_watch=False)]
        calls = [partial(check, (x,), {}) for check in checks]
        hot: list[list[float]] = [[], []]
        for _ in range(NUM_ROUNDS):
            for times, call in zip(hot, calls, strict=True):
                times.append(_hot_us(call))
        figures = [*map(statistics.median, hot), *(_cold_us(call, memory) for call in calls)]
        watched = num_watched_bytes(checks[0]) / 2**20
        table.rows.append((
            str(num_weights), str(num_weights * mib), f"{watched:.1f}",
            *(f"{figure:.1f}" for figure in figures),
        ))  # fmt: skip
    return table


def runtimes_table(folder: Path) -> Table:
    """One row for each installed runtime."""
    table = Table(
        "A call of an MLP of 50, 256, 256 and 1 features, one row, in microseconds",
        ("runtime", "eager", "by hand", "ours", "ours, weights compared"),
        note=f"Medians of {NUM_ROUNDS} interleaved rounds, one thread.",
    )
    torch.set_num_threads(1)
    sizes = (50, 256, 256, 1)
    layers = [
        layer
        for pair in zip(sizes, sizes[1:], strict=False)
        for layer in (torch.nn.Linear(*pair), torch.nn.ReLU())
    ]
    net, x = torch.nn.Sequential(*layers[:-1]).eval(), torch.randn(1, 50)
    for name, by_hand in {"onnxruntime_frozen": _onnxruntime, "openvino_frozen": _openvino}.items():
        if BACKENDS[name].missing:
            continue
        with torch.no_grad():
            built = build_backend(name, BACKENDS[name], NetCall(net, (x,), {}), folder / name)
            plain = FastNet(net, [served(built, net)])
            compared = FastNet(net, [replace(served(built, net), compares=True)])
            ways = [partial(call, x) for call in (net, by_hand(folder / name), plain, compared)]
            hot: list[list[float]] = [[] for _ in ways]
            for _ in range(NUM_ROUNDS):
                for times, call in zip(hot, ways, strict=True):
                    times.append(_hot_us(call))
        table.rows.append((name, *(f"{statistics.median(times):.1f}" for times in hot)))
    return table


def passes_table(folder: Path) -> Table:
    """One row for each way to call a kernel, from Python or inside a compiled graph."""
    table = Table(
        "Chains of GELUs of 16 numbers, by the kernel of an example, in microseconds",
        ("way", *(f"{count} of them" for count in NUM_GELUS), "one more"),
    )
    torch.set_num_threads(1)
    opaque = _gelu_with(folder / "opaque", ("x = x.contiguous()", "x.data_ptr()"))
    late = _gelu_with(  # as folders of the library make their kernels
        folder / "late",
        ("import torch\n", "import functools\n\nimport torch\n"),
        ("GELU_TANH = cpp", "@functools.cache\ndef kernels():\n    return cpp"),
        ("GELU_TANH[", "kernels()["),
    )
    x, ways = torch.randn(16), {}
    [kernel] = [pass_ for pass_ in loaded_passes(GELU) if isinstance(pass_, Pass)]
    ways["Python"] = [partial(_chain, kernel.replacement, x, count) for count in NUM_GELUS]
    of_compile = {"": GELU, ", kernel made at the first call": late, ", opaque": opaque}
    for way, passes in of_compile.items():
        calls = [partial(_compiled(count, passes, x), x) for count in NUM_GELUS]
        ways[f"torch.compile{way}"] = calls
    hot: dict[str, list[list[float]]] = {way: [[] for _ in NUM_GELUS] for way in ways}
    for _ in range(NUM_ROUNDS):
        for way, calls in ways.items():
            for times, call in zip(hot[way], calls, strict=True):
                times.append(_hot_us(call))
    for way, rounds in hot.items():
        few, many = map(statistics.median, rounds)
        more = (many - few) / (NUM_GELUS[1] - NUM_GELUS[0])
        table.rows.append((way, f"{few:.1f}", f"{many:.1f}", f"{more:.2f}"))
    op, out = kernel.kernel_ops[0](), torch.empty_like(x)
    result = partial(empty_strided_cpu, (16,), (1,), torch.float32)
    parts = (partial(op, x, out, 0), partial(op, x, out, 16), result)
    rounds = zip(*([_hot_us(part) for part in parts] for _ in range(NUM_ROUNDS)), strict=True)
    empty_us, full_us, result_us = map(statistics.median, rounds)
    note = (
        f"Medians of {NUM_ROUNDS} interleaved rounds, one thread. The kernel's op takes "
        f"{empty_us:.2f} microseconds with nothing to do, {full_us:.2f} for a GELU, and memory for "
        f"a result {result_us:.2f}."
    )
    return replace(table, note=note)


def _gelu_with(folder: Path, *changes: tuple[str, str]) -> Path:
    """Write the example with some of its text replaced."""
    shutil.copytree(GELU, folder)
    [path] = folder.glob("*.py")
    text = path.read_text(encoding="utf-8")
    for former, new in changes:
        assert former in text, "the example has that"
        text = text.replace(former, new)
    path.write_text(text, encoding="utf-8")
    return folder


def _compiled(count: int, passes: Path, x: torch.Tensor) -> Callable[..., Any]:
    own = InductorPass(passes)
    options = {"pre_grad_custom_pass": own}
    compiled: Callable[..., Any] = torch.compile(
        partial(_chain, _gelu, count=count), options=options
    )
    with torch._inductor.config.patch(force_disable_caches=True):  # which would skip the pass
        compiled(x)
    assert own.num_matches == count, "each is replaced"
    return compiled


def _chain(link: Callable[..., torch.Tensor], x: torch.Tensor, count: int) -> torch.Tensor:
    for _ in range(count):
        x = link(x)
    return x


def _gelu(x: torch.Tensor) -> torch.Tensor:
    half = 0.5 * x
    return half * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))


def _onnxruntime(folder: Path) -> Callable[[torch.Tensor], torch.Tensor]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "net.onnx"), options)
    name = session.get_inputs()[0].name
    return lambda x: torch.from_numpy(session.run(None, {name: x.numpy()})[0])


def _openvino(folder: Path) -> Callable[[torch.Tensor], torch.Tensor]:
    core = import_openvino().Core()
    settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    net = core.compile_model(core.read_model(folder / "net.xml"), "CPU", settings)
    return lambda x: torch.from_numpy(net([x.numpy()])[0])


def _ways(net: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> dict[str, Callable[[], Any]]:
    args, out = tuple(inputs), torch.zeros(3, 4)
    leaves, args_spec = tree_flatten((args, {}))
    entry = BuiltBackend(
        "empty", args_spec, tuple(leaves), lambda tensors: (out,), flattened(out)[1],
        weights_of(net),
    )  # fmt: skip
    form, fast = input_signature(net, entry), FastNet(net, [entry])
    in_cpp, in_python = compiled_check(form), python_check(form)
    torch._dynamo.reset()
    compiled: Any = torch.compile(net, backend=lambda module, example: lambda *args: (out,))
    empty = _Empty(out)
    assert compiled(*args) is out and fast(*args) is out
    return {
        "a module that does nothing": lambda: empty(*args),
        "check": lambda: in_cpp(args, {}),
        "check in Python": lambda: in_python(args, {}),
        "FastNet": lambda: fast(*args),
        "torch.compile": lambda: compiled(*args),
    }


class _Empty(torch.nn.Module):
    def __init__(self, out: torch.Tensor) -> None:
        super().__init__()
        self.out = out

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        return self.out


def _hot_us(call: Callable[[], Any]) -> float:
    num, start = 0, time.perf_counter()
    while time.perf_counter() - start < ROUND_S:
        for _ in range(20):
            call()
        num += 20
    return (time.perf_counter() - start) / num * 1e6


def _cold_us(call: Callable[[], Any], memory: torch.Tensor) -> float:
    times = []
    for _ in range(NUM_COLD):
        memory.sum()
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(times)


if __name__ == "__main__":
    with TemporaryDirectory() as made, torch.no_grad():
        for each in (
            calls_table(),
            folded_table(),
            runtimes_table(Path(made)),
            passes_table(Path(made)),
        ):
            print_table(Console(width=100), each)
