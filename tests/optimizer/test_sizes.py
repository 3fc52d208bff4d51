"""Sizes that vary from call to call: what is asked for, checked, compared, chosen and served."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import passnet
from passnet.errors import InputError
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.call_check import Misfit, input_signature
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.call.sizes import (
    compared_sizes,
    measured_sizes,
    named_ranges,
    nearest,
    ranges_of_calls,
    resized,
)
from passnet.optimizer.compare.agreement import EagerComparison
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.record import SizeRange
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.checks import WAYS, Anything
from tests.optimizer.hand_made import entry_of

IDS, MASK = torch.arange(8).reshape(2, 4), torch.ones(2, 4, dtype=torch.long)
BATCH = SizeRange("batch", 1, 6, 2, ((0, 0), (1, 0)))
LENGTH = SizeRange("length", 1, 9, 4, ((0, 1), (1, 1)))
QUICK = OptimizeSettings(backends=("graph",), seconds=0.02, budget_s=60)


class Mean(torch.nn.Module):
    """An embedding's mean over what a mask shows."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.linear = torch.nn.Embedding(16, 8), torch.nn.Linear(8, 3)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        shown = self.table(ids)
        if mask is not None:
            shown = shown * mask[..., None]
        return self.linear(shown).relu().mean(1)


class Branching(torch.nn.Module):
    """A net that decides by a size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu() if x.shape[0] > 3 else x.exp()


def ranges_for(dynamic: dict[Any, Any]) -> tuple[SizeRange, ...]:
    return named_ranges(dynamic, (IDS,), {"mask": MASK}, Mean())


def test_batch_and_length_are_axes_of_all_tensors_of_the_examples_size() -> None:
    assert ranges_for({"batch": (1, 6), "length": (1, 9)}) == (BATCH, LENGTH)
    other = torch.ones(5, 4)
    [found] = named_ranges({"batch": (1, 6)}, (IDS, other), {}, None)
    assert found.places == ((0, 0),)


@pytest.mark.parametrize("name", ["ids", 0])
def test_an_argument_is_named_by_its_parameter_or_position(name: Any) -> None:
    [found] = ranges_for({name: {1: (1, 9)}})
    assert (found.name, found.places) == ("ids, axis 1", ((0, 1),))


def test_axes_of_one_range_and_size_vary_together() -> None:
    [found] = ranges_for({"ids": {1: (1, 9)}, "mask": {1: (1, 9)}})
    assert found.places == ((0, 1), (1, 1))
    assert len(ranges_for({"ids": {1: (1, 9)}, "mask": {1: (1, 8)}})) == 2


def test_a_range_of_one_size_does_not_vary() -> None:
    assert ranges_for({"batch": (2, 2)}) == ()


@pytest.mark.parametrize(
    ("dynamic", "says"),
    [
        ({"width": (1, 2)}, "'width' is neither batch nor length"),
        ({"nothing": {0: (1, 2)}}, "no tensor 'nothing'; there are ids, mask"),
        ({"ids": {2: (1, 2)}}, "ids: no axis 2 in a tensor of 2 axes"),
        ({"batch": (0, 2)}, "batch is \\(0, 2\\); give the least and the greatest size"),
        ({"batch": 4}, "batch is 4; give the least"),
        ({"batch": (3, 6)}, "batch has size 2 in the example, outside of \\(3, 6\\)"),
    ],
)
def test_what_means_nothing_is_refused(dynamic: dict[Any, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        ranges_for(dynamic)


def test_a_tensor_that_is_not_contiguous_cannot_vary() -> None:
    with pytest.raises(InputError, match="0 is not contiguous, so axis 0 cannot vary"):
        named_ranges({"batch": (1, 9)}, (torch.ones(3, 4).t(),), {}, None)


def test_examples_that_differ_in_sizes_alone_give_ranges() -> None:
    other = ((IDS.repeat(2, 2),), {"mask": MASK.repeat(2, 2)})
    first, second = ranges_of_calls([((IDS,), {"mask": MASK}), other])
    assert (first.low, first.high, first.places) == (2, 4, ((0, 0), (1, 0)))
    assert (second.low, second.high, second.places) == (4, 8, ((0, 1), (1, 1)))


@pytest.mark.parametrize(
    "other", [(IDS.float(),), (IDS, 1), (IDS[None],), (IDS[:1], None), (torch.ones(0, 4).long(),)]
)
def test_examples_that_differ_in_more_give_none(other: tuple[Any, ...]) -> None:
    assert ranges_of_calls([((IDS,), {}), (other, {})]) == ()


def test_other_sizes_repeat_the_examples_values() -> None:
    ids, mask = resized([IDS, IDS], (BATCH, LENGTH), (3, 5))
    assert ids.tolist() == [[0, 1, 2, 3, 0], [4, 5, 6, 7, 4], [0, 1, 2, 3, 0]]
    assert mask is ids, "one tensor stays one"


def test_sizes_to_compare_have_all_ends_and_sizes_to_measure_a_grid() -> None:
    assert {(1, 1), (6, 1), (1, 9), (6, 9)} < {*compared_sizes((BATCH, LENGTH))}
    assert len(measured_sizes((BATCH, LENGTH))) == 9
    assert measured_sizes((LENGTH,)) == [(1,), (2,), (3,), (5,), (9,)]
    width = SizeRange("width", 1, 9, 4, ())
    assert len(measured_sizes((BATCH, LENGTH, width))) <= 9
    assert nearest((5, 8), [(1, 1), (1, 9), (6, 9)]) == 2


@pytest.mark.parametrize("way", WAYS)
def test_a_call_fits_with_sizes_within_ranges(way: str) -> None:
    net = Anything()
    entry = replace(entry_of(net, IDS, MASK), ranges=(BATCH, LENGTH))
    check = WAYS[way](input_signature(net, entry))

    def found(ids: torch.Tensor, mask: torch.Tensor) -> Any:
        with torch.no_grad():
            given = check((ids, mask), {})
        return given if isinstance(given, int) else "fits"

    def of(*shape: int) -> torch.Tensor:
        return torch.ones(shape, dtype=torch.long)

    for shape in ((1, 1), (2, 4), (6, 9), (3, 1)):
        assert found(of(*shape), of(*shape)) == "fits", shape
    for shape in ((7, 4), (2, 10), (0, 4), (2, 0), (2, 4, 1), (2,)):
        assert found(of(*shape), of(*shape)) == Misfit.SHAPE, shape
    assert found(of(3, 4), of(2, 4)) == Misfit.SHAPE, "one size of two axes"
    assert found(of(4, 3).t(), of(3, 4)) == Misfit.STRIDES
    assert found(of(3, 4), of(3, 4)) == "fits", "nothing is kept of earlier calls"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64])
def test_a_row_of_zeros_does_not_fit_where_rows_must_be_filled(
    way: str, dtype: torch.dtype
) -> None:
    net, mask = Anything(), torch.ones(2, 3, 5, dtype=dtype)
    entry = replace(entry_of(net, IDS, mask), filled_rows=(False, True))
    check = WAYS[way](input_signature(net, entry))
    with torch.no_grad():
        assert isinstance(check((IDS * 0, mask), {}), list)
        mask[1, 2, :4] = 0
        assert isinstance(check((IDS, mask), {}), list)
        mask[1, 2] = 0
        assert check((IDS, mask), {}) == Misfit.VALUES


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "passnet"]


def backend_of(run: Any, **settings: Any) -> Backend:
    def build(call: NetCall, folder: Path, name: str) -> Any:
        return call.built(name, lambda tensors: run(call, tensors))

    return Backend("made by hand", build, build, **settings)


def test_a_backend_that_is_wrong_for_empty_rows_alone_serves_all_others() -> None:
    net = Mean().eval()
    call = NetCall(net, (IDS.repeat(2, 3), MASK.repeat(2, 3)), {})

    def run(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        empty = (tensors[1] == 0).all(1, keepdim=True)
        return [torch.where(empty, torch.nan, net(*tensors))]

    built = backend_of(run).build(call, Path(), "by hand")
    found = EagerComparison(call).agreement(built)
    assert (found.wrong, found.filled_rows) == (None, (False, True))
    right = backend_of(lambda call, tensors: [net(*tensors)]).build(call, Path(), "by hand")
    assert EagerComparison(call).agreement(right).filled_rows == ()


def test_one_entry_serves_all_sizes_in_the_ranges(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net = Mean().eval()
    dynamic = {"batch": (1, 6), "length": (1, 9)}
    settings = replace(QUICK, dynamic=dynamic)
    calls = [((IDS,), {"mask": MASK})]
    made = optimize_net(net, calls, settings, tmp_path, serves="graph")
    [signature] = made.record.forms
    assert signature.size_ranges == (BATCH, LENGTH)
    assert [each.chosen for each in signature.sizes] == ["graph"] * len(signature.sizes)
    loaded = passnet.load(tmp_path, net)
    for fast in (made.net, loaded):
        with torch.no_grad():
            for batch, length in ((1, 1), (6, 9), (5, 7), (2, 4)):
                ids = torch.randint(16, (batch, length))
                mask = torch.ones_like(ids)
                assert torch.equal(fast(ids, mask=mask), net(ids, mask=mask))
            assert not warnings_of(caplog)
            fast(torch.ones(7, 4, dtype=torch.long), mask=torch.ones(7, 4, dtype=torch.long))
        [warning] = warnings_of(caplog)
        assert "has size 7 on axis 0, which is not among 1 to 6" in warning
        caplog.clear()
    assert "batch from 1 to 6, length from 1 to 9" in repr(made.net)


def test_two_examples_of_other_sizes_are_one_entry() -> None:
    net = Mean().eval()
    calls = [((IDS,), {}), ((IDS.repeat(1, 2),), {})]
    made = optimize_net(net, calls, QUICK, serves="graph")
    [signature] = made.record.forms
    assert (signature.size_ranges[0].low, signature.size_ranges[0].high) == (4, 8)
    assert len(made.net.built_backends) == 1


def test_where_a_size_decides_examples_are_served_singly() -> None:
    net, calls = Branching().eval(), [((torch.rand(2, 4),), {}), ((torch.rand(6, 4),), {})]
    made = optimize_net(net, calls, QUICK, serves="graph")
    assert [signature.chosen for signature in made.record.forms] == ["graph", "graph"]
    assert not any(signature.size_ranges for signature in made.record.forms)
    with torch.no_grad():
        for args, _ in calls:
            assert torch.equal(made.net(*args), net(*args))


def test_a_backend_that_is_wrong_at_another_size_is_refused() -> None:
    def run(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        right = call.eager_outputs(call.filled(tensors))
        return right if len(tensors[0]) != 1 else [output + 1 for output in right]

    backends = {"eager": BACKENDS["eager"], "by hand": backend_of(run)}
    settings = replace(QUICK, backends=("by hand",), dynamic={"batch": (1, 6)})
    [signature] = optimize_net(
        Mean().eval(), [((IDS,), {})], settings, backends=backends
    ).record.forms
    record = signature.engines[1]
    assert record.status == "wrong"
    assert record.reason is not None and record.reason.startswith("for batch 1: ")


def test_the_error_of_a_lower_precision_is_the_largest_at_any_size() -> None:
    def run(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        error = 0.02 if len(tensors[0]) == 1 else 0.001
        return [x * (1 + error) for x in call.eager_outputs(call.filled(tensors))]

    backends = {"eager": BACKENDS["eager"], "by hand": backend_of(run, precision="int8")}
    settings = replace(QUICK, backends=("by hand",), dynamic={"batch": (1, 6)}, precision=("int8",))
    [signature] = optimize_net(
        Mean().eval(), [((IDS,), {})], settings, backends=backends
    ).record.forms
    assert signature.engines[1].error == pytest.approx(0.02, rel=0.05)


def test_a_backend_of_one_size_is_refused() -> None:
    backends = {"eager": BACKENDS["eager"], "one": replace(BACKENDS["graph"], is_of_one_size=True)}
    settings = replace(QUICK, backends=("one",), dynamic={"batch": (1, 6)})
    [signature] = optimize_net(
        Mean().eval(), [((IDS,), {})], settings, backends=backends
    ).record.forms
    assert signature.engines[1].status == "refused"
    assert "serves one size alone" in (signature.engines[1].reason or "")


def test_the_backend_that_is_fastest_at_a_size_runs_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    net, ranges = Mean().eval(), (SizeRange("batch", 1, 64, 2, ((0, 0),)),)

    def made(engine: str, added: float, **fields: Any) -> Any:
        run = lambda outputs: [output + added for output in outputs]  # noqa: E731
        return replace(entry_of(net, IDS, engine=engine, run=run), ranges=ranges, **fields)

    small, large = made("small", 100.0), made("large", 200.0)
    by_size = (((1,), small), ((8,), None), ((64,), large))
    fast = FastNet(net, [replace(small, by_size=by_size)])
    with caplog.at_level(logging.WARNING), torch.no_grad():
        for batch, added in (
            (1, 100.0),
            (2, 100.0),
            (9, 0.0),
            (40, 200.0),
            (64, 200.0),
            (1, 100.0),
        ):
            ids = torch.randint(16, (batch, 4))
            torch.testing.assert_close(fast(ids), net(ids) + added, msg=f"batch {batch}")
    assert not warnings_of(caplog), "eager torch is a choice, and no fault"
    assert "large and small by size" in repr(fast)


class Slow(torch.nn.Module):
    """A net whose time grows with the batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(1e-3 * len(x))
        return x + 1


def test_a_size_that_is_too_expensive_to_measure_runs_what_a_few_calls_show_to_be_fastest() -> None:
    def run(call: NetCall, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        [x] = tensors
        time.sleep((1e-4 if len(x) < 32 else 3e-3) * len(x))
        return [x + 1]

    backends = {"eager": BACKENDS["eager"], "by hand": backend_of(run)}
    own = replace(QUICK, backends=("by hand",), dynamic={"batch": (1, 64)}, budget_s=7)
    made = optimize_net(Slow().eval(), [((torch.ones(2, 3),), {})], own, backends=backends)
    [signature] = made.record.forms
    chosen = {each.sizes: each.chosen for each in signature.sizes}
    assert (chosen[1,], chosen[64,]) == ("by hand", "eager"), chosen


RUNTIMES = ("onnxruntime_frozen", "openvino_frozen")
INSTALLED = [name for name in RUNTIMES if not BACKENDS[name].missing]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["aot", "aot_frozen", "compile", *INSTALLED])
def test_compilers_serve_all_sizes(engine: str, tmp_path: Path) -> None:
    net = Mean().eval()
    settings = replace(QUICK, backends=(engine,), dynamic={"batch": (1, 6), "length": (1, 9)})
    made = optimize_net(net, [((IDS,), {"mask": MASK})], settings, tmp_path, serves=engine)
    [signature] = made.record.forms
    assert signature.chosen == engine, signature.engines[1].reason
    for fast in (made.net, passnet.load(tmp_path, net)):
        with torch.no_grad():
            for batch, length in ((1, 1), (6, 9), (5, 7), (1, 4), (3, 1)):
                ids = torch.randint(16, (batch, length))
                mask = torch.ones_like(ids)
                torch.testing.assert_close(fast(ids, mask=mask), net(ids, mask=mask))
