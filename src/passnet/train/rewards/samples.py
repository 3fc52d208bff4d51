"""The record of one answer in a training, with its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

from passnet.bench.scores import is_correct
from passnet.judge.trial import Trial
from passnet.passes.files import Files

SAMPLES_FILE = "samples.jsonl"

HELD_OUT = ("hard_coded_shape", "held_out_shape")
"""Findings about shapes unseen by the author."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One judged answer."""

    number: int
    """Number in the run, from 0; a later record of the same number replaces this one."""

    step: int
    group: str
    """Task whose answers are compared with each other."""

    reward: float | None
    """None where the judge could not decide."""

    statuses: tuple[str, ...] = ()
    """Statuses of its trials."""

    is_correct: bool = False
    """Correct on every graph."""

    is_right_where_run: bool = False
    """Passed a run of its loops, but was not judged."""

    cheats: tuple[str, ...] = ()
    """Names of findings that reject it."""

    flags: tuple[str, ...] = ()
    """Names of findings for a person to read."""

    fails_held_out: bool = False
    speedup_low: float | None = None
    """Least lower bound of the speedup over its graphs; None unless all were timed."""

    speedup_again: float | None = None
    """`speedup_low` of a second measurement."""

    floor_ratio: float | None = None
    """Least ratio over its graphs of its time to that of reading and writing the tensors."""

    num_tokens: int | None = None
    """Tokens of the answer, without those of the environment."""

    is_truncated: bool = False
    fault: str | None = None
    """Failure of our own machinery, in a sentence."""

    id: str | None = None
    """Id of the submission to a service."""

    files: Files | None = None
    """The pass folder of a cheat or a flagged answer, for a person to read."""

    @property
    def is_cheat(self) -> bool:
        """True if the judge proved a cheat."""
        return bool(self.cheats)


def sample_of(
    number: int,
    step: int,
    group: str,
    reward: float | None,
    trials: Sequence[Trial],
    files: Files,
    least_ms: Sequence[float] = (),
    **facts: object,
) -> Sample:
    """Return the record of an answer with trials.

    Args:
        number: number of the answer in its run.
        step: step of the training.
        group: task whose answers are compared.
        reward: reward of the answer.
        trials: one a graph.
        files: its pass folder.
        least_ms: least time of each graph, to read its arguments and write its results.
        facts: further fields of `Sample`.
    """
    findings = [finding for trial in trials for finding in trial.findings]
    cheats = tuple(sorted({finding.name for finding in findings if finding.weight == "reject"}))
    flags = tuple(sorted({finding.name for finding in findings if finding.weight == "flag"}))
    lows = [trial.speedup_low for trial in trials]
    ratios = [
        trial.candidate_ms / floor
        for trial, floor in zip(trials, least_ms, strict=False)
        if trial.candidate_ms is not None and floor > 0
    ]
    return Sample(
        number=number,
        step=step,
        group=group,
        reward=reward,
        statuses=tuple(trial.status for trial in trials),
        is_correct=bool(trials) and all(map(is_correct, trials)),
        cheats=cheats,
        flags=flags,
        fails_held_out=any(finding.name in HELD_OUT for finding in findings),
        speedup_low=None if not lows or None in lows else min(low for low in lows if low),
        floor_ratio=min(ratios, default=None),
        files=dict(files) if cheats or flags else None,
        **facts,  # type: ignore[arg-type]
    )
