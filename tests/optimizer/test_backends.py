import gc
import shutil
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo import register_backend
from torch._inductor import config as inductor_config

from passnet.core.hardware import is_of_amd
from passnet.errors import BackendError
from passnet.optimizer.backends.backend import build_backend, load_backend
from passnet.optimizer.backends.dynamo import compile_by
from passnet.optimizer.backends.graphs import CHOSEN_FOLDER, captured_graphs
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.choose.ranges import net_ranges
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings
from passnet.passes.folder import LIST_FILE
from tests.optimizer.nets import block, loop


def assert_right(call: NetCall, outputs: object) -> None:
    torch.testing.assert_close(list(outputs), call.outputs)  # type: ignore[call-overload]


@pytest.mark.parametrize("engine", ["eager", "graph"])
def test_a_way_gives_what_the_net_does_in_its_order(engine: str, tmp_path: Path) -> None:
    call = NetCall(block(), (torch.randn(2, 8),), {"y": torch.randn(2, 8), "scale": 3.0})
    entry = build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    assert_right(call, entry.run(call.tensors()))
    other = [torch.randn(2, 8), torch.randn(2, 8)]
    torch.testing.assert_close(list(entry.run(other)), call.eager_outputs(call.filled(other)))
    assert entry(call.tensors()).keys() == {"first", "second", "again"}


def test_the_graph_reads_weights_as_they_are(tmp_path: Path) -> None:
    net = block()
    call = NetCall(net, (torch.randn(2, 8),), {})
    entry = build_backend("graph", BACKENDS["graph"], call, tmp_path / "graph")
    with torch.no_grad():
        net.linear.weight.add_(1.0)
    torch.testing.assert_close(list(entry.run(call.tensors())), call.eager_outputs(call.leaves))


def broken(x: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x) + 1
    torch._dynamo.graph_break()
    return torch.tanh(y)


def test_a_net_of_several_graphs_has_no_graph(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="Dynamo finds no one graph"):
        build_backend(
            "graph", BACKENDS["graph"], NetCall(broken, (torch.ones(3),), {}), tmp_path / "graph"
        )


def test_a_net_that_writes_into_a_buffer_runs_eagerly(tmp_path: Path) -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return x * self.count

    call = NetCall(Counter().eval(), (torch.ones(3),), {})
    with pytest.raises(BackendError, match="writes into count"):
        build_backend("graph", BACKENDS["graph"], call, tmp_path / "graph")
    written = NetCall(lambda x: x.add_(1), (torch.ones(3),), {})
    assert written.written == ["input 1"]


@pytest.mark.slow
@pytest.mark.xdist_group("inductor")
def test_an_aot_package_reads_weights_of_one_value(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)).eval()
    call = NetCall(net, (torch.randn(1, 8),), {})
    entry = build_backend("aot", BACKENDS["aot"], call, tmp_path / "aot")
    with torch.no_grad():
        net[2].bias.add_(1)
    torch.testing.assert_close(list(entry.run(call.tensors())), call.eager_outputs(call.leaves))


class MaskedScores(torch.nn.Module):
    """Numbers are written into parts of a tensor, as into the masks of shifted windows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.scale = torch.nn.Linear(8, 8), torch.full((2,), 2.0)  # not a buffer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of windows."""
        mask = x.new_zeros((4, 8))
        for row in range(2):
            for column in range(3):
                mask[2 * row : 2 * row + 2, 3 * column : 3 * column + 3] = 3 * row + column
        return torch.softmax(self.linear(x) * self.scale[0] + mask, -1)


@pytest.mark.xdist_group("inductor")
@pytest.mark.parametrize("engine", ["aot", "aot_packed"])
def test_a_package_has_the_constants_of_a_graph(engine: str, tmp_path: Path) -> None:
    net = MaskedScores().eval()
    call = NetCall(net, (torch.randn(4, 8),), {})
    build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    entry = load_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    other = [torch.randn(4, 8)]
    for _ in range(2):
        expected = call.eager_outputs(call.filled(other))
        torch.testing.assert_close(list(entry.run([*other])), expected)
        net.scale.mul_(3.0)


class Permuted(torch.nn.Module):
    """A part that holds tensors in a list and a dict: an order, and a shift of zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.orders, self.shifts = [torch.arange(8)], {"all": torch.zeros(8)}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, self.orders[0]] + self.shifts["all"]


@pytest.mark.xdist_group("inductor")
@pytest.mark.parametrize(
    ("engine", "ranges"),
    [("aot", False), ("graph", False), ("graph", True), ("aot_packed", False)],
)
def test_tensors_that_a_part_holds_are_read(engine: str, ranges: bool, tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), Permuted()).eval()
    x = torch.randn(2, 8)
    settings = OptimizeSettings(
        backends=(engine,), seconds=0.02, dynamic={"batch": (1, 8)} if ranges else {}
    )
    fast = optimize_net(net, [((x,), {})], settings, serves=engine).net
    assert [built.engine for built in fast.built_backends] == [engine]
    with torch.no_grad():
        torch.testing.assert_close(fast(x), net(x))
        net[1].orders[0].copy_(torch.arange(8).flip(0))
        net[1].shifts["all"].add_(1.0)
        torch.testing.assert_close(fast(x), net(x))


def test_code_that_would_divide_by_zero_is_not_built(tmp_path: Path) -> None:
    def net(x: torch.Tensor, n: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
        return x + torch.div(n, d, rounding_mode="trunc")

    call = NetCall(net, (torch.randn(8), torch.arange(8), torch.arange(1, 9)), {})
    with pytest.raises(BackendError, match="ends the process where a divisor is zero"):
        build_backend("aot", BACKENDS["aot"], call, tmp_path / "aot")
    by_floats = NetCall(net, (torch.randn(8), torch.randn(8), torch.rand(8) + 1), {})
    assert not by_floats.divides_towards_zero


@pytest.mark.xdist_group("inductor")
def test_zentorch_is_refused_on_processors_of_others(tmp_path: Path) -> None:
    if is_of_amd():
        pytest.skip("this processor is AMD's")
    call = NetCall(torch.relu, (torch.ones(2),), {})
    backend = replace(BACKENDS["zentorch_frozen"], packages=())
    with pytest.raises(BackendError, match="zentorch is for AMD's processors"):
        build_backend("zentorch_frozen", backend, call, tmp_path / "built", freeze=True)


def test_what_a_backend_says_to_install_brings_its_packages() -> None:
    extras: dict[str, str] = {}
    for requirement in metadata.requires("passnet") or []:
        package, _, marker = requirement.partition(";")
        extra = marker.rpartition("==")[2].strip().strip("'\"")
        extras[extra] = f"{extras.get(extra, '')} {package}"
    for name, backend in BACKENDS.items():
        brought = backend.install
        while "passnet[" in brought:
            before, _, after = brought.partition("passnet[")
            extra, _, after = after.partition("]")
            brought = before + extras[extra] + after
        assert all(package in brought for package in backend.packages), name


@pytest.mark.xdist_group("inductor")
def test_a_backend_of_others_leaves_settings_and_weights_as_they_were(tmp_path: Path) -> None:
    seen: list[Any] = []
    written: list[torch.Tensor] = []

    def backend(graph: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Any:
        seen.append(inductor_config.freezing)
        inductor_config.joint_custom_post_pass = seen.append  # for all compilations to come
        with torch.no_grad():
            written.extend(weight.add_(1.0) for weight in graph.parameters())
        return graph.forward

    register_backend(backend, "changes_settings")
    net = block()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    call = NetCall(net, (torch.randn(2, 8),), {"y": torch.randn(2, 8)})
    entry = compile_by(call, tmp_path, "zentorch_frozen", "changes_settings")
    assert seen and all(seen) and written and entry.is_frozen
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert inductor_config.joint_custom_post_pass is None
    assert not inductor_config.freezing


@pytest.mark.parametrize("engine", ["aot", pytest.param("aot_packed", marks=pytest.mark.slow)])
def test_a_package_reads_the_weights_of_the_net_that_it_is_loaded_for(
    engine: str, tmp_path: Path
) -> None:
    net = block()
    call = NetCall(net, (torch.randn(2, 8),), {"y": torch.randn(2, 8)})
    entry = build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    assert_right(call, entry.run(call.tensors()))
    with torch.no_grad():
        for weight in (*net.parameters(), *net.buffers()):  # small ones too
            weight.add_(1.0)
    torch.testing.assert_close(list(entry.run(call.tensors())), call.eager_outputs(call.leaves))
    other = block()
    with torch.no_grad():
        other.linear.weight.mul_(-1.0)
    again = NetCall(other, call.args, call.kwargs)
    loaded = load_backend(engine, BACKENDS[engine], again, tmp_path / engine)
    assert_right(again, loaded.run(again.tensors()))
    (tmp_path / engine / "net.pt2").unlink()
    with pytest.raises(BackendError, match="is missing; optimise the net again"):
        load_backend(engine, BACKENDS[engine], again, tmp_path / engine)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        "aot",
        "compile",
        "compile_packed",
        "aot_packed",
        "aot_packed_frozen",
        "compile_frozen",
        "aot_frozen",
        "script_frozen",
        "aot_autotune_frozen",
    ],
)
def test_every_way_is_right_and_had_back(engine: str, tmp_path: Path) -> None:
    call = NetCall(block(), (torch.randn(2, 8),), {"y": torch.randn(2, 8)})
    entry = build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    assert_right(call, entry.run(call.tensors()))
    is_frozen = engine.endswith("frozen")
    assert entry.is_frozen == is_frozen
    del entry
    gc.collect()  # the next one must not need what it held
    shutil.move(tmp_path / engine, tmp_path / "moved")
    loaded = load_backend(engine, BACKENDS[engine], call, tmp_path / "moved")
    assert_right(call, loaded.run(call.tensors()))
    former = [output.clone() for output in loaded.run(call.tensors())]
    with torch.no_grad():
        for weight in call.weights.values():
            weight.add_(1.0)
    is_same = all(map(torch.equal, former, loaded.run(call.tensors())))
    assert is_same == is_frozen, "frozen weights are folded in, and others are read"


PASS = """
import torch


def pattern(x):
    return torch.relu(x)


def replacement_args(x):
    return (x,)


def clamped(x):
    return x.clamp(min=0)


def replacement_func():
    return clamped
"""


def write_pass(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "Clamp.py").write_text(text)
    (folder / LIST_FILE).write_text('["Clamp"]')


def test_the_passes_that_were_chosen_are_applied_and_kept_with_the_way(tmp_path: Path) -> None:
    call = NetCall(block(), (torch.randn(2, 8),), {})
    with pytest.raises(BackendError, match="no pass saves anything"):
        build_backend("passes", BACKENDS["passes"], call, tmp_path / "passes")
    write_pass(tmp_path / CHOSEN_FOLDER / "000", PASS)
    entry = build_backend("passes", BACKENDS["passes"], call, tmp_path / "passes")
    assert_right(call, entry.run(call.tensors()))
    shutil.rmtree(tmp_path / CHOSEN_FOLDER)
    wrong = PASS.replace("x.clamp(min=0)", "x.clamp(min=0) + 1")  # that it is called at all
    shutil.rmtree(tmp_path / "passes" / "passes" / "000")
    write_pass(tmp_path / "passes" / "passes" / "000", wrong)
    loaded = load_backend("passes", BACKENDS["passes"], call, tmp_path / "passes")
    assert not torch.equal(loaded.run(call.tensors())[0], call.outputs[0])
    shutil.rmtree(tmp_path / "passes" / "passes" / "000")
    write_pass(tmp_path / CHOSEN_FOLDER / "000", PASS.replace("torch.relu", "torch.tanh"))
    with pytest.raises(BackendError, match="no pass matches"):
        build_backend("passes", BACKENDS["passes"], call, tmp_path / "passes")


def test_all_graphs_of_a_net_are_captured_once() -> None:
    found = captured_graphs(NetCall(loop(), (torch.randn(2, 8),), {}))
    captured = [graph for graph, _ in found]
    targets = [[op.target for op in each.graph.program.ops] for each in captured]
    assert targets == [
        ["torch._C._nn.linear", "torch.relu", "operator.mul"],
        ["torch.relu", "torch.tanh", "operator.add"],
    ]
    ranges, _ = net_ranges(captured)
    assert {place.graph for each in ranges for place in each.places} == {0, 1}


@pytest.mark.parametrize(
    ("engine", "rest"),
    [
        ("passes", "op by op"),
        pytest.param("passes_compiled", "by Inductor", marks=pytest.mark.slow),
    ],
)
def test_passes_are_applied_in_all_graphs_of_a_net_with_breaks_behind_guards(
    engine: str, rest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = loop()
    call = NetCall(net, (torch.randn(2, 8),), {})
    write_pass(tmp_path / CHOSEN_FOLDER / "000", PASS)
    entry = build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    assert_right(call, entry.run(call.tensors()))
    assert entry.says == f"2 graphs with passes, the rest {rest}, called behind Dynamo's guards"
    with torch.no_grad():
        net.blocks[1].linear.weight.add_(1.0)
    other = [torch.randn(2, 8)]
    torch.testing.assert_close(list(entry.run(other)), call.eager_outputs(call.filled(other)))
    shutil.rmtree(tmp_path / engine / "passes" / "000")
    wrong = PASS.replace("x.clamp(min=0)", "x.clamp(min=0) + 1")  # that it is called everywhere
    write_pass(tmp_path / engine / "passes" / "000", wrong)
    loaded = load_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    found = list(loaded.run(other))
    monkeypatch.setattr(torch, "relu", lambda x: x.clamp(min=0) + 1)
    torch.testing.assert_close(found, call.eager_outputs(call.filled(other)))
    shutil.rmtree(tmp_path / CHOSEN_FOLDER)
    write_pass(tmp_path / CHOSEN_FOLDER / "000", PASS.replace("torch.relu", "torch.sin"))
    with pytest.raises(BackendError, match="no pass matches"):
        build_backend(engine, BACKENDS[engine], call, tmp_path / engine)


class Steps(torch.nn.Module):
    """A net whose second argument is the number of its steps."""

    def forward(self, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        for _ in range(int(steps.item())):
            x = x.sin()
        return x


def test_a_call_of_another_branch_compiles_nothing(tmp_path: Path) -> None:
    call = NetCall(Steps().eval(), (torch.randn(4), torch.tensor(2)), {})
    built = build_backend("compile", BACKENDS["compile"], call, tmp_path)
    frames = dict(torch._dynamo.utils.counters["frames"])
    x = torch.randn(4)
    with torch.inference_mode():
        for steps in (2, 3, 0):
            expected = Steps()(x, torch.tensor(steps))
            torch.testing.assert_close(built.run([x, torch.tensor(steps)])[0], expected)
    assert frames and dict(torch._dynamo.utils.counters["frames"]) == frames
