"""The index of a graph: which values its calls write into."""

from collections.abc import Callable

import pytest
import torch

from passnet.passes.match.graph_index import GraphIndex
from tests.passes.graphs import graph_of

F = torch.nn.functional

CALLS: dict[str, Callable[..., torch.Tensor]] = {
    "rows of a table": lambda i, w: F.embedding(i, w, max_norm=1.0),
    "rows of bags": lambda i, w: F.embedding_bag(i, w, max_norm=1.0),
    "rows of bags, by position": lambda i, w: F.embedding_bag(i, w, None, 1.0),
    "statistics": lambda x, m: torch.native_batch_norm(x, None, None, m, m, True, 0.1, 1e-5)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_writes_into_rows_that_it_renorms_and_into_statistics(name: str) -> None:
    def net(x: torch.Tensor, written: torch.Tensor) -> torch.Tensor:
        return CALLS[name](x, written)

    index = GraphIndex(graph_of(net).graph)
    [writer] = index.writers
    _, written = (node for node in index.graph.nodes if node.op == "placeholder")
    assert index.group(writer) == index.group(written)
