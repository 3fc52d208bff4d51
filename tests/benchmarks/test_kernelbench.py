"""Trivial answers on a made-up problem, by KernelBench's test and by the judge's comparison."""

import json
from pathlib import Path

from benchmarks.kernelbench import LEVELS, OWN_TOLERANCES, by_judge, by_kernelbench
from passnet.core.records.serialise import read_json
from passnet_exchange.pairs.kernelbench import ImportedProblem
from passnet_exchange.pairs.problem import Problem
from passnet_exchange.pairs.problem_capture import capture_to
from tests.exchange.pairs import INPUTS, net, write


def imported(folder: Path, body: str) -> tuple[ImportedProblem, Path]:
    file = write(folder / "1_Net.py", net("Model", f"return {body}") + INPUTS)
    capture_to(json.dumps({"path": str(file), "max_bytes": 8192}), folder)
    problem = read_json(folder / "record.json", Problem)
    assert problem.error is None and problem.reduced, problem.error
    return ImportedProblem("level1/1_Net", problem), file


def test_an_input_passes_where_it_is_positive_alone(tmp_path: Path) -> None:
    problem, file = imported(tmp_path, "torch.relu(x)")
    assert by_kernelbench(problem, file) == [["input"]] * len(OWN_TOLERANCES)
    assert by_judge(problem)[0] == []


def test_zeros_pass_where_nothing_is_computed(tmp_path: Path) -> None:
    problem, file = imported(tmp_path, "torch.relu(x) * 0")
    zeros = {"zeros", "mean", "replay"}
    assert all(set(names) == zeros for names in by_kernelbench(problem, file))
    assert [set(names) for names in by_judge(problem)[:2]] == [zeros] * (len(LEVELS) - 1)
