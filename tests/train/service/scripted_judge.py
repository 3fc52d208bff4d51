"""A judge that does what a script says, and submissions for it."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from passnet.core.records.serialise import decode
from passnet.judge.suite.suite import row_of_graph
from passnet.judge.trial import Trial
from passnet.train.service.submission import Judged, Submission
from passnet_service.jobs import JudgeJob, judge_job
from passnet_service.judges import JudgeLostError
from passnet_service.settings import ServiceLimits
from tests.judge.folders import small_graph

ROW = row_of_graph(small_graph())
LIMITS = ServiceLimits(wait_s=5.0, body_bytes=20_000, body_timeout_s=5.0)
RIGHT = Trial("add_relu", "small", "passes", "ok", smallest_t=-6, speedup=2.0, speedup_low=1.9)
UNSTABLE = replace(RIGHT, status="unstable", speedup=None, speedup_low=None)
CHEAT = replace(RIGHT, status="cheat", speedup=None, speedup_low=None)


def submission(number: int = 0, **fields: object) -> Submission:
    whole = {"files": {"a.py": f"x = {number}\n"}, "graphs": (ROW,), **fields}
    return Submission(ROW.task, **whole)  # type: ignore[arg-type]


def job(number: int = 0) -> JudgeJob:
    return judge_job(submission(number), {}, None)


class ScriptedJudge:
    """Takes the next word of its script for each job: a trial or result to answer with, "lost" or
    "hang"; a trial that is right when the script is over.
    """

    def __init__(self, *script: object, name: str = "scripted", seconds: float = 0.0) -> None:
        self.name = name
        self.texts: list[str] = []
        self.num_opened = 0
        self._script: Iterator[object] = iter(script)
        self._seconds = seconds
        self._is_open = False

    async def open(self) -> None:
        if not self._is_open:
            self.num_opened += 1
            self._is_open = True

    async def judge(self, job: bytes) -> Judged:
        assert self._is_open
        self.texts.append(decode(job, JudgeJob).files.get("a.py", ""))
        word = next(self._script, RIGHT)
        await asyncio.sleep(3600 if word == "hang" else self._seconds)
        if word == "lost":
            self._is_open = False
            raise JudgeLostError("judge scripted was ended by signal 9")
        assert isinstance(word, Trial | Judged)
        return Judged((word,)) if isinstance(word, Trial) else word

    async def close(self) -> None:
        self._is_open = False


class AbsentJudge(ScriptedJudge):
    """Does not start."""

    async def open(self) -> None:
        self.num_opened += 1
        raise JudgeLostError("judge scripted was ended by exit code 1")
