"""Passes on graphs under Triton's interpreter, on a CPU, in a process of its own.

`python -m tests.passes.interpreted` reads jobs as JSON from its input and writes what came of them.
Where it runs, `TRITON_INTERPRET` is set before Triton is imported.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from passnet.core.records.dtypes import Array, from_storage, to_storage
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.graph.values.inputs import InputKind, make_inputs
from passnet.judge.score.tolerance import smallest_t
from passnet.judge.verdict.compare import same_order
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from tests.passes.values import stored, tensors

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Job:
    """A pass folder to try on a graph; with no kind of inputs it is rewritten and not run."""

    name: str
    folder: str
    text: str
    tensors: tuple[TensorSpec, ...]
    kinds: tuple[InputKind, ...] = ()


@dataclass(frozen=True)
class Result:
    """What came of a job: how often each pass matched, the smallest level at which all outputs
    agree (None where they do at none, or it was not run), and what is wrong otherwise.
    """

    name: str
    matches: dict[str, int]
    t: int | None = None
    problem: str | None = None


def job(name: str, folder: Path, graph: Graph, *kinds: InputKind) -> Job:
    """A job for a graph."""
    return Job(name, str(folder), render_program(graph.program), graph.tensors, kinds)


def run_interpreted(jobs: Sequence[Job], timeout_s: float = 600.0) -> dict[str, Result]:
    """What comes of some jobs, by their names."""
    completed = subprocess.run(
        [sys.executable, "-m", "tests.passes.interpreted"],
        input=msgspec.json.encode(jobs),
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=timeout_s,
    )
    assert completed.returncode == 0, completed.stderr.decode()[-3000:]
    results = msgspec.json.decode(completed.stdout, type=list[Result])
    return {result.name: result for result in results}


def main() -> None:
    """Do the jobs of the input; whatever the passes print goes to the error stream."""
    jobs = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Job])
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    correct_interpreter()
    with torch.no_grad(), output:
        output.write(msgspec.json.encode([_tried(case) for case in jobs]))


def correct_interpreter() -> None:
    """Let the interpreter treat bfloat16 as a GPU does, and do without one; as of Triton 3.7.

    It holds bfloat16 as 16-bit integers, rounds to it by cutting bits off, where a GPU rounds to
    nearest, and multiplies those integers in `tl.dot`. Autotuning asks for a GPU's clock: here the
    first configuration is taken.
    """
    import triton.language as tl  # pyrefly: ignore
    from triton.runtime import autotuner, interpreter  # pyrefly: ignore

    convert: Callable[..., Any] = interpreter._convert_float
    dot: Callable[..., Any] = interpreter.InterpreterBuilder.create_dot

    def convert_float(values: Array, source: Any, target: Any, rounding: Any) -> Array:
        if (source, target) == (tl.bfloat16, tl.float32):
            return np.asarray(from_storage(values, "bfloat16"), np.float32)
        if (source, target) == (tl.float32, tl.bfloat16):
            return to_storage(values, "bfloat16")
        return convert(values, source, target, rounding)

    def create_dot(self: Any, a: Any, b: Any, *options: Any) -> Any:
        if a.dtype.scalar == tl.bfloat16:
            a, b = (self.cast_impl(operand, tl.float32) for operand in (a, b))
        return dot(self, a, b, *options)

    interpreter._convert_float = convert_float
    interpreter.InterpreterBuilder.create_dot = create_dot
    autotuner.Autotuner._bench = lambda *_, **__: [0.0, 0.0, 0.0]


def _tried(case: Job) -> Result:
    try:
        return _result(case)
    except Exception as cause:  # noqa: BLE001 (top loop: any failure is a result)
        return Result(case.name, {}, None, f"{type(cause).__name__}: {cause}")


def _result(case: Job) -> Result:
    graph = Graph(parse_program(case.text), case.tensors)
    module, original = build(graph.program), build(graph.program)
    inputs = tensors(graph, make_inputs(graph, "fresh", seed=0))
    reports, _ = apply_passes(module, load_passes(inspect_folder(Path(case.folder))), inputs)
    matches = {report.name: report.num_matches for report in reports}
    if not any(matches.values()):
        misses = [report.miss.sentence() for report in reports if report.miss]
        return Result(case.name, matches, None, f"no match: {misses}")
    worst = None
    for kind in case.kinds:
        values = make_inputs(graph, kind, seed=0)
        expected = original(*tensors(graph, values))
        args = tensors(graph, values)
        t, problem = _compared(module(*args), expected)
        for value, arg in zip(values, args, strict=True):
            if not np.array_equal(value, arg if isinstance(arg, int) else stored(arg)):
                problem = "an argument is written to"
        if problem:
            return Result(case.name, matches, None, f"{kind}: {problem}")
        worst = t if worst is None or t is not None and t > worst else worst
    return Result(case.name, matches, worst)


def _compared(actual: Sequence[Any], expected: Sequence[Any]) -> tuple[int | None, str | None]:
    """The smallest level at which outputs agree, or what their difference is."""
    if len(actual) != len(expected):
        return None, f"{len(actual)} outputs, not {len(expected)}"
    levels = []
    for first, second in zip(actual, expected, strict=True):
        if (first.dtype, first.shape) != (second.dtype, second.shape):
            return None, f"{first.dtype} {first.shape}, not {second.dtype} {second.shape}"
        if not same_order(first.shape, first.stride(), second.stride()):
            return None, f"strides {first.stride()}, not {second.stride()}"
        t = smallest_t(stored(first), stored(second), str(second.dtype).removeprefix("torch."))
        if t is None:
            return None, "the values agree at no level"
        levels.append(t)
    return max(levels), None


if __name__ == "__main__":
    main()
