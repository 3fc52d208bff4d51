import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.errors import BackendError
from passnet.optimizer.backends import openvino as openvino_backend
from passnet.optimizer.backends.backend import build_backend, load_backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.compare.agreement import EagerComparison
from passnet.optimizer.optimize import optimize_net
from passnet.optimizer.settings import OptimizeSettings
from tests.optimizer.nets import block

RUNTIMES = ("onnxruntime_frozen", "openvino_frozen")

EACH_RUNTIME = pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            name,
            marks=pytest.mark.skipif(
                bool(BACKENDS[name].missing), reason="pip install 'passnet[runtimes]'"
            ),
        )
        for name in RUNTIMES
    ],
)


def conv_call() -> NetCall:
    torch.manual_seed(0)
    conv = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.Hardswish()
    net = torch.nn.Sequential(*conv, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    return NetCall(net.eval(), (torch.randn(2, 3, 8, 8),), {})


def mlp_call() -> NetCall:
    return NetCall(block(), (torch.randn(2, 8),), {"y": torch.randn(2, 8), "scale": 3.0})


def transformer_call() -> NetCall:
    torch.manual_seed(0)
    net = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu").eval()
    return NetCall(net, (torch.randn(2, 5, 16),), {})


def assert_right(call: NetCall, entry: BuiltBackend, finite: bool = False) -> None:
    found = EagerComparison(call, finite).agreement(entry)
    assert found.wrong is None


@EACH_RUNTIME
@pytest.mark.parametrize(
    "make", [conv_call, mlp_call, pytest.param(transformer_call, marks=pytest.mark.slow)]
)
def test_a_runtime_is_right_and_had_back_and_says_nothing(
    engine: str, make: Any, tmp_path: Path, capfd: Any, caplog: Any, recwarn: Any
) -> None:
    call, threads = make(), threading.enumerate()
    entry = build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    assert threading.enumerate() == threads and "openvino_telemetry" not in sys.modules
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    assert not list(recwarn)
    assert entry.is_frozen
    assert_right(call, entry)
    shutil.move(tmp_path / engine, tmp_path / "moved")
    assert_right(call, load_backend(engine, BACKENDS[engine], call, tmp_path / "moved"))
    shutil.rmtree(tmp_path / "moved")
    with pytest.raises(BackendError, match="is missing; optimise the net again"):
        load_backend(engine, BACKENDS[engine], call, tmp_path / "moved")
    assert capfd.readouterr() == ("", "")


class Odd(torch.nn.Module):
    """Takes and returns what runtimes drop, join or convert."""

    def forward(
        self,
        unused: torch.Tensor,
        x: torch.Tensor,
        again: torch.Tensor,
        scale: float,
        ids: torch.Tensor,
        mask: torch.Tensor,
        half: torch.Tensor,
    ) -> dict[str, Any]:
        product = x * scale - again
        return {
            "given": x,
            "twice": [product, (product,)],
            "ids": ids + 1,
            "mask": ~mask,
            "half": half * 2,
            "scalar": x.sum(),
            "constant": torch.arange(3),
        }


@EACH_RUNTIME
def test_odd_inputs_and_outputs_are_right_and_no_output_is_written_again(
    engine: str, tmp_path: Path
) -> None:
    x = torch.randn(4, 3).t()
    ids, mask, half = torch.arange(6), torch.tensor([True, False]), torch.randn(5).half()
    call = NetCall(Odd().eval(), (torch.ones(2), x, x, 2.5, ids, mask, half), {})
    entry = build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    assert_right(call, entry, finite=True)
    agreement = EagerComparison(call).agreement(entry)
    is_in_32_bits = bool(agreement.index_bounds)  # and therefore only used for small whole numbers
    assert agreement.wrong is None and is_in_32_bits == (engine == "openvino_frozen")
    first = entry.run(call.tensors())
    kept = [output.clone() for output in first]
    other = [*call.tensors()[:1], x + 1, x + 1, ids + 1, ~mask, half + 1]
    second = entry.run(other)
    entry.run(other)[3].resize_(20)  # a caller may
    for output in second[1:]:  # the first one is an argument, as in eager torch
        output.fill_(0)  # what a user does with it reaches neither the runtime nor the arguments
    assert all(map(torch.equal, first, kept))
    assert all(map(torch.equal, entry.run(call.tensors()), kept))
    assert torch.equal(other[1], x + 1)
    needing = [each.clone().requires_grad_() if each is x else each for each in call.tensors()]
    with torch.no_grad():
        first, *others = entry.run(needing)
    assert first is needing[1]  # as eager torch returns it
    assert not any(output.requires_grad for output in others)


@EACH_RUNTIME
def test_a_dtype_that_cannot_be_handed_over_is_refused(engine: str, tmp_path: Path) -> None:
    call = NetCall(torch.relu, (torch.ones(2, dtype=torch.bfloat16),), {})
    with pytest.raises(BackendError, match="takes and returns no bfloat16"):
        build_backend(engine, BACKENDS[engine], call, tmp_path / engine)


@EACH_RUNTIME
def test_a_lower_precision_is_refused_or_found(engine: str, tmp_path: Path) -> None:
    if engine != "openvino_frozen":
        pytest.skip("computes in no other precision")
    double = NetCall(torch.relu, (torch.ones(2, dtype=torch.float64),), {})
    with pytest.raises(BackendError, match="computes float64 as float32"):
        build_backend(engine, BACKENDS[engine], double, tmp_path / "double")
    import openvino

    if "BF16" not in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
        pytest.skip("this processor has no bfloat16")
    settings = {"INFERENCE_PRECISION_HINT": "bf16"}
    call = conv_call()
    build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    built = openvino_backend.load(call, tmp_path / engine, engine, settings)
    assert "is off by" in (EagerComparison(call).agreement(built).wrong or "")


def test_what_is_not_installed_is_tried_only_if_named_and_then_refused() -> None:
    packages = "torch", "no_such_package"
    absent = {name: replace(BACKENDS[name], packages=packages) for name in RUNTIMES}
    backends = {**BACKENDS, **absent}
    assert not set(RUNTIMES) & set(OptimizeSettings().tried(backends))
    settings = OptimizeSettings(backends=RUNTIMES, seconds=0.02)
    calls = [((torch.ones(2),), {})]
    [form] = optimize_net(torch.relu, calls, settings, backends=backends).record.forms
    assert form.chosen == "eager"
    for record in form.engines[1:]:
        assert record.status == "refused"
        assert record.reason == "no_such_package is not installed; pip install 'passnet[runtimes]'"


@EACH_RUNTIME
def test_what_is_installed_is_tried(engine: str) -> None:
    assert engine in OptimizeSettings().tried()


def norm_call() -> NetCall:
    norm = torch.nn.InstanceNorm2d(3), torch.nn.ReflectionPad2d(1), torch.nn.Conv2d(3, 4, 3)
    return NetCall(torch.nn.Sequential(*norm).eval(), (torch.rand(1, 3, 8, 8),), {})


class Recurrent(torch.nn.Module):
    """A net whose inputs get other names in the program."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.gru = torch.nn.Linear(3, 4), torch.nn.GRU(4, 4, batch_first=True)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        hidden, state = self.gru(torch.relu(self.first(x)), state)
        return hidden[:, -1], state


def recurrent_call() -> NetCall:
    return NetCall(Recurrent().eval(), (torch.randn(2, 5, 3), torch.zeros(1, 2, 4)), {})


@EACH_RUNTIME
@pytest.mark.parametrize("make", [norm_call, recurrent_call])
def test_inputs_are_found_whatever_a_runtime_calls_them(
    engine: str, make: Any, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    call = make()
    assert_right(call, build_backend(engine, BACKENDS[engine], call, tmp_path / engine))


def put(values: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
    return torch.zeros(6).index_put((rows,), values, accumulate=True)


@EACH_RUNTIME
def test_an_index_out_of_range_never_reaches_what_would_write_there(
    engine: str, tmp_path: Path
) -> None:
    call = NetCall(put, (torch.rand(6), torch.randperm(6)), {})
    built = build_backend(engine, BACKENDS[engine], call, tmp_path / engine)
    assert built.ends_process == (engine == "openvino_frozen")
    found = EagerComparison(call).agreement(built)
    assert found.wrong is None and (found.index_bounds or not built.ends_process)
