"""Draws of timed calls: new values for every call, whole numbers included, and known to the bit."""

import numpy as np

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import integer_pools, make_inputs
from passnet.judge.timing.fresh_inputs import POOL_SPARE, FreshInputs

LOOKS_UP = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = torch.nn.functional.embedding(in_0, in_1)
        return (tmp_0,)
"""


def draws_of(with_pools: bool, num_ids: int) -> list[list[int]]:
    """The ids that a look-up is drawn, all of them 1 as recorded."""
    ids = TensorSpec("in_0", (num_ids,), "int64", data=(1,) * num_ids)
    graph = Graph(parse_program(LOOKS_UP), (ids, TensorSpec("in_1", (50, 4), "float32")))
    random = np.random.default_rng(0)
    pools = integer_pools(graph, random, POOL_SPARE) if with_pools else ()
    inputs = [make_inputs(graph, "recorded", 0), make_inputs(graph, "recorded", 1)]
    fresh = FreshInputs(graph.tensors, inputs, random, pools)
    written = []
    for _ in range(1000):
        draw, target = fresh.draw(), np.empty(num_ids, np.int64)
        fresh.write(draw, 0, target)
        assert fresh.holds(draw, 0, target, 0, num_ids)
        target[-1] += 1
        assert not fresh.holds(draw, 0, target, 0, num_ids)
        target[-1] -= 1
        written.append(target.tolist())
    return written


def test_whole_numbers_that_are_equal_in_all_sets_differ_from_call_to_call() -> None:
    assert {tuple(ids) for ids in draws_of(with_pools=False, num_ids=3)} == {(1, 1, 1)}
    for num_ids in (1, 3):
        drawn = draws_of(with_pools=True, num_ids=num_ids)
        assert len({tuple(ids) for ids in drawn}) > 40
        assert {number for ids in drawn for number in ids} == set(range(50))


def halves_of(values: np.ndarray) -> list[np.ndarray]:
    """Draws of one argument in float16."""
    fresh = FreshInputs(
        (TensorSpec("in_0", values.shape, "float16"),), [[values]], np.random.default_rng(0)
    )
    written = []
    for _ in range(20):
        draw, target = fresh.draw(), np.empty(values.size, np.float16)
        fresh.write(draw, 0, target)
        assert fresh.holds(draw, 0, target, 0, values.size)
        written.append(target)
    return written


def test_numbers_in_float16_are_new_where_some_are_zero() -> None:
    values = np.random.default_rng(1).standard_normal((40, 50)).astype(np.float16)
    values[values < 0] = 0
    values[0, 0] = 1e-6
    for drawn in halves_of(values):
        assert len(np.setdiff1d(drawn, values)) > 500
        assert float(np.abs(np.sort(drawn) - np.sort(values.reshape(-1))).max()) < 0.15
    mask = (values > 0).astype(np.float16)
    assert all(set(drawn.tolist()) == {0.0, 1.0} for drawn in halves_of(mask))
