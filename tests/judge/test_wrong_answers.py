"""Explanations of wrong calls: small errors and zeros are no earlier answers."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.processes.loaded_worker import prepare_graph
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.timing.fresh_inputs import Draw, FreshInputs
from passnet.judge.timing.wrong_answers import explain

PROGRAM = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x, w):
        y = x * w
        return (y,)
"""

SIZE = 64


@dataclass
class Worker:
    """Computes from its arguments, and from those of the call before on the same memory."""

    compute: Callable[[list[Any], list[Any]], Any]
    num_inputs: int = 2
    forms: Sequence[OutputForm] = (OutputForm("tensor", "float32", (SIZE,), (1,), device="cpu"),)
    slots: dict[int, list[Any]] = field(default_factory=dict)
    before: dict[int, list[Any]] = field(default_factory=dict)
    answers: list[Any] = field(default_factory=list)

    def write(self, fresh: FreshInputs, draws: Sequence[Draw]) -> None:
        for slot, draw in enumerate(draws):
            self.before[slot] = self.slots.get(slot, [])
            arguments = [np.zeros(SIZE, np.float32), np.zeros(1, np.int64)]
            for index, target in enumerate(arguments):
                fresh.write(draw, index, target)
            self.slots[slot] = arguments

    def overwrite(self, slot: int, index: int, values: Any) -> None:
        self.slots[slot][index] = values

    def argument(self, slot: int, index: int) -> Any:
        return self.slots[slot][index]

    def call(self, count: int) -> None:
        self.answers = [
            self.compute(self.slots[slot], self.before[slot] or self.slots[slot])
            for slot in range(count)
        ]

    def look_at(self, _: FreshInputs, __: object) -> Any:
        call = type("Call", (), {})
        seen = type("Seen", (), {})()
        seen.calls = []
        for answer in self.answers:
            one = call()
            one.whole = [answer.astype(np.float32)]
            seen.calls.append(one)
        return seen

    def free(self) -> None:
        pass


def right(now: list[Any], _: list[Any]) -> Any:
    return now[0] * now[1]


KINDS: dict[str, tuple[Callable[[list[Any], list[Any]], Any], str | None]] = {
    "right": (right, None),
    "off by a little": (lambda now, _: now[0] * now[1] * 1.01, None),
    "that of the call before": (lambda _, before: before[0] * before[1], "replayed_output"),
    "with an old argument": (lambda now, before: before[0] * now[1], "stale_argument"),
    "always the same": (lambda *_: np.full(SIZE, 3.0), "constant_output"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_is_explained_and_nothing_else(kind: str) -> None:
    compute, name = KINDS[kind]
    specs = (TensorSpec("x", (SIZE,), "float32"), TensorSpec("w", (1,), "int64"))
    graph = Graph(parse_program(PROGRAM, "scaled"), specs)
    names: Counter[str] = Counter()
    for seed in range(40):
        random = np.random.default_rng(seed)
        values = [random.standard_normal(SIZE).astype(np.float32) + 0.1, np.array([1])]
        prepared = prepare_graph(graph, [values])
        zeros_and_ones = random.integers(0, 2, 5000)
        fresh = FreshInputs(specs, [values], random, [None, zeros_and_ones])
        found = explain(Worker(compute), Worker(right), fresh, prepared)  # type: ignore[arg-type]
        names.update(each.name for each in found)
    if name is None:
        assert not names
    else:
        assert names[name] > 0 and names.total() >= 20  # of the others the right answer is 0, too
