"""Hot tasks: op sequences by their share of a net's time."""

from passnet.data.capture.store import GraphRow, GraphSource
from recipes.passbench_hot import class_of, hot_sequences


def row(name: str, *ops: str) -> GraphRow:
    source = GraphSource(f"lib/{name}", 0)
    return GraphRow(name, "", "", "", "", ops, "{}", "cv", "", (source,))


CONV, RELU, ADD, MUL = "torch.conv2d", "torch.relu", "torch.add", "torch.mul"


def test_only_what_takes_a_twentieth_of_a_net_is_hot() -> None:
    graphs = [row("a", CONV, RELU, ADD, MUL, CONV, RELU), row("b", ADD, MUL, RELU)]
    times = {"a": (40.0, 5.0, 1.0, 1.0, 40.0, 5.0), "b": (2.0, 2.0, 96.0)}
    sequences = [(CONV, RELU), (ADD, MUL), (MUL, RELU), (CONV,), (ADD, MUL, CONV, RELU)]
    chosen = hot_sequences(sequences, graphs, times)
    # one op is too short, and the longest holds the first, which has a larger share
    assert chosen == [(MUL, RELU), (CONV, RELU)]
    assert hot_sequences(sequences, graphs, {"a": (), "b": ()}) == []


def test_classes() -> None:
    assert class_of((CONV, "torch.nn.functional.linear")) == "convolution"
    assert class_of(("torch.nn.functional.scaled_dot_product_attention",)) == "attention"
    assert class_of((ADD,)) == "other"
