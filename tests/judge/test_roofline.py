"""The physical floor: impossible times, and times that are only fast."""

import threading

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings
from passnet.judge.timing.roofline import Roofline, cpu_ms, measure_roofline, peak_gflops, write_ms
from passnet.judge.verdict.check import KINDS, Expected


def test_a_time_below_half_of_the_floor_is_rejected_with_the_arithmetic() -> None:
    floor = Roofline(1 << 20, 0.05, 0, 0.0, 1)
    assert floor.proof(0.026, 0.1) is None
    proof = floor.proof(0.02, 0.1)
    assert proof is not None and (proof.weight, proof.name) == ("reject", "physical_floor")
    assert "20.0 us" in proof.evidence and "1048576 bytes takes 50.0 us" in proof.evidence


def test_arithmetic_and_threads_count() -> None:
    floor = Roofline(1 << 20, 0.05, 10**9, 100.0, 2)
    assert floor.ms == 5.0  # a billion operations at 100 a nanosecond, on two threads
    proof = floor.proof(1.0, 10.0)
    assert (
        proof is not None and "1000000000 operations at 100 G/s take 10000.0 us" in proof.evidence
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


def test_waiting_for_the_processor_makes_no_floor_higher() -> None:
    assert cpu_ms(lambda: threading.Event().wait(0.1)) < 50, "what waits takes no CPU time"


def test_a_floor_is_measured_on_this_machine() -> None:
    assert write_ms(1024) == 0.0 < write_ms(64 << 20)
    assert 0.0 < peak_gflops() < float("inf")
    assert measure_roofline(0, 0, 1).ms == 0.0
