"""A candidate's file against a reference's: what is captured, what is bound, and the judgement."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.core.jobs.process import JobLimits
from passnet.core.records.serialise import read_json, write_json
from passnet.errors import InputError, PassError
from passnet.judge.trial import Trial
from passnet_exchange.pairs.binding import BINDING_FILE, CANDIDATE_FILE
from passnet_exchange.pairs.module import module_call
from passnet_exchange.pairs.pair import PairResult, judge_pair, result_of
from passnet_exchange.pairs.problem import Problem
from passnet_exchange.pairs.problem_capture import capture_to
from tests.agent.brief import brief_settings
from tests.bench.runs import passnet
from tests.exchange.pairs import (
    FUNCTION,
    FUNCTIONS,
    INPUTS,
    REFERENCE,
    RENAMED,
    REPLAY,
    net,
    write,
)

LIMITS = JobLimits(60.0, 4096)


def captured(folder: Path, text: str, **order: Any) -> Problem:
    file = write(folder / "reference.py", text)
    capture_to(json.dumps({"path": str(file), **order}), folder)
    return read_json(folder / "record.json", Problem)


def bound(folder: Path, problem: Problem, candidate: str) -> Any:
    """Return the call of a candidate, and fresh values of the arguments of its graph."""
    write(folder / CANDIDATE_FILE, candidate)
    write_json(folder / BINDING_FILE, problem.binding)
    values = [torch.rand(spec.shape) for spec in problem.tensors]
    return module_call(folder, values), values


def test_weights_are_arguments_and_numbers_stay(tmp_path: Path) -> None:
    problem = captured(tmp_path, REFERENCE)
    assert problem.error is None and problem.binding is not None
    names = [weight.name for weight in problem.binding.weights]
    assert sorted(names) == ["linear.bias", "linear.weight", "norm.bias", "norm.weight"]
    assert problem.binding.inputs[1] == "2"
    assert len(problem.tensors) == 5


@pytest.mark.parametrize("candidate", [net(), RENAMED], ids=["same", "renamed"])
def test_a_candidate_computes_with_the_weights_of_the_call(tmp_path: Path, candidate: str) -> None:
    problem = captured(tmp_path, REFERENCE)
    call, values = bound(tmp_path, problem, candidate)
    for _ in range(2):
        values = [torch.rand_like(value) for value in values]
        by_name = {weight.name: values[weight.argument] for weight in problem.binding.weights}
        hidden = values[problem.binding.inputs[0]] @ by_name["linear.weight"].T
        hidden = torch.nn.functional.layer_norm(
            hidden + by_name["linear.bias"], (32,), by_name["norm.weight"], by_name["norm.bias"]
        )
        with torch.no_grad():
            torch.testing.assert_close(call(*values), (torch.relu(hidden) * 0.5 + 2,))


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (net(init="del self.linear"), r"ModelNew has no linear\.\w+ of shape"),
        (net(init="self.linear = nn.Linear(features, 3)"), r"of shape \[32"),
        (net("Other"), "defines no ModelNew"),
        ("class ModelNew(:", "loading the candidate: SyntaxError"),
        (net(init="raise ValueError('no')"), "building ModelNew: ValueError: no"),
    ],
    ids=["lacks", "shape", "name", "syntax", "init"],
)
def test_a_candidate_that_cannot_be_bound_says_why(
    tmp_path: Path, candidate: str, text: str
) -> None:
    problem = captured(tmp_path, REFERENCE)
    with pytest.raises(PassError, match=text):
        bound(tmp_path, problem, candidate)


def test_outputs_of_functions_are_flat_and_in_order(tmp_path: Path) -> None:
    problem = captured(tmp_path, FUNCTIONS)
    call, values = bound(tmp_path, problem, FUNCTION)
    x, y = (values[number] for number in problem.binding.inputs[:2])
    torch.testing.assert_close(call(*values), (x + 3 * y, torch.softmax(x, -1), x))
    assert len(problem.graph.program.outputs) == 3


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("x = 1\n", "defines neither Model and get_inputs"),
        ("def reference(:", "is not Python"),
        (net("Model", "return torch.rand_like(x)") + INPUTS, "draws random numbers"),
        (net("Model", "return x.sum().item() * x if x.sum() > 0 else x") + INPUTS, "graphs and"),
        (net("Model", "return other + x") + "other = torch.ones(32)\n" + INPUTS, "is no input"),
        (net("Model", "raise ValueError('bad sizes')") + INPUTS, "bad sizes"),
    ],
    ids=["nothing", "syntax", "random", "broken", "global", "fails"],
)
def test_a_reference_that_gives_no_graph_says_why(tmp_path: Path, text: str, error: str) -> None:
    problem = captured(tmp_path, text)
    assert problem.error is not None and error in problem.error


def test_dropout_is_captured_in_evaluation_mode_alone(tmp_path: Path) -> None:
    text = net("Model", "return nn.functional.dropout(x, 0.5, self.training)") + INPUTS
    assert "--eval-mode" in (captured(tmp_path, text).error or "")
    problem = captured(tmp_path, text, may_evaluate=True)
    assert problem.binding is not None and problem.binding.is_evaluated


def test_inputs_stay_positive_where_outputs_are_no_numbers_otherwise(tmp_path: Path) -> None:
    problem = captured(tmp_path, net("Model", "return torch.log(x + 1e-3)") + INPUTS)
    assert problem.positive == tuple(spec.name for spec in problem.tensors)
    assert captured(tmp_path, net("Model", "return torch.relu(x)") + INPUTS).positive == ()


def test_a_warning_ends_no_graph(tmp_path: Path) -> None:
    text = "import warnings\n" + net("Model", "warnings.warn('old')\n        return x + 1") + INPUTS
    assert captured(tmp_path, text).error is None


def test_an_input_that_is_not_used_is_an_argument_too(tmp_path: Path) -> None:
    text = FUNCTIONS.replace("x + y * times", "x * 2")
    problem = captured(tmp_path, text)
    assert len({*problem.binding.inputs[:2]}) == 2
    call, values = bound(tmp_path, problem, FUNCTION)
    assert len(call(*values)) == 3


def test_only_a_right_candidate_has_a_speedup() -> None:
    trial = Trial("pair", "reference", "candidate", "ok", -3, 2.0, 1.9, 2.1)
    assert result_of(trial, -5).status == "wrong_values"
    assert result_of(trial, -5).speedup is None
    assert (result_of(trial, -3).status, result_of(trial, -3).speedup) == ("ok", 2.0)
    wrong = replace(trial, error="output 0 is wrong at [3]")
    assert (result_of(wrong, -5).error, result_of(wrong, -3).error) == (wrong.error, None)


def judged(folder: Path, reference: str, candidate: str, seconds: float = 0.05) -> PairResult:
    paths = [
        write(folder / name, text)
        for name, text in (("reference.py", reference), ("candidate.py", candidate))
    ]
    return judge_pair(*paths, brief_settings(seconds), LIMITS)


EXITS = "import os\nos._exit(0)\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reference", "candidate", "status", "text"),
    [
        (REFERENCE, net(), "ok", None),
        (FUNCTIONS, FUNCTION, "ok", None),
        (REFERENCE, net(body="return torch.relu(self.linear(x))"), "wrong_values", "agree"),
        (REFERENCE, net(init="del self.linear"), "compile_error", "has no linear"),
        (REFERENCE, EXITS, "crash", "exited with code 0"),
        (REFERENCE, net(body=EXITS.replace("\n", "; ")), "crash", "exited with code 0"),
        (REFERENCE, "class ModelNew(:", "compile_error", "candidate.py:1: not Python"),
    ],
    ids=["module", "function", "wrong", "lacks", "exits", "exits-later", "syntax"],
)
def test_a_pair_is_judged(
    tmp_path: Path, reference: str, candidate: str, status: str, text: str | None
) -> None:
    result = judged(tmp_path, reference, candidate)
    assert result.status == status, result.error
    assert (result.error is None) if text is None else (text in (result.error or ""))
    assert (result.speedup is not None) == (status == "ok")
    assert not [finding for finding in result.findings if finding.weight == "reject"]


@pytest.mark.slow
def test_an_answer_that_is_replayed_from_a_static_buffer_is_a_cheat(tmp_path: Path) -> None:
    init = "self.calls, self.out = 0, torch.empty(64, features)"
    result = judged(tmp_path, REFERENCE, net(body=REPLAY, init=init), 0.2)
    assert result.status == "cheat"
    names = {finding.name for finding in result.findings if finding.weight == "reject"}
    assert names & {"static_buffer", "replayed_output"}


@pytest.mark.slow
def test_the_command_prints_json_and_names_a_bad_reference(tmp_path: Path) -> None:
    reference = write(tmp_path / "reference.py", REFERENCE)
    candidate = write(tmp_path / "candidate.py", net())
    words = ("--seconds", "0.05", "--self-tolerance", "1000", "--json")
    run = passnet("judge", "pair", str(reference), str(candidate), *words)
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    keys = {"status", "speedup", "speedup_low", "speedup_high", "findings", "error"}
    assert keys <= result.keys() and result["status"] == "ok"
    refused = passnet("judge", "pair", str(candidate), str(candidate), *words)
    assert refused.returncode == 2 and "defines neither Model" in refused.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="absent.py"):
        judge_pair(tmp_path / "absent.py", tmp_path / "absent.py", brief_settings(), LIMITS)
