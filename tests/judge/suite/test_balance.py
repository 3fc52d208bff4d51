"""A selection held to shares: its domains, its lengths, what its tasks have, what is held out."""

from collections import Counter
from dataclasses import replace

import pytest

from passnet.core.records.serialise import encode
from passnet.data.dataset.store import Occurrence, SubgraphRow
from passnet.errors import InputError
from passnet.graph.spec import TensorSpec
from passnet_audit.suites.balance import (
    LONG_OPS,
    Shares,
    balanced_tasks,
    domain_tasks,
    unseen_tasks,
)
from passnet_audit.suites.selection import SelectionPlan, eligible_rows

PLAN = SelectionPlan(num_tasks=10, min_graphs=2, max_graphs=4)


def row(ops: str, domain: str, size: int, net: str = "timm/a", variant: str = "", num_places=1):
    sequence = tuple(ops)
    specs = (TensorSpec("x", (size,), variant if "float" in variant else "float32"),)
    full = f"{ops}-{domain}-{size}-{net}-{variant}"
    return SubgraphRow(
        full, full, full, ("fusible",), "", encode(specs).decode(), sequence, len(sequence),
        specs[0].dtype, variant, "o" if variant else "", domain, (net,), 1, num_places,
        (Occurrence("g", 0, len(sequence)),),
    )  # fmt: skip


def corpus():
    """Twenty op sequences of each domain and of each of three lengths, two graphs each."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return [
        row((letters[k:] + letters[:k])[:length], domain, size)
        for k in range(20)
        for length in (2, 4, LONG_OPS)
        for domain in ("nlp", "cv")
        for size in (8, 64)
    ]


def test_tasks_keep_to_the_shares_of_domains_and_lengths():
    shares = Shares({"nlp": 0.3, "cv": 0.7}, max_short=0.1, min_long=0.4)
    tasks = list(balanced_tasks(eligible_rows(corpus(), PLAN), PLAN, shares))
    assert Counter(task.rows[0].domain for task in tasks) == {"nlp": 3, "cv": 7}
    lengths = [len(task.ops) for task in tasks]
    assert sum(length <= 2 for length in lengths) <= 1
    assert sum(length >= LONG_OPS for length in lengths) >= 4
    assert len({task.ops for task in tasks}) == 10


def test_a_share_that_cannot_be_kept_is_named():
    shares = Shares({"nlp": 0.5, "cv": 0.3, "audio": 0.2})
    with pytest.raises(InputError, match="8 tasks keep to the shares.*room for 2 of audio"):
        list(balanced_tasks(eligible_rows(corpus(), PLAN), PLAN, shares))


def test_others_may_take_the_room_of_a_domain_that_has_too_few_tasks():
    shares = Shares({"nlp": 0.5, "cv": 0.3, "audio": 0.2}, fills=True)
    tasks = list(balanced_tasks(eligible_rows(corpus(), PLAN), PLAN, shares))
    assert len({task.ops for task in tasks}) == 10
    counts = Counter(task.rows[0].domain for task in tasks)
    assert counts["nlp"] >= 5 and counts["cv"] >= 3 and not counts["audio"]


def test_smaller_tasks_are_taken_only_where_larger_ones_do_not_keep_to_the_shares():
    long_ones = [row(ops, "nlp", 8) for ops in ("klmnop", "qrstuv", "wxyzab")]
    large = [candidate for candidate in corpus() if len(candidate.op_sequence) < LONG_OPS]
    rows = list(eligible_rows(large + long_ones, PLAN))
    shares = Shares({"nlp": 0.5, "cv": 0.5}, max_short=1.0, min_long=0.2)
    with pytest.raises(InputError, match="8 tasks keep to the shares"):
        list(balanced_tasks(rows, PLAN, shares))
    tasks = list(balanced_tasks(rows, PLAN, replace(shares, least_graphs=1)))
    assert [len(task.rows) for task in tasks] == [2] * 8 + [1] * 2
    assert all(len(task.ops) == LONG_OPS for task in tasks[8:])


def test_short_tasks_are_kept_for_a_domain_that_has_no_others():
    rows = [row(first + "z", "cv", size) for first in "abcdefgh" for size in (8, 64, 4096)]
    rows += [row(op * 4, "cv", size) for op in "abcdefgh" for size in (8, 64)]
    rows += [row(ops, "nlp", size) for ops in ("AB", "CD", "EF") for size in (8, 64)]
    eligible = list(eligible_rows(rows, PLAN))
    shares = Shares({"nlp": 0.3, "cv": 0.7}, max_short=0.3, min_long=0.0)
    tasks = list(balanced_tasks(eligible, PLAN, shares))
    assert Counter(task.rows[0].domain for task in tasks) == {"nlp": 3, "cv": 7}
    assert {len(task.ops) for task in tasks if task.rows[0].domain == "cv"} == {4}


def test_a_task_has_the_graphs_of_one_domain_and_each_way_and_library_by_turns():
    rows = [
        row("ab", "nlp", 8, num_places=9),
        row("ab", "nlp", 64, num_places=8),
        row("ab", "nlp", 4096, "litgpt/b"),
        row("ab", "nlp", 8, variant="bfloat16"),
        row("ab", "nlp", 2**20, variant="batch=32"),
        row("ab", "cv", 8),
        row("ab", "cv", 64, num_places=99),
    ]
    tasks = dict(domain_tasks(eligible_rows(rows, PLAN), PLAN))
    assert set(tasks) == {"nlp", "cv"}
    chosen = tasks["nlp"].rows
    assert [row.variant for row in chosen] == ["", "bfloat16", "batch=32", ""]
    assert chosen[3].nets == ("litgpt/b",)


def test_what_is_held_out_has_no_shapes_and_dtypes_of_what_is_shown():
    rows = [row("ab", "nlp", size) for size in (8, 64, 9)]
    rows += [row("ab", "nlp", 64, variant="bfloat16"), row("cd", "nlp", 8), row("cd", "nlp", 64)]
    plan = replace(PLAN, num_tasks=2, max_graphs=2)
    shown = [task for _, task in domain_tasks(eligible_rows(rows, plan), plan)]
    [unseen] = unseen_tasks(eligible_rows(rows, plan), shown, 3)
    assert unseen.name in {task.name for task in shown}
    assert not {row.full for row in unseen.rows} & {row.full for t in shown for row in t.rows}
    assert [len(row.tensors) > 0 for row in unseen.rows] == [True, True]
    assert not unseen_tasks(eligible_rows(rows, plan), shown, 3, {row.full for row in unseen.rows})
