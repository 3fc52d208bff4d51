"""The physical floor: what is impossible, and what is only fast."""

import time

import numpy as np
import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE
from passnet.judge.check import KINDS, Expected
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings
from passnet.judge.timing import roofline
from passnet.judge.timing.roofline import Roofline, measure_roofline, peak_gflops, write_ms


def test_a_time_below_half_of_the_floor_is_rejected_with_the_arithmetic() -> None:
    floor = Roofline(1 << 20, 0.05, 0, 0.0, 1)
    assert floor.proof(0.026, 0.1) is None
    found = floor.proof(0.02, 0.1)
    assert found is not None and (found.weight, found.name) == ("reject", "physical_floor")
    assert "20.0 us" in found.evidence and "1048576 bytes takes 50.0 us" in found.evidence


def test_arithmetic_and_threads_count() -> None:
    floor = Roofline(1 << 20, 0.05, 10**9, 100.0, 2)
    assert floor.ms == 5.0  # a billion operations at 100 a nanosecond, on two threads
    found = floor.proof(1.0, 10.0)
    assert (
        found is not None and "1000000000 operations at 100 G/s take 10000.0 us" in found.evidence
    )


def test_a_floor_that_the_reference_is_below_proves_nothing() -> None:
    assert Roofline(1 << 20, 0.05, 0, 0.0, 1).proof(0.01, 0.02) is None


def test_the_operations_of_a_matrix_product_are_counted_except_in_half_precision() -> None:
    program = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x: torch.Tensor, w: torch.Tensor):
        y = torch.nn.functional.linear(x, w)
        return (y,)
"""
    with WorkerParent() as parent:
        for dtype, flops in (("float32", 2 * 64 * 128 * 256), ("bfloat16", 0)):
            specs = (TensorSpec("x", (64, 128), dtype), TensorSpec("w", (256, 128), dtype))
            graph = Graph(parse_program(program), specs)
            problem = prepare_graph(graph, [make_inputs(graph, kind, 0) for kind in KINDS])
            with LoadedWorker(
                parent,
                problem,
                REFERENCE,
                JudgeSettings(limits=WorkerLimits(1024), compile_timeout_s=60, call_timeout_s=10),
            ) as subject:
                assert Expected(problem, subject).flops == flops


def test_waiting_for_the_processor_makes_no_floor_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "np", _SlowToStart)
    assert 0.0 < roofline.write_ms(1 << 20) < 20.0


class _SlowToStart:
    """Memory that is written after a wait, as where other work has the processor."""

    uint8 = np.uint8

    @staticmethod
    def zeros(size: int, dtype: type) -> "_SlowToStart":
        memory = _SlowToStart()
        memory.bytes = np.zeros(size, dtype)
        return memory

    bytes: np.ndarray

    def fill(self, value: int) -> None:
        time.sleep(0.02)
        self.bytes.fill(value)


def test_what_was_measured_here_is_plausible() -> None:
    assert write_ms(1024) == 0.0
    gigabytes_a_second = (64 << 20) / write_ms(64 << 20) / 1e6
    assert 0.1 < gigabytes_a_second < 10_000
    assert 0.1 < peak_gflops() < 100_000
    assert measure_roofline(0, 0, 1).ms == 0.0
