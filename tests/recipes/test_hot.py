"""Hot tasks: op sequences by their share of a net's time."""

from pathlib import Path

import pytest

from passnet.data.capture.store import GraphRow, GraphSource
from recipes.passbench_hot import class_of, hot_sequences, timed
from tests.bench.runs import captured
from tests.graph.programs import moved_index


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


def test_a_net_that_cannot_be_timed_is_named_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [
        captured(moved_index(shift), GraphSource(name, 0))
        for name, shift in (("lib/bad", 100), ("lib/good", 1))
    ]
    bad, good = timed(rows, tmp_path / "times.jsonl").values()
    assert bad == () and len(good) == 2
    assert "lib/bad: not timed: eager torch op by op: IndexError" in capsys.readouterr().err
