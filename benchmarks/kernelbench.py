"""Trivial answers on KernelBench's problems, by its own test and by the judge's comparison.

Run it with `python -m benchmarks.kernelbench CHECKOUT SUITE.work [RECORDS]`, the folder that
`passnet suite import kernelbench` left beside its suite. Zeros, ones, an input, the output for
other inputs and its mean are tried on every captured problem, each in a limited process.
KernelBench's test is repeated as its scripts run it: five draws of `get_inputs`, and `allclose`
with one number for both tolerances. What is done is kept in the file RECORDS; failures are tried
again.
"""

import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.records.serialise import decode, encode, read_lines, write_json
from passnet.core.terminal.progress import progress
from passnet.graph.fx.build import build
from passnet.graph.values.cost import torch_arguments
from passnet.judge.score.tolerance import CORRECT_AT, smallest_t
from passnet.pages.tables.tables import Table, markdown, print_table
from passnet_exchange.pairs.constants import find_constants, replaced
from passnet_exchange.pairs.kernelbench import RECORDS_FILE, ImportedProblem, find_problems
from passnet_exchange.pairs.module import flat_outputs
from passnet_exchange.pairs.problem import CAPTURE, ProblemOrder
from passnet_exchange.pairs.problem_capture import make_reference, read_tree

ANSWERS = ("zeros", "ones", "mean", "input", "replay")
OWN_TOLERANCES = (1e-4, 1e-2)
"""KernelBench's for float32: since its tolerances depend on the dtype, and before."""
LEVELS = (CORRECT_AT, -3, 1)
"""Where outputs count as correct; the last level of full weight in the score; and the level from
which its tolerance of values grows no further."""
NUM_DRAWS = 5
LIMITS = JobLimits(600.0, 8192)
JOB = "benchmarks.kernelbench"
Answers = dict[str, list[torch.Tensor] | None]


def trivial(right: list[Any], inputs: Sequence[Any], other: list[Any]) -> list[Answers]:
    """The trivial answers for outputs: several where several inputs have their sizes."""
    filled: Answers = {
        "zeros": [torch.zeros_like(each) for each in right],
        "ones": [torch.ones_like(each) for each in right],
        "mean": [torch.full_like(each, float(each.double().mean())) for each in other],
        "replay": other,
    }
    tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
    given: list[Answers] = [
        {"input": [tensor.reshape(right[0].shape).to(right[0].dtype)]}
        for tensor in tensors
        if len(right) == 1 and tensor.numel() == right[0].numel()
    ]
    return [filled, *given]


def passed(
    draws: list[tuple[list[Any], list[Answers]]], agree: Callable[[Any, Any], bool]
) -> list[str]:
    """The answers that agree with the right outputs at all draws, in one of their forms."""
    names = []
    for name in ANSWERS:
        forms = [index for index, form in enumerate(draws[0][1]) if name in form]
        if any(
            all(all(map(agree, right, answers[index][name] or ())) for right, answers in draws)
            for index in forms
        ):
            names.append(name)
    return names


def by_kernelbench(imported: ImportedProblem, path: Path) -> list[list[str]]:
    """The answers that pass KernelBench's test, at each of its tolerances."""
    tree = read_tree(path)
    after = {(each.name, each.before): each.after for each in imported.problem.reduced}
    values = {
        each: after[each.name, each.value]
        for each in find_constants(tree)
        if (each.name, each.value) in after
    }
    binding = imported.problem.binding
    assert binding is not None, "a captured problem has one"
    order = ProblemOrder(str(path), binding.is_evaluated)
    reference = make_reference(replaced(tree, values), order)
    torch.manual_seed(42)
    seeds = [int(torch.randint(0, 2**32 - 1, (1,))) for _ in range(NUM_DRAWS + 1)]
    draws, other = [], None
    for seed in seeds:
        torch.manual_seed(seed)
        inputs = reference.draw()
        right = [each.clone() for each in flat_outputs(reference.call(*inputs))]
        if other is not None:
            draws.append((right, trivial(right, inputs, other)))
        other = right
    return [
        passed(draws, lambda one, two, t=tolerance: bool(torch.allclose(one, two, atol=t, rtol=t)))
        for tolerance in OWN_TOLERANCES
    ]


def by_judge(imported: ImportedProblem) -> list[list[str]]:
    """The answers that agree on recorded and on fresh inputs, at each of `LEVELS`."""
    graph = imported.problem.graph
    module = build(graph.program)
    inputs = [number for number in imported.problem.binding.inputs if isinstance(number, int)]
    draws = []
    for kind in ("recorded", "fresh"):
        runs = []
        for seed in (1, 0):
            arguments = torch_arguments(graph, kind, seed)
            given = [arguments[number].clone() for number in inputs]
            runs.append([each.clone() for each in module.forward(*arguments)])
        draws.append((runs[1], trivial(runs[1], given, runs[0])))

    def level(right: torch.Tensor, answer: torch.Tensor) -> float:
        dtype = str(right.dtype).removeprefix("torch.")
        found = smallest_t(answer.numpy(), right.numpy(), dtype)
        return np.inf if found is None else found

    return [
        passed(draws, lambda right, answer, t=most: level(right, answer) <= t) for most in LEVELS
    ]


def count_to(payload: str, folder: Path) -> None:
    """Try the answers on a problem in this process, and write what passes to a folder."""
    imported, path = decode(payload, tuple[ImportedProblem, str])
    torch.set_grad_enabled(False)
    rows = [*by_kernelbench(imported, Path(path)), *by_judge(imported)]
    write_json(folder / RECORD_FILE, {"name": imported.name, "passed": rows})


def count(checkout: Path, work: Path, records: Path) -> list[dict[str, Any]]:
    """What passes on every captured problem, by what was kept and by what is still missing."""
    done = {}
    if records.exists():
        lines = records.read_text().splitlines()
        done = {row["name"]: row for row in map(json.loads, lines) if "passed" in row}
    paths = find_problems(checkout, ())
    problems = {each.name: each for each in read_lines(work / RECORDS_FILE, ImportedProblem)}
    missing = [each for each in problems.values() if each.problem.error is None]
    missing = [each for each in missing if each.name not in done]
    folders = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)  # a job finds this file
    with JobRunner() as runner, progress("counting", len(missing)) as step:
        for imported in missing:
            payload = encode((imported, str(paths[imported.name].resolve()))).decode()
            result = runner.run(Job(f"{JOB}:count_to", payload, LIMITS, f"{CAPTURE}:ready"))
            row = {"name": imported.name, "error": result.failure}
            if outcome := result.outcome(dict[str, Any]):
                row = outcome.record
            done[imported.name] = row
            with records.open("a") as file:
                file.write(json.dumps(row) + "\n")
            step(imported.name[:40])
    return list(done.values())


def table(rows: list[dict[str, Any]]) -> Table:
    """The number of problems that each answer passes, by test."""
    counted = [row for row in rows if "passed" in row]
    tests = [f"KernelBench, {tolerance:g}" for tolerance in OWN_TOLERANCES]
    tests += [f"the judge, t = {most}" for most in LEVELS]
    cells = [
        (
            test,
            *(str(sum(name in row["passed"][index] for row in counted)) for name in ANSWERS),
            str(sum(bool(row["passed"][index]) for row in counted)),
        )
        for index, test in enumerate(tests)
    ]
    return Table(f"{len(counted)} problems", ("test", *ANSWERS, "any"), cells)


def main() -> None:
    """Count what passes, and print the problems concerned and the table."""
    checkout, work, *more = map(Path, sys.argv[1:])
    rows = count(checkout, work, more[0] if more else work / "answers.jsonl")
    for row in rows:
        if any(row.get("passed", ())[:3]) or "error" in row:
            print(row["name"], row.get("passed") or row["error"])
    made = table(rows)
    print_table(Console(), made)
    print(markdown([made]))


if __name__ == "__main__":
    main()
