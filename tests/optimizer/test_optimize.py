import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch

import passnet
from passnet.api import optimize_calls
from passnet.core.records.serialise import read_json, write_json
from passnet.errors import InputError
from passnet.optimizer.backends.backend import Backend, Builder
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.choose.chosen_passes import RANGES_FILE
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.package import load
from passnet.optimizer.record import RECORD_FILE, BackendRecord, RangeRecord, RangesRecord
from passnet.optimizer.settings import OptimizeSettings
from passnet.pages.tables.optimizer_tables import optimized_tables
from tests.optimizer.nets import OpenLoop, block

QUICK = OptimizeSettings(backends=("graph",), seconds=0.02)


def slow_net(x: torch.Tensor) -> torch.Tensor:
    time.sleep(0.002)
    return torch.relu(x)


def backends(**builders: Builder) -> dict[str, Backend]:
    """Eager torch and made-up backends."""
    made_up = {name: Backend(name, build, build) for name, build in builders.items()}
    return {"eager": BACKENDS["eager"], **made_up}


@dataclass(frozen=True)
class StandIns:
    """Made-up backends: quick and right, quicker and wrong, one that cannot be built."""

    backends: dict[str, Backend]
    num_built: dict[str, int]


@pytest.fixture
def stand_ins() -> StandIns:
    built = {"quick": 0, "wrong": 0, "none": 0}

    def quick(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        built["quick"] += 1
        return call.built(engine, lambda tensors: [torch.relu(tensors[0])])

    def wrong(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        built["wrong"] += 1
        return call.built(engine, lambda tensors: [tensors[0]])

    def none(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        built["none"] += 1
        raise RuntimeError("not this net")

    return StandIns(backends(quick=quick, wrong=wrong, none=none), built)


def test_the_fastest_right_way_is_returned(stand_ins: StandIns) -> None:
    settings = OptimizeSettings(backends=("none", "wrong", "quick"), seconds=0.05)
    told: list[str] = []
    optimized = optimize_net(
        slow_net,
        [((torch.randn(4),), {})],
        settings,
        progress=lambda each: told.append(each.engine),
        backends=stand_ins.backends,
    )
    [form] = optimized.record.forms
    assert form.chosen == "quick" and form.speedup_low > 2 and form.inputs == ("float32[4]",)
    assert told == ["eager", "none", "wrong", "quick"]
    outcomes = {engine.engine: engine for engine in form.engines}
    assert outcomes["wrong"].status == "wrong" and outcomes["wrong"].ms is None
    assert outcomes["none"].reason == "none: RuntimeError: not this net"
    x = torch.randn(4)
    assert torch.equal(optimized.net(x), torch.relu(x))
    assert [each.engine for each in optimized.net.built_backends] == ["quick"]
    other = torch.randn(5)  # of another form: the net runs as it was
    assert torch.equal(optimized.net(other), torch.relu(other))
    [table] = optimized_tables(optimized.record)
    assert table.rows[0][0] == "quick *"
    assert any("refused: none" in row[-1] for row in table.rows)


def test_eager_torch_is_returned_where_nothing_is_faster() -> None:
    def waits(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        return call.built(engine, lambda tensors: [slow_net(tensors[0])])

    settings = OptimizeSettings(backends=("waits",), seconds=0.02)
    call = ((torch.randn(4),), {})
    record = optimize_net(torch.relu, [call], settings, backends=backends(waits=waits)).record
    assert record.forms[0].chosen == "eager"


def test_a_net_that_draws_random_numbers_is_returned_as_it_was(tmp_path: Path) -> None:
    def net(x: torch.Tensor) -> torch.Tensor:
        return x + torch.rand_like(x)

    settings = OptimizeSettings(backends=("compile",), seconds=0.02)
    call = ((torch.zeros(64),), {})
    optimized = optimize_calls(net, [call], settings, tmp_path / "net")
    [form] = optimized.record.forms
    eager, other = form.engines
    assert form.chosen == "eager"
    assert (eager.status, other.status) == ("ok", "refused")
    assert "draws from the random generator of torch" in str(other.reason)
    assert 0 < float(optimized.net(torch.zeros(64)).max()) < 1


def test_a_budget_that_is_spent_begins_nothing(stand_ins: StandIns) -> None:
    settings = OptimizeSettings(backends=("quick",), seconds=0.02, budget_s=1e-9)
    call = ((torch.randn(4),), {})
    record = optimize_net(slow_net, [call], settings, backends=stand_ins.backends).record
    assert record.forms[0].chosen == "eager" and record.forms[0].engines[1].status == "untried"
    assert stand_ins.num_built["quick"] == 0


def test_a_run_goes_on_where_it_was_ended(stand_ins: StandIns, tmp_path: Path) -> None:
    settings = OptimizeSettings(backends=("none", "wrong", "quick"), seconds=0.02)
    out, call = tmp_path / "out", ((torch.randn(4),), {})

    optimize = partial(optimize_net, slow_net, [call], settings, out, backends=stand_ins.backends)

    def end(record: object) -> None:
        if stand_ins.num_built["wrong"]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize(progress=end)
    with pytest.raises(InputError, match="is not empty; give resume=True"):
        optimize()
    record = optimize(resume=True).record
    assert record.forms[0].chosen == "quick"
    assert stand_ins.num_built == {"none": 1, "wrong": 1, "quick": 1}
    with pytest.raises(InputError, match="holds an optimised net already"):
        optimize()
    finished = optimize(resume=True)
    assert finished.record == record and finished.net.built_backends
    assert stand_ins.num_built == {"none": 1, "wrong": 1, "quick": 2}  # which it loads


@pytest.mark.parametrize(
    ("settings", "size", "says"),
    [
        (replace(QUICK, freeze=True), 4, "freeze was False and is True"),
        (replace(QUICK, tolerance=0.01), 4, "tolerance was None and is 0.01"),
        (QUICK, 5, r"inputs was float32\[2, 4\] and is float32\[2, 5\]"),
        (replace(QUICK, seconds=0.5, budget_s=1.0), 4, None),
    ],
)
def test_a_finished_folder_is_not_taken_for_another_request(
    settings: OptimizeSettings, size: int, says: str | None, tmp_path: Path
) -> None:
    net = Scaled().eval()
    first = optimize_calls(net, [((torch.randn(2, 4),), {})], QUICK, tmp_path)
    refused = nullcontext() if says is None else pytest.raises(InputError, match=says)
    call = (torch.randn(2, size),), {}
    with refused:
        again = optimize_calls(net, [call], settings, tmp_path, resume=True)
        assert again.record == first.record


class Scaled(torch.nn.Module):
    """A net that takes two milliseconds, with a weight and an attribute."""

    def __init__(self, weight: float = 1.0, scale: float = 1.0) -> None:
        super().__init__()
        self.weight, self.scale = torch.nn.Parameter(torch.full((4,), weight)), scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        slow_net(x)
        return x * self.weight * self.scale


def _scales(num_built: list[int]) -> dict[str, Backend]:
    """A backend that folds a weight and an attribute in, and keeps them in a file."""

    def build(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        num_built.append(1)
        torch.save(call.weights["weight"].detach() * call.net.scale, folder / "folded.pt")
        return load_it(call, folder, engine)

    def load_it(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        folded = torch.load(folder / "folded.pt")
        return call.built(engine, lambda tensors: [tensors[0] * folded], is_frozen=True)

    return {
        "eager": BACKENDS["eager"],
        "folded": Backend("folded", build, load_it, is_frozen=True),
    }


def _interrupted(net: torch.nn.Module, out: Path, num_built: list[int]) -> None:
    def end(record: BackendRecord) -> None:
        if record.engine == "folded":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize_net(net, [((torch.randn(2, 4),), {})], FOLDED_ONE, out, progress=end,
                     backends=_scales(num_built))  # fmt: skip


FOLDED_ONE = OptimizeSettings(backends=("folded",), seconds=0.02)


@pytest.mark.parametrize("other", [Scaled(), Scaled(2.0), Scaled(1.0, 3.0)])
@pytest.mark.parametrize("batch", [2, 3])
def test_a_run_goes_on_with_what_was_built_for_the_same(
    other: Scaled, batch: int, tmp_path: Path
) -> None:
    num_built: list[int] = []
    _interrupted(Scaled().eval(), tmp_path / "out", num_built)
    x, other = torch.randn(batch, 4), other.eval()
    optimized = optimize_net(other, [((x,), {})], FOLDED_ONE, tmp_path / "out", True,
                             backends=_scales(num_built))  # fmt: skip
    is_same = batch == 2 and float(other.weight[0]) == other.scale == 1.0
    assert len(num_built) == (1 if is_same else 2)
    assert optimized.record.forms[0].chosen == "folded"
    with torch.no_grad():
        torch.testing.assert_close(optimized.net(x), other(x))


def test_a_run_that_goes_on_compares_again(tmp_path: Path) -> None:
    num_built: list[int] = []
    _interrupted(Scaled().eval(), tmp_path / "out", num_built)
    torch.save(torch.full((4,), 7.0), tmp_path / "out" / "form-0" / "folded" / "folded.pt")
    record = optimize_net(Scaled().eval(), [((torch.randn(2, 4),), {})], FOLDED_ONE,
                          tmp_path / "out", True, backends=_scales(num_built)).record  # fmt: skip
    assert len(num_built) == 2 and record.forms[0].chosen == "folded"


CHANGES_MEANWHILE: dict[str, Callable[[Scaled], object]] = {
    "its weights have other values": lambda net: net.weight.data.add_(1),
    "attribute scale of the net was changed": lambda net: setattr(net, "scale", 2.0),
}


@pytest.mark.parametrize("says", CHANGES_MEANWHILE)
def test_a_net_that_changes_meanwhile_is_refused(says: str) -> None:
    net = Scaled().eval()
    with pytest.raises(InputError, match=says):
        optimize_net(net, [((torch.randn(2, 4),), {})], FOLDED_ONE, backends=_scales([]),
                     progress=lambda record: CHANGES_MEANWHILE[says](net))  # fmt: skip


def test_attributes_must_be_those_of_the_optimised_net(tmp_path: Path) -> None:
    net, out, x = Scaled(scale=2.0).eval(), tmp_path / "out", torch.randn(2, 4)
    optimize_calls(net, [((x,), {})], QUICK, out)
    with torch.no_grad():
        torch.testing.assert_close(load(out, net)(x), net(x))
    with pytest.raises(InputError, match=r"scale of this net is 3\.0, and was 2\.0"):
        load(out, Scaled(scale=3.0).eval())


def test_a_part_in_training_is_refused_before_a_call(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)).eval()
    optimize_calls(net, [((torch.randn(2, 4),), {})], QUICK, tmp_path / "out")
    net[1].train()
    with pytest.raises(InputError, match=r"1\.training of this net is True, and was False"):
        load(tmp_path / "out", net)
    assert not net[1].num_batches_tracked


class ByIdentity(torch.nn.Module):
    """A net that knows its weight by its identity, and the gain of a weight that a copy keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.other = (torch.nn.Parameter(torch.ones(4)) for _ in range(2))
        self.scales, self.weight.gain = {id(self.weight): 3.0}, 5.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight * self.weight.gain * self.scales.get(id(self.weight), 1.0)


def test_a_net_that_knows_its_weights_by_identity_runs_as_it_was() -> None:
    net, x = ByIdentity().eval(), torch.randn(2, 4)
    optimized = optimize_calls(net, [((x,), {})], QUICK)
    assert "may know its weights" in str(optimized.record.forms[0].engines[1].reason)
    with torch.no_grad():
        torch.testing.assert_close(optimized.net(x), 15 * x)
        net.scales = {}
        optimized = optimize_calls(net, [((x,), {})], QUICK)
        assert optimized.record.forms[0].engines[1].status == "ok"
        torch.testing.assert_close(optimized.net(x), 5 * x)


def test_a_net_that_is_loaded_keeps_the_attributes_of_its_weights(tmp_path: Path) -> None:
    net = Scaled().eval()
    net.weight.gains = gains = [2.0]
    optimize_calls(net, [((torch.randn(2, 4),), {})], QUICK, tmp_path / "out")
    load(tmp_path / "out", net)
    assert net.weight.gains is gains


def test_what_authors_came_to_is_kept_for_a_run_that_goes_on(tmp_path: Path) -> None:
    settings = OptimizeSettings(backends=("passes", "graph"), authors=("library",), seconds=0.02,
                                library=str(tmp_path / "library"))  # fmt: skip
    out, call = tmp_path / "out", ((torch.randn(2, 8),), {})

    def end(record: BackendRecord) -> None:
        if record.engine == "passes":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize_calls(block(), [call], settings, out, progress=end)
    file = out / "form-0" / RANGES_FILE
    assert read_json(file, RangesRecord).authors == ("library",)
    found = RangeRecord(("torch.tanh",), 1, 0, "somebody", "slower", None, None, 0.0)
    write_json(file, RangesRecord(("library",), (found,)))
    [form] = optimize_calls(block(), [call], settings, out, resume=True).record.forms
    assert form.ranges == (found,)


def test_a_net_of_which_dynamo_finds_nothing_runs_as_it_was(tmp_path: Path) -> None:
    settings = OptimizeSettings(backends=("graph", "passes"), authors=("library",), seconds=0.02,
                                library=str(tmp_path))  # fmt: skip
    record = optimize_calls(OpenLoop().eval(), [((torch.randn(4),), {})], settings).record
    _, graph, passes = record.forms[0].engines
    assert graph.reason is not None and "found no tensor op to trace" in graph.reason
    assert passes.status == "refused" and record.forms[0].chosen == "eager"


def test_what_is_kept_is_had_back(tmp_path: Path) -> None:
    net, x = block(), torch.randn(2, 8)
    calls = [((x,), {}), ((torch.randn(3, 8),), {"scale": 1.0})]
    out = tmp_path / "out"
    optimize_calls(net, calls, QUICK, out)
    loaded = load(out, net)
    torch.testing.assert_close(loaded(x), net(x))
    torch.testing.assert_close(loaded(calls[1][0][0], scale=1.0), net(calls[1][0][0], scale=1.0))


class SlowScale(torch.nn.Module):
    """A net that takes two milliseconds for nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        slow_net(x)
        return x * self.weight


def _other_environment(out: Path) -> None:
    record = json.loads((out / RECORD_FILE).read_text())
    record["environment"]["torch"] = "1.0"
    (out / RECORD_FILE).write_text(json.dumps(record))


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    net, out = block(), tmp_path / "out"
    optimize_calls(net, [((torch.randn(2, 8),), {})], QUICK, out)
    with pytest.raises(InputError, match="holds no optimised net"):
        load(tmp_path, net)
    with pytest.raises(InputError, match="with other weights than this Linear"):
        load(out, torch.nn.Linear(8, 8).eval())
    (out / "form-0" / "example.pt").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read; optimise again"):
        load(out, net)
    _other_environment(out)
    with pytest.raises(InputError, match="was made for torch 1.0"):
        load(out, net)


def folding() -> dict[str, Backend]:
    """A backend that folds a weight in and loses NaN, and a slower one that reads it."""

    def folded(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        weight = call.weights["weight"].detach().clone()
        run = lambda tensors: [tensors[0].nan_to_num(0.0) * weight]  # noqa: E731
        return call.built(engine, run, is_frozen=True)

    def live(call: NetCall, folder: Path, engine: str) -> BuiltBackend:
        def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            time.sleep(0.0005)
            return [tensors[0] * call.weights["weight"].detach()]

        return call.built(engine, run)

    return {
        **backends(live=live),
        "folded": Backend("folded", folded, folded, is_frozen=True),
    }


FOLDED = OptimizeSettings(backends=("folded", "live"), seconds=0.05)


def test_values_that_were_folded_in_are_compared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net, out, x = SlowScale().eval(), tmp_path / "out", torch.randn(2, 4)
    optimized = optimize_net(net, [((x,), {})], FOLDED, out, backends=folding())
    [form] = optimized.record.forms
    assert (form.chosen, form.instead) == ("folded", "live")
    assert {each.engine: each.bound is None for each in form.engines}["live"]
    for fast in (optimized.net, load(out, net, folding())):
        [entry] = fast.built_backends
        assert entry.compares and entry.bound is not None and entry.instead is not None
        with torch.no_grad():
            assert torch.equal(fast(x), net(x)) and not caplog.records
            nan = x * float("nan")
            assert torch.equal(fast(nan).isnan(), net(nan).isnan())
            assert "live runs it" in caplog.text
            caplog.clear()
            net.weight.data.mul_(2.0)
            assert torch.equal(fast(x), net(x))
            assert "weight weight has other values" in caplog.text and "live runs it" in caplog.text
            net.weight.data.div_(2.0)
            caplog.clear()
    net.weight.data.mul_(2.0)
    fast = load(out, net, folding())
    assert "those of this net have other values" in caplog.text
    assert [entry.engine for entry in fast.built_backends] == ["live"]
    with torch.no_grad():
        assert torch.equal(fast(x), net(x))


def test_values_that_will_not_change_must_be_the_same(tmp_path: Path) -> None:
    net, out = SlowScale().eval(), tmp_path / "out"
    settings = replace(FOLDED, freeze=True, finite=True)
    optimized = optimize_net(net, [((torch.randn(2, 4),), {})], settings, out, backends=folding())
    [form] = optimized.record.forms
    assert (form.chosen, form.instead) == ("folded", "")
    [entry] = optimized.net.built_backends
    assert entry.is_frozen and not entry.compares and entry.bound is None
    [folded] = [each for each in form.engines if each.engine == "folded"]
    assert folded.compared_ms is not None and folded.ms is not None
    with torch.no_grad():
        net.weight.add_(1.0)
    with pytest.raises(InputError, match="have other values"):
        load(out, net, folding())


def test_what_is_not_kept_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(InputError, match="the net fails"):
        optimize_calls(torch.relu, [((torch.ones(1),), {}), (("x",), {})], QUICK)
    fast = optimize_calls(torch.relu, [((torch.ones(1),), {})], QUICK).net
    assert len([*tmp_path.iterdir()]) == 1
    del fast
    assert not [*tmp_path.iterdir()]


BAD = {
    "is in training mode": lambda: passnet.optimize(torch.nn.Linear(2, 2), torch.ones(1, 2)),
    "the net fails on these inputs": lambda: passnet.optimize(torch.relu, "x"),
    "the net returns a set": lambda: passnet.optimize(lambda x: (x, {3}), torch.ones(1)),
    "the net returns no tensor": lambda: passnet.optimize(lambda x: (), torch.ones(1)),
    "give an example": lambda: passnet.optimize(torch.relu),
    "no setting 'fast'": lambda: passnet.optimize(torch.relu, torch.ones(1), fast=True),
    "no backend 'x'": lambda: passnet.optimize(torch.relu, torch.ones(1), backends=("x",)),
    "there is no author 'x'": lambda: passnet.optimize(torch.relu, torch.ones(1), authors=("x",)),
}


@pytest.mark.parametrize("said", BAD)
def test_bad_input_is_one_sentence(said: str) -> None:
    with pytest.raises(InputError, match=said):
        BAD[said]()
