"""The audit sees each kind of change of the process, of a net, of arguments and of results."""

import gc
import logging
import os
import random
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import backends, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from passnet.inductor.compiler import dynamo_settings, inductor_settings
from passnet_audit.nets.audit import use_dynamo_once
from passnet_audit.nets.differences import difference
from passnet_audit.nets.held import changes, held, process_state, state


@contextmanager
def put(get: Callable[[], Any], put_value: Callable[[Any], Any], value: Any) -> Iterator[None]:
    """Put a value, and the former one at the end."""
    former = get()
    put_value(value)
    try:
        yield
    finally:
        put_value(former)


@contextmanager
def hooked() -> Iterator[None]:
    handle = nn.modules.module.register_module_forward_hook(nothing)
    yield
    handle.remove()


def nothing(*_: Any) -> None:
    return None


class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def files_limit() -> tuple[int, int]:
    return resource.getrlimit(resource.RLIMIT_NOFILE)


def put_files_limit(limits: tuple[int, int]) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


PROCESS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "torch's random generator": lambda: put(
        torch.get_rng_state, torch.set_rng_state, torch.Generator().get_state()
    ),
    "numpy's random generator": lambda: put(
        np.random.get_state, np.random.set_state, np.random.RandomState(5).get_state()
    ),
    "Python's random generator": lambda: put(
        random.getstate, random.setstate, random.Random(5).getstate()
    ),
    "the number of threads": lambda: put(torch.get_num_threads, torch.set_num_threads, 3),
    "the default dtype": lambda: put(
        torch.get_default_dtype, torch.set_default_dtype, torch.float64
    ),
    "the default device": lambda: put(lambda: None, torch.set_default_device, "meta"),
    "gradients on": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu"),
    "anomaly detection": lambda: torch.autograd.set_detect_anomaly(True),
    "modes of torch functions": Functions,
    "modes of torch's dispatch": Dispatch,
    "deterministic algorithms": lambda: put(
        torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode, "warn"
    ),
    "the precision of products": lambda: put(
        torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"
    ),
    "oneDNN": lambda: put(torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled, False),
    "the fast path of attention": lambda: put(
        backends.mha.get_fastpath_enabled, backends.mha.set_fastpath_enabled, False
    ),
    "kernels of attention": lambda: put(
        backends.cuda.math_sdp_enabled, backends.cuda.enable_math_sdp, False
    ),
    "denormals": lambda: put(lambda: False, torch.set_flush_denormal, True),
    "hooks of all modules": hooked,
    "functions of Module": lambda: patch.object(nn.Module, "half", nothing),
    "functions of torch.nn.functional": lambda: patch.object(nn.functional, "relu", nothing),
    "functions of Tensor": lambda: patch.object(torch.Tensor, "unique", nothing),
    "functions of torch": lambda: patch.object(torch, "relu", nothing),
    "environment variables": lambda: patch.dict(os.environ, {"PASSNET_TEST": "1"}),
    "the current folder": lambda: put(Path.cwd, os.chdir, "/"),
    "signal handlers": lambda: put(
        lambda: signal.getsignal(signal.SIGUSR1),
        lambda handler: signal.signal(signal.SIGUSR1, handler),
        signal.SIG_IGN,
    ),
    "exception hooks": lambda: patch.object(threading, "excepthook", nothing),
    "trace functions": lambda: put(sys.getprofile, sys.setprofile, nothing),
    "output streams": lambda: patch.object(sys, "stderr", sys.stdout),
    "the path of imports": lambda: patch.object(sys, "path", [*sys.path, "mine"]),
    "the recursion limit": lambda: put(sys.getrecursionlimit, sys.setrecursionlimit, 3210),
    "garbage collection": lambda: put(
        gc.get_threshold, lambda t: gc.set_threshold(*t), (701, 11, 11)
    ),
    "filters of warnings": lambda: patch.object(warnings, "filters", []),
    "processors": lambda: put(
        lambda: os.sched_getaffinity(0),
        lambda numbers: os.sched_setaffinity(0, numbers),
        {min(os.sched_getaffinity(0))},
    ),
    "limits of the process": lambda: put(
        files_limit, put_files_limit, (files_limit()[0] - 1, files_limit()[1])
    ),
    "numpy's errors": lambda: np.errstate(over="raise"),
    "logging switched off": lambda: put(
        lambda: logging.root.manager.disable, logging.disable, logging.CRITICAL
    ),
    "the logger passnet": lambda: patch.object(
        logging.getLogger("passnet"), "handlers", [logging.NullHandler()]
    ),
    "the logger of all": lambda: patch.object(logging.root, "level", logging.ERROR),
    "setting torch._dynamo.config.verbose": lambda: dynamo_settings(verbose=True),
    "setting torch._inductor.config.freezing": lambda: inductor_settings({"freezing": True}),
}


@pytest.mark.parametrize("name", PROCESS)
def test_a_change_of_the_process_is_seen(name: str) -> None:
    if name == "processors" and len(os.sched_getaffinity(0)) == 1:
        pytest.skip("this process has one processor already")
    use_dynamo_once()
    before = process_state()
    with PROCESS[name]():
        after = process_state()
    assert name in list(changes(before, after))
    assert list(changes(before, process_state())) == []


@dataclass
class Config:
    size: int = 1


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(2, 2)
        self.register_buffer("seen", torch.zeros(2))
        self.cache = [torch.zeros(2), {"key": torch.zeros(2)}]
        self.config = Config()
        self.names = SimpleNamespace(first="a")
        self.table = np.zeros(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def give_grad(net: Holder) -> None:
    net.part.weight.grad = torch.zeros(2, 2)


def move(net: Holder) -> None:
    net.seen.data = net.seen.data.clone()


NETS: dict[str, tuple[Callable[[Holder], object], str]] = {
    "a value by .data": (lambda net: net.part.weight.data.zero_(), "_parameters of part"),
    "a write of nothing": (lambda net: net.seen.add_(0), "_buffers of the net"),
    "memory": (move, "_buffers of the net"),
    "a gradient": (give_grad, "_parameters of part"),
    "no gradient needed": (lambda net: net.part.requires_grad_(False), "_parameters of part"),
    "a tensor in a list": (lambda net: net.cache[0].add_(1), "cache of the net"),
    "a tensor in a dict": (lambda net: net.cache[1]["key"].add_(1), "cache of the net"),
    "a dataclass": (lambda net: setattr(net.config, "size", 2), "config of the net"),
    "an object": (lambda net: setattr(net.names, "first", "b"), "names of the net"),
    "an array": (lambda net: net.table.fill(1), "table of the net"),
    "a hook": (lambda net: net.part.register_forward_hook(nothing), "_forward_hooks of part"),
    "a mode": (lambda net: net.part.train(not net.part.training), "training of part"),
    "a method": (lambda net: setattr(net, "forward", nothing), "attributes of the net"),
    "a class": (lambda net: setattr(net, "__class__", nn.Identity), "the class of the net"),
}


@pytest.mark.parametrize("name", NETS)
def test_a_change_of_a_net_is_seen(name: str) -> None:
    change, place = NETS[name]
    net = Holder()
    before = state(net, ())
    assert list(changes(before, state(net, ()))) == []
    with torch.no_grad():
        change(net)
    assert place in list(changes(before, state(net, ())))


def test_a_change_of_a_class_and_of_arguments_is_seen() -> None:
    net, given = Holder(), {"x": torch.zeros(2), "y": [torch.zeros(3).t()]}
    before = state(net, given)
    with patch.object(Holder, "forward", nothing):
        assert list(changes(before, state(net, given))) == ["methods of Holder"]
    given["y"][0].add_(1)
    assert list(changes(before, state(net, given))) == ["argument 1"]


ONES = torch.ones(2, 3)


@dataclass
class Result:
    first: Any
    second: Any = None


DIFFERENT: dict[str, tuple[Any, Any, str]] = {
    "type": ([ONES], (ONES,), "it is a list and not a tuple"),
    "keys": ({"a": 1}, {"b": 1}, "it has other keys"),
    "order": ({"a": 1, "b": 1}, {"b": 1, "a": 1}, "it has other keys"),
    "length": ([ONES], [ONES, ONES], "it has 1 items and not 2"),
    "plain value": ((1, 2.0), (1, 2), "it[1] is a float and not a int"),
    "number": ((ONES, -0.0), (ONES, 0.0), "it[1] is -0.0 and not 0.0"),
    "dataclass": (Result(ONES, 1), Result(ONES, 2), "it.second is 1 and not 2"),
    "object": (SimpleNamespace(x=ONES), SimpleNamespace(x=0 * ONES), "tensor 0 is off by"),
    "shape": (ONES[0], ONES, "has shape torch.Size([3])"),
    "dtype": (ONES.double(), ONES, "has dtype torch.float64 and not torch.float32"),
    "strides": (ONES.t().contiguous().t(), ONES, "has strides (1, 2) and not (3, 1)"),
    "layout": (ONES.to_sparse(), ONES, "has layout torch.sparse_coo"),
    "gradient": (ONES.clone().requires_grad_(), ONES, "has requires_grad True"),
    "whole number": (torch.arange(4), torch.tensor([0, 1, 2, 4]), "has 1 of 4 other values"),
    "bool": (ONES > 1, ONES > 0, "has 6 of 6 other values"),
    "float": (ONES + 0.001, ONES, "is off by 1.0e-03 of its largest value"),
    "denormal": (0 * ONES, ONES * 1e-40, "is off by"),
    "complex": (ONES * 1j, ONES * 1j + 0.01, "is off by"),
    "NaN": (ONES / 0 * 0, ONES, "is NaN in 6 places and not 0"),
    "infinity": (-ONES / 0, ONES / 0, "is infinite in 6 places and not 6"),
    "sparse value": (ONES.to_sparse(), (2 * ONES).to_sparse(), "is off by 5.0e-01"),
    "aliases": ((ONES, ONES), (ONES, ONES.clone()), "its tensors share memory otherwise"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_is_seen(name: str) -> None:
    value, right, sentence = DIFFERENT[name]
    assert sentence in (difference(value, right) or "")
    assert difference(right, right) is None


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_quantized_values_are_compared() -> None:
    half, whole = (torch.quantize_per_tensor(x * ONES, 0.1, 0, torch.qint8) for x in (1, 2))
    assert "is off by 5.0e-01" in (difference(half, whole) or "")
    assert difference(half, half) is None


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_any_quantized_value_that_changes_is_seen() -> None:
    before, after = torch.zeros(100, 100), torch.zeros(100, 100)
    after[50, 50] = 1  # torch prints the corners alone
    first, second = (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8) for x in (before, after))
    kept = state(None, (first,))
    assert not list(changes(kept, state(None, (first,))))
    first.copy_(second)
    assert list(changes(kept, state(None, (first,)))) == ["argument 0"]


def packed(seed: int) -> Any:
    """The packed weights of a linear layer in int8."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(8, 4)).eval()
    quantized = torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)
    return quantized[0]._packed_params._packed_params


@pytest.mark.filterwarnings("ignore")
def test_packed_weights_are_compared() -> None:
    one, other = SimpleNamespace(packed=packed(0)), SimpleNamespace(packed=packed(1))
    assert isinstance(one.packed, torch.ScriptObject)
    assert "is off by" in (difference(one, other) or "")
    assert difference(one, SimpleNamespace(packed=packed(0))) is None
    assert held(one) == held(one) and held(one)[1] != held(other)[1]


def test_complex_numbers_are_compared_by_their_magnitude() -> None:
    right = torch.tensor([[3e3 + 4e3j, 1e-3j]])
    assert difference(right + 0.4, right) is None
    assert "is off by 2.0e-03" in (difference(right + 10j, right) or "")
    part, whole = torch.tensor([complex("nan"), 1]), torch.tensor([complex("nan+nanj"), 1])
    assert difference(part, whole) is None
    assert "is NaN in 0 places" in (difference(torch.ones_like(part), part) or "")
    infinite = torch.tensor([complex("inf"), 1])
    assert difference(infinite, infinite) is None
    assert "is infinite in 1 places" in (difference(infinite, -infinite) or "")


def test_the_error_of_eager_torch_itself_is_allowed_for_while_it_is_small() -> None:
    right, off = ONES, ONES + 0.004
    assert difference(off, right) is not None
    assert difference(off, right, lambda: ONES.double() + 0.001) is None
    assert difference(off, right, lambda: ONES.double() + 0.0004) is not None
    assert difference(right + 1, right, lambda: ONES.double() + 0.5) is not None, "another branch"
    assert difference(off, right, lambda: None) is not None


def test_handles_of_hooks_are_alike() -> None:
    first, second = (nn.Identity().register_forward_hook(nothing) for _ in range(2))
    assert difference({"handle": first}, {"handle": second}) is None


def test_objects_that_hold_themselves_are_compared() -> None:
    def ring(size: int) -> Mapping[str, Any]:
        made: dict[str, Any] = {"size": size}
        made["self"] = made
        return made

    assert difference(ring(1), ring(1)) is None
    assert difference(ring(1), ring(2)) == "it['size'] is 1 and not 2"
