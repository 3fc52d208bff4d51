"""What a library would choose: the pass where it won before, else the graph as it is."""

from benchmarks.choice import chosen_rows
from passnet.bench.scores import Row, score_rows


def test_a_pass_counts_where_it_won_before_and_eager_torch_elsewhere() -> None:
    rows = [
        Row("t", "won", "ok", -10, 1.0, "eager"),
        Row("t", "won", "ok", -10, 3.0, "mine@guarded"),
        Row("t", "lost", "ok", -10, 1.01, "eager"),
        Row("t", "lost", "ok", -10, 5.0, "mine@guarded"),  # here it is fast, but was not before
        Row("u", "none", "ok", -10, 0.99, "eager"),
        Row("u", "none", "no_match", None, None, "mine@guarded"),
    ]
    chosen = chosen_rows(rows, "mine@guarded", {"won"})
    assert {row.graph: row.speedup for row in chosen} == {"won": 3.0, "lost": 1.01, "none": 0.99}
    assert {row.candidate for row in chosen} == {"choice"}
    assert score_rows(chosen)[0].statuses == {"ok": 3}
