"""Explanations of wrong timed calls: a constant answer, an earlier one, or one of old arguments.

A wrong worker makes two more bursts. Its answers are compared with each other, to the bit, and with
the oracle's on the same inputs, where some arguments have values of earlier calls.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from passnet.core.records.dtypes import Array, from_storage
from passnet.judge.processes.loaded_worker import PreparedGraph
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.timing.fresh_inputs import Draw, FreshInputs
from passnet.judge.timing.timed_worker import LEAST_CALLS, Look, TimedWorker
from passnet.judge.verdict.compare import compare_values
from passnet.judge.verdict.findings import Finding, finding

MAX_ARGUMENTS = 24
"""Most arguments that are tried one by one; beyond, only all weights together."""
Answers = list[list[Array | None]]
"""All outputs of each call of a burst."""


def explain(
    worker: TimedWorker, oracle: TimedWorker, fresh: FreshInputs, prepared: PreparedGraph
) -> list[Finding]:
    """Return the explanation of a worker's wrong outputs, if any fits.

    A failure of the oracle raises WorkerFailureError, like one of the worker.
    """
    first, second = ([fresh.draw() for _ in range(LEAST_CALLS)] for _ in range(2))
    earlier, later = _answers(worker, fresh, first), _answers(worker, fresh, second)
    right_earlier, right_later = _answers(oracle, fresh, first), _answers(oracle, fresh, second)
    answers, right = [*earlier, *later], [*right_earlier, *right_later]
    if all(_agree(oracle, *pair) for pair in zip(answers, right, strict=True)):
        return []
    if not all(_is_finite(oracle, answer) for answer in answers):
        return []  # overflow is the same for many inputs
    pairs = [
        (after, before)
        for after in range(1, len(answers))
        for before in range(after)
        if _same(answers[after], answers[before]) and not _same(right[after], right[before])
    ]
    if len(pairs) == len(answers) * (len(answers) - 1) // 2:
        text = "calls on different inputs all gave the same outputs, to the bit"
        return [finding("constant_output", text)]
    if pairs:
        text = "a call gave the outputs of an earlier call on other inputs, to the bit"
        return [finding("replayed_output", text)]
    wrong = [
        call
        for call, pair in enumerate(zip(later, right_later, strict=True))
        if not _agree(oracle, *pair)
    ]
    if not wrong:
        return []
    call = wrong[0]  # a right answer may fit many inputs
    for stale, name in _old_values(prepared, fresh, oracle, first[call]):
        oracle.write(fresh, [second[call]])
        for index, values in stale.items():
            oracle.overwrite(0, index, values)
        if _agree(oracle, later[call], _answers_of_written(oracle, fresh, 1)[0]):
            if len(stale) == sum(layout.number is None for layout in prepared.layouts):
                text = f"a call gave the outputs that belong to the arguments of {name}"
                return [finding("replayed_output", text)]
            arguments = ", ".join(map(str, sorted(stale)))
            text = f"a call gave outputs for argument {arguments} as it was in {name}"
            return [finding("stale_argument", text)]
    return []


def _old_values(
    prepared: PreparedGraph, fresh: FreshInputs, oracle: TimedWorker, before: Draw
) -> Iterator[tuple[dict[int, Array], str]]:
    """Yield earlier values of all arguments, the weights, and each alone, with the call's name."""
    tensors = [index for index, layout in enumerate(prepared.layouts) if layout.number is None]
    weights = [index for index in tensors if prepared.tensors[index].role == "weight"]
    groups = [tensors, weights]
    if len(tensors) <= MAX_ARGUMENTS:
        groups += [[index] for index in tensors]
    oracle.write(fresh, [before])
    previous = {index: oracle.argument(0, index).copy() for index in tensors}
    calls = [(previous, "the call before on the same memory")]
    for number in range(len(prepared.input_sets)):
        values = {index: prepared.values(number, index) for index in tensors}
        calls.append((values, f"an earlier call, on set {number} of its inputs"))
    for old_values, name in calls:
        for group in groups:
            if group:
                yield {index: old_values[index] for index in group}, name


def _answers(worker: TimedWorker, fresh: FreshInputs, draws: Sequence[Draw]) -> Answers:
    worker.write(fresh, draws)
    return _answers_of_written(worker, fresh, len(draws))


def _answers_of_written(worker: TimedWorker, fresh: FreshInputs, count: int) -> Answers:
    worker.call(count)
    numbers = tuple(range(count))
    spots = [0.0] * worker.num_inputs
    look = Look(numbers, numbers, [], spots, is_whole=True, awaits_writes=False)
    results = worker.look_at(fresh, look)
    worker.free()
    return [call.whole or [] for call in results.calls]


def _agree(
    oracle: TimedWorker, answer: Sequence[Array | None], right: Sequence[Array | None]
) -> bool:
    t = compare_values(oracle.forms, oracle.forms, answer, right).t
    return t is not None and t <= CORRECT_AT


def _is_finite(oracle: TimedWorker, answer: Sequence[Array | None]) -> bool:
    return all(
        values is None or bool(np.isfinite(from_storage(values, form.dtype)).all())
        for values, form in zip(answer, oracle.forms, strict=True)
    )


def _same(first: Sequence[Array | None], second: Sequence[Array | None]) -> bool:
    contents = [
        [None if values is None else values.tobytes() for values in answer]
        for answer in (first, second)
    ]
    return contents[0] == contents[1]
