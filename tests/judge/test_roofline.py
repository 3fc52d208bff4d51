"""The roofline: the least work of graphs, rates of a machine, and impossible times."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.core.hardware import Hardware
from passnet.core.records.folders import CACHE_VARIABLE
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.machine_rates import machine_rates
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings
from passnet.judge.timing.measurement_findings import roofline_findings
from passnet.judge.timing.roofline import MachineRates, Roofline, roofline_of
from passnet.judge.verdict.check import KINDS, Expected

KIB = 2**10
RATES = MachineRates(
    Hardware("cpu", "a made-up processor", 1, "2.13"),
    memory=(
        (16 * KIB, 4e11, 1e11, 2e11),
        (64 * KIB, 1e11, 5e10, 2e11),
        (256 * KIB, 1e10, 8e9, 9e9),
    ),
    products={"float32": 1e11, "bfloat16": 4e11},
    elementwise={"float32": 5e10},
)


def test_memory_of_a_size_is_as_fast_as_the_next_smaller_one_measured_or_any_larger() -> None:
    assert RATES.of_memory(100) == RATES.of_memory(16 * KIB) == (4e11, 1e11)
    assert RATES.of_memory(255 * KIB) == (2e11, 5e10)
    assert RATES.of_memory(2**30) == (1e10, 8e9)


@pytest.mark.parametrize(
    ("work", "dtype", "expected_ms"),
    [
        ((3_000_000, 1_000_000, 0, 0), "float32", 0.4),  # 4 MB moved at 10 GB/s
        ((0, 4_000_000, 0, 0), "float32", 0.5),  # 4 MB written at 8 GB/s
        ((3_000_000, 1_000_000, 10**9, 0), "float32", 10.0),  # a billion at 100 G/s
        ((3_000_000, 1_000_000, 10**9, 0), "bfloat16", 2.5),
        ((3_000_000, 1_000_000, 0, 10**8), "float32", 2.0),
        ((0, 0, 10**9, 10**9), "int64", 0.0),  # no rate was measured, so that nothing is known
        ((0, 0, 0, 0), "float32", 0.0),
    ],
)
def test_the_least_time_is_that_of_the_slowest_part(
    work: tuple[int, int, int, int], dtype: str, expected_ms: float
) -> None:
    assert roofline_of(work, {dtype}, RATES).ms == pytest.approx(expected_ms)


def test_of_several_dtypes_the_fastest_counts() -> None:
    assert roofline_of((0, 0, 10**9, 0), {"float32", "bfloat16"}, RATES).ms == 2.5


FLOOR = Roofline(0, 2**20, 10**9, 0, 2e10, 2e10, 2e10, 1e10)  # 0.052 ms to write, 50 ms to compute


def test_a_time_below_half_of_the_floor_is_rejected_with_the_arithmetic() -> None:
    assert FLOOR.proof(25.1, 100.0) is None
    proof = FLOOR.proof(24.9, 100.0)
    assert proof is not None and (proof.weight, proof.name) == ("reject", "physical_floor")
    assert proof.evidence == (
        "24900.0 us a call is impossible: 1000000000 operations of products takes 50000.0 us "
        "(50% of that is allowed)"
    )


def test_a_floor_that_the_reference_is_below_proves_nothing() -> None:
    assert FLOOR.proof(0.01, 24.9) is None


@pytest.mark.parametrize(
    ("floor", "candidate_ms", "is_found"), [(FLOOR, 20.0, True), (FLOOR, 30.0, False),
                                            (None, 0.01, False)],
)  # fmt: skip
def test_a_measured_candidate_below_the_floor_has_a_finding(
    floor: Roofline | None, candidate_ms: float, is_found: bool
) -> None:
    rounds = ((candidate_ms, candidate_ms),) * 6
    found = roofline_findings(floor, rounds, ((100.0, 100.0),) * 6)
    assert [each.name for each in found] == ["physical_floor"] * is_found
    assert not roofline_findings(FLOOR, (), ()), "nothing was timed"


ROWS, COLUMNS = 64, 256
X = TensorSpec("x", (ROWS, COLUMNS), "float32", mean=0.0, std=1.0)
W = TensorSpec("w", (128, COLUMNS), "float32", mean=0.0, std=1.0)
MEANS = TensorSpec("m", (ROWS,), "float32")
INDEX = TensorSpec("index", (3,), "int64")
ALL, ROW = 4 * ROWS * COLUMNS, 4 * COLUMNS
PRODUCT = 2 * ROWS * COLUMNS * 128


@pytest.mark.parametrize(
    ("body", "arguments", "work"),
    [
        ("torch.relu(x)", (X,), (0, ROWS * COLUMNS, ALL)),
        ("x.reshape(-1)", (X,), (0, 0, 0)),  # a view reads nothing
        ("x[5] + 1", (X,), (0, COLUMNS, ROW)),
        ("torch.relu(x)[5]", (X,), (0, COLUMNS, ROW)),  # the rest may be left out
        ("x.expand(7, 64, 256) + x", (X,), (0, ROWS * COLUMNS, ALL)),
        ("torch.nn.functional.linear(x, w)", (X, W), (PRODUCT, 0, ALL + 2 * ALL)),
        ("torch.nn.functional.linear(x, w)[0]", (X, W), (PRODUCT // ROWS, 0, ROW + 2 * ALL)),
        ("torch.relu(torch.nn.functional.linear(x, w))", (X, W), (PRODUCT, ROWS * 128, 3 * ALL)),
        ("x.argmax(1)", (X,), (0, 0, 0)),  # no gradient, and nothing claimed
        ("x.clone()", (X, W), (0, 0, ALL)),
        ("torch.nn.functional.batch_norm(x.T, m, m + 9)", (X, MEANS), (0, 0, ALL)),
    ],
)
def test_work_counts_as_far_as_outputs_depend_on_it(
    body: str,
    arguments: tuple[TensorSpec, ...],
    work: tuple[int, int, int],
    counted: Callable[[str, tuple[TensorSpec, ...]], tuple[int, int, int]],
) -> None:
    assert counted(body, arguments) == work


def test_of_a_table_the_rows_that_are_looked_up_are_read(
    counted: Callable[[str, tuple[TensorSpec, ...]], tuple[int, int, int]],
) -> None:
    _, _, num_bytes = counted("torch.nn.functional.embedding(index, x)", (X, INDEX))
    assert num_bytes in (ROW, 2 * ROW, 3 * ROW)


@pytest.fixture(scope="module")
def counted() -> Callable[[str, tuple[TensorSpec, ...]], tuple[int, int, int]]:
    import torch

    from passnet.judge.worker.work import count_work

    def count(body: str, arguments: tuple[TensorSpec, ...]) -> tuple[int, int, int]:
        torch.manual_seed(0)
        values = {
            spec.name: torch.randn(spec.shape)
            if spec.dtype == "float32"
            else torch.randint(ROWS, spec.shape)
            for spec in arguments
        }
        names = ", ".join(values)
        return count_work(eval(f"lambda {names}: {body}", {"torch": torch}), [*values.values()])

    return count


def test_a_worker_counts_the_work_of_its_graph() -> None:
    program = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x: torch.Tensor, w: torch.Tensor):
        y = torch.nn.functional.linear(x, w)
        return (y,)
"""
    with WorkerParent() as parent:
        for dtype, rate in (("float32", 1e11), ("bfloat16", 4e11)):
            specs = (TensorSpec("x", (64, 128), dtype), TensorSpec("w", (256, 128), dtype))
            graph = Graph(parse_program(program), specs)
            problem = prepare_graph(graph, [make_inputs(graph, kind, 0) for kind in KINDS])
            with LoadedWorker(
                parent,
                problem,
                REFERENCE,
                JudgeSettings(limits=WorkerLimits(1024), compile_timeout_s=60, call_timeout_s=10),
            ) as subject:
                floor = Expected(problem, subject).roofline(1000, RATES)
            assert floor is not None and floor.products == 2 * 64 * 128 * 256
            assert floor.products_per_s == rate and floor.bytes_written == 1000
            assert floor.bytes_read == (64 + 256) * 128 * (4 if dtype == "float32" else 2)


def test_rates_are_kept_for_each_machine_until_they_are_wanted_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    measured: list[Hardware] = []

    def measure(hardware: Hardware) -> MachineRates:
        measured.append(hardware)
        return replace(RATES, hardware=hardware)

    rates = machine_rates(measure=measure)
    assert rates == machine_rates(measure=measure) and len(measured) == 1
    assert machine_rates(2, measure=measure).hardware.num_threads == 2 and len(measured) == 2
    machine_rates(is_again=True, measure=measure)
    assert len(measured) == 3
    [path, _] = sorted((tmp_path / "rates").iterdir(), key=lambda path: 's":1' in path.read_text())
    path.write_text("{}")
    machine_rates(2, measure=measure)
    machine_rates(1, measure=measure)
    assert len(measured) == 4, "a damaged file is measured again"


def test_rates_are_measured_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    rates = machine_rates(2)
    assert 0 < rates.elementwise["float32"] <= rates.products["float32"] < float("inf")
    assert all(rate > 0 for row in rates.memory for rate in row)
    smallest, *_, largest = rates.memory
    assert max(smallest[1:]) > max(largest[1:]), "a cache is faster than memory"
