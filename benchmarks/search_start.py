"""The pass folders that searches began with, beside which their own can be judged.

Run it with `python -m benchmarks.search_start OUT AGENT_RUN...`. The AGENT_RUNs are run folders of
`passnet agent run --author search`, whose attempts begin with what `compiler` writes. Of each
attempt the first state that is right on every graph of its task while it is timed is written to
OUT/TASK, or the best one where none is; `passnet bench run --candidate OUT` judges them.
"""

import sys
from pathlib import Path

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt, Evaluation
from passnet.core.records.serialise import read_lines
from passnet.passes.files import write_files


def first_right(attempt: Attempt) -> Evaluation | None:
    """The state with which the moves of a search began; None where nothing was written."""
    right = [evaluation for evaluation in attempt.evaluations if evaluation.is_passing]
    timed = [evaluation for evaluation in right if evaluation.score is not None]
    if timed or right:
        return (timed or right)[0]
    return max(attempt.evaluations, key=lambda each: each.score or 0.0, default=None)


def main(out: str, *authored: str) -> None:
    """Write the folders."""
    num_written = num_first = 0
    for run in authored:
        for attempt in read_lines(Path(run) / ATTEMPTS_FILE, Attempt):
            state = first_right(attempt)
            if state is None:
                print(f"{attempt.task}: nothing was written ({attempt.error})", file=sys.stderr)
                continue
            write_files(state.files, Path(out) / attempt.task)
            num_written += 1
            num_first += state is attempt.evaluations[0]
    print(f"{num_written} folders, {num_first} of them the first that was evaluated")


if __name__ == "__main__":
    main(*sys.argv[1:])
