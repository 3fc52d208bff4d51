import math
import random

import pytest

from passnet.core.records.serialise import encode
from passnet.data.dataset.store import Occurrence, SubgraphRow
from passnet.errors import InputError
from passnet.graph.spec import TensorSpec
from passnet_audit.suites.selection import (
    SelectionPlan,
    TaskRows,
    bucket_of,
    eligible_rows,
    op_pairs,
    rarities,
    select_tasks,
    tasks_of,
)


def row(
    full: str, ops: str, *shapes: tuple[int, ...], dtype: str = "float32", num_places: int = 1
) -> SubgraphRow:
    specs = tuple(TensorSpec(f"in_{k}", shape, dtype) for k, shape in enumerate(shapes))
    sequence = tuple(ops)
    return SubgraphRow(
        full, full, full, ("fusible",), "", encode(specs).decode(), sequence, len(sequence),
        dtype, "", "", "cv", (f"timm/{full}",), 1, num_places, (Occurrence("g", 0, len(sequence)),),
    )  # fmt: skip


def tasks(*rows: SubgraphRow, plan: SelectionPlan | None = None, left_out=()) -> list[TaskRows]:
    plan = plan or SelectionPlan()
    return tasks_of(eligible_rows(rows, plan), plan, left_out)


def test_sizes_within_four_powers_of_two_share_a_bucket():
    def levels(*shape: int):
        return bucket_of([TensorSpec("x", shape, "float32")])[0][1]

    assert levels(1) == levels(15) == levels(0) == (0,)
    assert levels(16) == levels(255) == (1,)
    assert levels(256, 4096) == (2, 3)


def test_a_task_has_one_graph_of_each_bucket_the_one_at_most_places():
    selected = tasks(
        row("b", "xy", (2, 3)),
        row("a", "xy", (4, 5), num_places=3),  # in the same bucket
        row("c", "xy", (64, 3)),
        row("d", "xy", (2, 3), dtype="bfloat16"),
        row("e", "yx", (2, 3)),
    )
    assert [(task.ops, [row.full for row in task.rows]) for task in selected] == [
        (("x", "y"), ["a", "c", "d"]),
        (("y", "x"), ["e"]),
    ]


def test_what_a_plan_does_not_allow_is_no_part_of_a_task():
    plan = SelectionPlan(min_ops=2, max_ops=3, max_mib=1.0, min_graphs=2, max_graphs=2)
    rows = [
        row("short", "x", (1,)),
        row("long", "xxxx", (1,)),
        row("large", "xy", (1024, 1024)),
        row("alone", "yx", (1,)),
        *[row(f"kept{k}", "xyx", (16**k,), num_places=k) for k in range(1, 4)],
    ]
    [task] = tasks(*rows, plan=plan)
    assert [row.full for row in task.rows] == ["kept3", "kept2"]
    assert tasks(*rows, plan=plan, left_out=["kept1", "kept2"]) == []


def test_rarity_is_the_mean_surprise_of_the_steps_between_0_and_1():
    common, rare = "ababab", "ac"
    assert rarities([common, common, rare]) == [0.0, 0.0, 1.0]
    first = rarities([common, rare, "aba"])[0]
    counts = {"ab": 4, "ac": 1, "ba": 3}
    total = {"a": 5, "b": 3}

    def surprise(step: str) -> float:
        return -math.log((counts[step] + 1e-3) / (total[step[0]] + 3e-3))

    mean = (3 * surprise("ab") + 2 * surprise("ba")) / 5
    low = (surprise("ab") + surprise("ba")) / 2
    assert first == pytest.approx((mean - low) / (surprise("ac") - low))


def test_equal_sequences_are_equally_rare():
    assert rarities(["ab", "ab"]) == [0.0, 0.0]
    assert rarities([]) == []


def plainly(candidates: list[TaskRows], num_tasks: int) -> list[TaskRows]:
    """The same selection, by looking at all tasks each time."""
    weights = [1 + rarity for rarity in rarities([task.ops for task in candidates])]
    covered: set = set()
    chosen: list[int] = []
    while len(chosen) < num_tasks:
        remaining = [k for k in range(len(candidates)) if k not in chosen]
        gains = {k: len(set(op_pairs(candidates[k].ops)) - covered) * weights[k] for k in remaining}
        if not any(gains.values()):
            covered = set()
            continue
        best = min(remaining, key=lambda k: (-gains[k], -len(candidates[k].rows), k))
        chosen.append(best)
        covered |= set(op_pairs(candidates[best].ops))
    return [candidates[k] for k in chosen]


@pytest.mark.parametrize("seed", range(20))
def test_tasks_are_taken_as_a_plain_greedy_takes_them(seed: int):
    draw = random.Random(seed)
    rows = [
        row(f"{seed}.{k}", "".join(draw.choices("abcd", k=draw.randint(1, 6))), (16 ** (k % 3),))
        for k in range(60)
    ]
    candidates = tasks(*rows)
    number = draw.randint(1, len(candidates))
    assert list(select_tasks(candidates, number)) == plainly(candidates, number)


def test_too_few_tasks_are_refused():
    with pytest.raises(InputError, match="1 tasks fit the plan, and 2 are wanted"):
        list(select_tasks(tasks(row("a", "xy", (1,))), 2))


def test_the_order_of_rows_has_no_influence():
    rows = [row(f"{k:02}", "abc"[: 1 + k % 3], (4**k,), num_places=k % 2 + 1) for k in range(30)]
    mixed = random.Random(0).sample(rows, len(rows))
    assert tasks(*rows) == tasks(*mixed)
