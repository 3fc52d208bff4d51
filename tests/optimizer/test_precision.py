"""Lower precision by consent: what is tried, how far it may be off, and what a page says of it."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import passnet
from passnet.errors import InputError
from passnet.optimizer.backends.backend import Backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.outputs import compare_outputs
from passnet.optimizer.optimize import Optimized, optimize_net
from passnet.optimizer.record import BackendRecord
from passnet.optimizer.settings import ALLOWED_ERROR, OptimizeSettings
from passnet.pages.figures.speed_figure import fastest_by_error
from passnet.pages.optimizer.page import optimized_page
from passnet.pages.tables.optimizer_tables import optimized_tables

X = torch.randn(4, 8)
CALLS = [((X,), {})]


def rough(error: float, precision: Any = "int8", **fields: Any) -> Backend:
    """A backend whose outputs are off by so much."""

    def build(call: NetCall, folder: Path, name: str) -> Any:
        def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            return [x * (1 + error) for x in call.eager_outputs(call.filled(tensors))]

        return call.built(name, run)

    return Backend("made by hand", build, build, precision=precision, **fields)


def optimized(backend: Backend, serves: str = "rough", **settings: Any) -> Optimized:
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
    backends = {"eager": BACKENDS["eager"], "rough": backend}
    made = OptimizeSettings(seconds=0.02, budget_s=30, **settings)
    return optimize_net(net, CALLS, made, backends=backends, serves=serves)


def test_nothing_less_exact_is_tried_without_consent() -> None:
    names = OptimizeSettings().tried(BACKENDS)
    assert not any(BACKENDS[name].precision for name in names)
    [form] = optimized(rough(0.0)).record.forms
    assert [engine.engine for engine in form.engines] == ["eager"]


def test_a_precision_that_is_named_is_tried_alone() -> None:
    installed = {name: replace(backend, packages=()) for name, backend in BACKENDS.items()}
    tried = OptimizeSettings(precision=("int8",)).tried(installed)
    assert {BACKENDS[name].precision for name in tried} == {None, "int8"}
    every = OptimizeSettings(tolerance=1e-2).tried(installed)
    assert {BACKENDS[name].precision for name in every} == {None, "int8", "int4", "bf16", "fp16"}


@pytest.mark.parametrize(("error", "is_right"), [(0.009, True), (0.011, False)])
def test_an_error_up_to_the_tolerance_is_right(error: float, is_right: bool) -> None:
    made = optimized(rough(error), tolerance=0.01)
    [form] = made.record.forms
    record = form.engines[1]
    assert (record.status, record.precision) == ("ok" if is_right else "wrong", "int8")
    assert record.error == pytest.approx(error, rel=0.05)
    if is_right:
        with torch.no_grad():
            torch.testing.assert_close(made.net(X), made.net.original_net(X) * (1 + error))
    else:
        assert "output 0 is off by 1.1e-02, and 1.0e-02 is allowed" in (record.reason or "")


def test_a_backend_of_the_nets_own_precision_gets_no_tolerance() -> None:
    [form] = optimized(rough(0.001, precision=None), tolerance=0.01).record.forms
    assert form.engines[1].status == "wrong"


def test_a_lower_precision_must_not_write_into_arguments() -> None:
    def build(call: NetCall, folder: Path, name: str) -> Any:
        def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
            outputs = call.eager_outputs(call.filled(tensors))
            tensors[0].zero_()
            return outputs

        return call.built(name, run)

    writes = Backend("made by hand", build, build, precision="int8")
    [form] = optimized(writes, tolerance=0.01).record.forms
    assert (form.engines[1].status, form.engines[1].reason) == (
        "wrong",
        "it writes into an argument",
    )


def test_a_precision_without_a_tolerance_allows_a_usual_error() -> None:
    assert OptimizeSettings(precision=("int8",)).allowed_error == ALLOWED_ERROR
    assert OptimizeSettings().allowed_error is None
    assert OptimizeSettings(evaluate=lambda net: 0.0).allowed_error == math.inf


@pytest.mark.parametrize(("may_lose", "is_right"), [(0.5, True), (0.05, False)])
def test_the_users_metric_decides(may_lose: float, is_right: bool) -> None:
    def evaluate(net: Any) -> float:
        return -float(net(torch.ones(4, 8)).norm() / right.norm())

    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()
    with torch.no_grad():
        right = net(torch.ones(4, 8))
    backends = {"eager": BACKENDS["eager"], "rough": rough(0.2)}
    settings = OptimizeSettings(seconds=0.02, budget_s=30, evaluate=evaluate, may_lose=may_lose)
    [form] = optimize_net(net, CALLS, settings, backends=backends).record.forms
    record = form.engines[1]
    assert record.metric == pytest.approx(-1.2, rel=0.01)
    assert record.status == ("ok" if is_right else "wrong")
    assert is_right or record.reason == "the metric loses 0.2"


def test_a_metric_that_fails_is_the_users_error() -> None:
    def evaluate(net: Any) -> float:
        raise KeyError("accuracy")

    with pytest.raises(InputError, match="`evaluate` failed: KeyError: 'accuracy'"):
        optimized(rough(0.0), evaluate=evaluate)


def test_whole_numbers_may_differ_in_a_share() -> None:
    right, other = torch.zeros(100, dtype=torch.long), torch.zeros(100, dtype=torch.long)
    other[:3] = 1
    assert compare_outputs([other], [right], None, True, 0.03).wrong is None
    assert compare_outputs([other], [right], None, True, 0.02).wrong
    assert compare_outputs([other], [right], None, True).wrong


def test_nan_in_other_places_is_wrong_at_any_tolerance() -> None:
    right = torch.tensor([1.0, math.nan])
    assert compare_outputs([torch.ones(2)], [right], None, True, math.inf).wrong


def record_of(engine: str, error: float, speedup: float | None) -> BackendRecord:
    return BackendRecord(engine, "ok", error=error, speedup=speedup)


def test_each_error_buys_the_fastest_backend() -> None:
    made = optimized(rough(0.009), tolerance=0.01)
    [form] = made.record.forms
    engines = (
        record_of("exact", 0.0, 1.5),
        record_of("slow", 1e-3, 1.2),
        record_of("fast", 1e-2, 3.0),
        record_of("untimed", 1e-2, None),
    )
    form = replace(form, engines=engines)
    assert [each.engine for each in fastest_by_error(form)] == ["exact", "fast"]
    record = replace(made.record, forms=(form,))
    [table] = optimized_tables(record)
    assert "1.50 at an error of 0e+00 (exact); 3.00 at an error of 1e-02 (fast)" in table.note
    page = optimized_page(record)
    assert "Speed by the error that is allowed" in page
    assert "<svg" in page and "relative error that is allowed" in page
    plain = optimized_page(optimized(rough(0.0)).record)
    assert "Speed by the error" not in plain


RUNTIMES = (
    *("onnxruntime_int8", "onnxruntime_static_int8", "openvino_bf16", "openvino_fp16"),
    *("openvino_int8", "openvino_int8_weights"),
)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [*RUNTIMES, "aot_bf16", "torchao_int8"])
def test_backends_of_lower_precision_are_near(engine: str, tmp_path: Path) -> None:
    if BACKENDS[engine].missing:
        pytest.skip("pip install 'passnet[int8]'")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(576, 32)
    ).eval()
    x = torch.randn(2, 3, 8, 8)
    settings = OptimizeSettings(seconds=0.02, budget_s=120, tolerance=0.1, backends=(engine,))
    [form] = optimize_net(net, [((x,), {})], settings, tmp_path, serves=engine).record.forms
    record = form.engines[1]
    if "this processor has no arithmetic" in (record.reason or ""):
        pytest.skip(record.reason or "")
    assert record.status == "ok", record.reason
    with torch.no_grad():
        torch.testing.assert_close(passnet.load(tmp_path, net)(x), net(x), rtol=0.1, atol=0.1)
    assert record.error is not None and 1e-5 < record.error < 0.05
