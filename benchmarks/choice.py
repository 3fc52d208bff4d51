"""What a library of passes would choose for each graph of a suite: a pass that won, or none.

Run it with `python -m benchmarks.choice RUN CANDIDATE AGENT_RUN... > trials.jsonl`. RUN is a run
folder of `passnet bench run`, in which CANDIDATE and `eager` were judged on all graphs; the
AGENT_RUNs are the run folders of `passnet agent run` in which the passes of the candidate were
written. A pass is chosen for a graph if in the last measurement of its author, which is another one
than that of RUN, it was right at t = -5 and has all of its interval above 1; then the graph's trial
is that of the candidate. Else the graph is left alone, and its trial is that of `eager`, as
`passnet.optimize` returns eager torch where nothing is faster. `passnet bench score trials.jsonl`
scores what is printed.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from passnet.agent.attempts.attempt import ATTEMPTS_FILE, Attempt
from passnet.bench.scores import Row, read_rows
from passnet.core.records.serialise import read_lines
from passnet.judge.score.tolerance import CORRECT_AT

EAGER = "eager"


def winning_graphs(folders: Iterable[Path]) -> set[str]:
    """The graphs on which a pass won in its author's last measurement."""
    attempts = (
        attempt for folder in folders for attempt in read_lines(folder / ATTEMPTS_FILE, Attempt)
    )
    return {
        trial.graph
        for attempt in attempts
        for trial in attempt.judged
        if trial.status == "ok"
        and trial.smallest_t is not None
        and trial.smallest_t <= CORRECT_AT
        and trial.speedup_low is not None
        and trial.speedup_low > 1
    }


def chosen_rows(rows: Iterable[Row], candidate: str, winning: set[str]) -> list[Row]:
    """The trial of each graph by what is chosen for it."""
    by_key: Mapping[tuple[str, str], Row] = {(row.graph, row.candidate): row for row in rows}
    return [
        replace(by_key[graph, candidate if graph in winning else EAGER], candidate="choice")
        for graph in sorted({graph for graph, _ in by_key})
    ]


def main(run: str, candidate: str, *authored: str) -> None:
    """Print the trials of the choice."""
    winning = winning_graphs(map(Path, authored))
    chosen = chosen_rows(read_rows(Path(run)), candidate, winning)
    for row in chosen:
        print(json.dumps(asdict(row)))
    print(f"{len(chosen)} graphs, {len(winning)} with a pass that won", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
