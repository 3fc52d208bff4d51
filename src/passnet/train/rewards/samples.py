"""The record of one answer in a training, and of its verdict."""

from collections.abc import Sequence
from dataclasses import dataclass

from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.train.rewards.reward import is_correct, is_flagged

SAMPLES_FILE = "samples.jsonl"

HELD_OUT = ("hard_coded_shape", "held_out_shape")
"""Findings about shapes unseen by the author."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer, judged.

    Args:
        number: of the answer in its run, from 0; a later record of the same number replaces it.
        step: of the training.
        group: what answers that are compared with each other share: the prompt, by its task.
        reward: what it earned; None where nothing is known of it.
        statuses: of its trials.
        is_correct: on every graph.
        is_right_where_run: a run of its loops showed nothing wrong, and it was not judged.
        cheats: names of findings that reject it.
        flags: names of findings for a person to read.
        fails_held_out: on shapes that it has not seen it is wrong, or does not match.
        speedup_low: the lower bound of the speedup, the least of its graphs; None unless all were
            timed.
        speedup_again: the same, measured again; None where it was not.
        floor_ratio: its time over the least that reading and writing its tensors takes, the least
            of its graphs.
        num_tokens: of the answer, without what the environment said.
        is_truncated: it was cut off.
        fault: what of ours failed, in a sentence.
        id: of the submission, where a service judged it.
        files: the pass folder, kept of those that a person should read: cheats and flagged ones.
    """

    number: int
    step: int
    group: str
    reward: float | None
    statuses: tuple[str, ...] = ()
    is_correct: bool = False
    is_right_where_run: bool = False
    cheats: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    fails_held_out: bool = False
    speedup_low: float | None = None
    speedup_again: float | None = None
    floor_ratio: float | None = None
    num_tokens: int | None = None
    is_truncated: bool = False
    fault: str | None = None
    id: str | None = None
    files: Files | None = None

    @property
    def is_cheat(self) -> bool:
        """True if the judge proved that it cheats."""
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
    """Make the record of an answer from its trials.

    Args:
        number: of the answer in its run.
        step: of the training.
        group: what it is compared within.
        reward: what it earned.
        trials: one a graph, none where it was not judged.
        files: its pass folder.
        least_ms: the least time of each graph, to read its arguments and write its results.
        facts: fields of `Sample` that trials do not tell.
    """
    findings = [found for trial in trials for found in trial.findings]
    cheats = tuple(sorted({found.name for found in findings if found.weight == "reject"}))
    flags = tuple(sorted({found.name for found in findings if found.weight == "flag"}))
    lows = [trial.speedup_low for trial in trials]
    ratios = [
        trial.candidate_ms / floor
        for trial, floor in zip(trials, least_ms, strict=False)
        if trial.candidate_ms is not None and floor > 0
    ]
    is_to_be_read = bool(cheats) or any(map(is_flagged, trials))
    return Sample(
        number=number,
        step=step,
        group=group,
        reward=reward,
        statuses=tuple(trial.status for trial in trials),
        is_correct=bool(trials) and all(map(is_correct, trials)),
        cheats=cheats,
        flags=flags,
        fails_held_out=any(found.name in HELD_OUT for found in findings),
        speedup_low=None if not lows or None in lows else min(low for low in lows if low),
        floor_ratio=min(ratios, default=None),
        files=dict(files) if is_to_be_read else None,
        **facts,  # type: ignore[arg-type]
    )
