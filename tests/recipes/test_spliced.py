"""Splicing: a chain of graphs computes what they compute one after another."""

import random

import torch

from passnet.data.mine.cut import inferred_specs
from passnet.graph.canonical import op_sequence
from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from recipes.spliced import RAREST, Part, chains, rows_of, spliced

HEAD = "import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward(self, x, w):\n"


def part(body: str, shape: tuple[int, ...], other: tuple[int, ...], weight: float = 1.0) -> Part:
    lines = "".join(f"        {line}\n" for line in body.split("; "))
    program = parse_program(f"{HEAD}{lines}        return (y,)\n")
    graph = Graph(program, (TensorSpec("x", shape, "float32"), TensorSpec("w", other, "float32")))
    return Part(graph, inferred_specs(graph)["y"], weight)


ADD = part("y = torch.add(x, w)", (4, 6), (6,))
MEAN = part("z = torch.mul(x, w); y = torch.mean(z, 1)", (4, 6), (4, 6))
SCALE = part("y = torch.mul(x, w)", (4,), (4,))


def test_a_chain_computes_its_parts_in_order() -> None:
    graph = spliced([ADD, MEAN, SCALE])
    assert graph is not None
    assert [op.rsplit(".", 1)[-1] for op in op_sequence(graph.program)] == [
        *("add", "mul", "mean", "mul"),
    ]
    inputs = [torch.rand(spec.shape) for spec in graph.tensors]
    x, bias, other, scale = inputs
    [found] = build(graph.program, "spliced")(*inputs)
    torch.testing.assert_close(found, ((x + bias) * other).mean(1) * scale)


def test_parts_of_other_shapes_do_not_meet() -> None:
    assert spliced([ADD, SCALE]) is None
    drawn = chains([ADD, MEAN, SCALE], random.Random(0))
    for _ in range(50):
        chain = next(drawn)
        assert 1 < len(chain) <= 3
        assert spliced(chain) is not None


def test_rows_differ_in_structure_and_rare_parts_come_more_often() -> None:
    rows = rows_of([ADD, MEAN, SCALE], 4, seed=1)
    assert len({row.structure for row in rows}) == len(rows) == 4
    assert all(row.sources[0].entry.startswith("spliced/1-") for row in rows)
    assert RAREST > 1
    rare = part("y = torch.add(x, w)", (4, 6), (6,), weight=9.0)
    common = part("y = torch.sub(x, w)", (4, 6), (6,), weight=1.0)
    drawn = chains([rare, common], random.Random(0))
    first = [next(drawn)[0] for _ in range(200)]
    assert 150 < sum(chain is rare for chain in first) < 200
