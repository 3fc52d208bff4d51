"""The trials of several runs as one table of candidates, for a score under other rules."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from passnet.bench.scores import Row, measured, read_rows
from passnet.errors import InputError
from recipes.sensitivity import ScoredTrial

STRIDES_TEXT = " has strides ["
"""The error text of a trial that failed only for the order of its strides."""


def candidates_of(paths: Sequence[Path]) -> dict[str, dict[str, list[ScoredTrial]]]:
    """Return the trials of all candidates of some runs, by task, without unstable ones. A candidate
    that several runs have is named with its run, and with as much of the run's path as tells them
    apart; one with unstable trials only is left out.

    Raises:
        InputError: a run cannot be read, or none has a trial that can be scored.
    """
    paths = [*dict.fromkeys(path.resolve() for path in paths)]
    runs = [(path, read_rows(path)) for path in paths]
    counts = Counter(name for _, rows in runs for name in {row.candidate for row in rows})
    found: dict[str, dict[str, list[ScoredTrial]]] = {}
    for path, rows in runs:
        run = _distinct_end(path, paths)
        for row in rows:
            if row.status == "unstable":
                continue
            name = row.candidate if counts[row.candidate] == 1 else f"{row.candidate} ({run})"
            trials = found.setdefault(name, {}).setdefault(row.task, [])
            trials.append(ScoredTrial(measured(row).score, _is_only_strides(row)))
    if not found:
        raise InputError(f"{paths[0]}: no trial can be scored")
    return found


def _distinct_end(path: Path, paths: Sequence[Path]) -> str:
    """Return the shortest end of a path that no other path has.

    Examples:
        >>> _distinct_end(Path("/a/run"), [Path("/a/run"), Path("/b/run"), Path("/b/c")])
        'a/run'
    """
    for length in range(1, len(path.parts)):
        end = path.parts[-length:]
        if sum(other.parts[-length:] == end for other in paths) == 1:
            return "/".join(end)
    return str(path)


def _is_only_strides(row: Row) -> bool:
    return row.status == "wrong_shape" and STRIDES_TEXT in (row.error or "")
