"""What the small LLM cannot solve: tasks that its teacher solves, by how rare their ops are in the
training data and by how long the teacher's answer is.

Run it with `python -m benchmarks.unsolved_tasks`. A task counts as solved if one of the 64 answers
of the study of drawn answers is correct.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.console import Console

from passnet.core.records.serialise import read_lines
from passnet.judge.suite.suite import load_suite
from passnet.pages.tables.tables import Table, print_table

RECORDS = Path("baselines/training")
DRAWN = RECORDS / "passbench-v1-drawn" / "drawn.jsonl"
TEACHER = RECORDS / "passbench-v1-judged-timed" / "answers.jsonl"


@dataclass(frozen=True, slots=True)
class Known:
    """A task: whether it is solved, rows of the training data with its rarest op and with its
    rarest pair of neighbours, and words of the teacher's answer.
    """

    is_solved: bool
    rarest_op: int
    rarest_pair: int
    words: int


FIGURES: Sequence[tuple[str, Callable[[Known], int], Sequence[int]]] = (
    ("rows with its rarest op", lambda own: own.rarest_op, (0, 31, 101, 301, 1001)),
    ("rows with its rarest pair", lambda own: own.rarest_pair, (0, 1, 4, 11, 31)),
    ("words of the teacher's answer", lambda own: own.words, (0, 61, 101, 151, 251)),
)


def known_tasks(training: Path, suite: str) -> Iterator[Known]:
    """Yield the tasks that the teacher solves."""
    ops: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for path in sorted(training.glob("training-*.parquet")):
        for sequence in pq.read_table(path, columns=["op_sequence"])["op_sequence"].to_pylist():
            ops.update(set(sequence))
            pairs.update(set(pairwise(sequence)))
    teacher = {
        row["task"]: row
        for row in read_lines(TEACHER, dict[str, Any])
        if row["system"] == "teacher" and row["verdict"] == "correct"
    }
    sequences = {task.name: task.ops for task in load_suite(suite).tasks}
    for row in read_lines(DRAWN, dict[str, Any]):
        if found := teacher.get(row["task"]):
            own = sequences[row["task"]]
            judged = [each["timed"] or each["judged"] for each in row["answers"].values()]
            yield Known(
                any(each and each["verdict"] == "correct" for each in judged),
                min(ops[op] for op in own),
                min((pairs[pair] for pair in pairwise(own)), default=0),
                len(found["answer"].split()),
            )


def table(tasks: Sequence[Known]) -> Table:
    """Return the share of solved tasks by each figure."""
    rows: list[tuple[str, ...]] = []
    for name, figure, starts in FIGURES:
        for start, stop in zip(starts, [*starts[1:], None], strict=True):
            own = [t for t in tasks if start <= figure(t) and (stop is None or figure(t) < stop)]
            if own:
                solved = sum(task.is_solved for task in own)
                words = f"{start} and more" if stop is None else f"{start} to {stop - 1}"
                rows.append((name, words, str(len(own)), f"{100 * solved / len(own):.0f}"))
    title = f"{sum(task.is_solved for task in tasks)} of {len(tasks)} tasks solved"
    return Table(title, ("by", "", "tasks", "solved, %"), rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--training", type=Path, default=Path("training"))
    parser.add_argument("--suite", default="passbench-v1")
    words = parser.parse_args()
    print_table(Console(width=120), table(list(known_tasks(words.training, words.suite))))
