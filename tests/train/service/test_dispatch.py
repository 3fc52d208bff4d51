"""Judges are fed one job at a time, and may be lost, hang, or not start: nothing is lost with
them.
"""

import asyncio

import pytest

from passnet.errors import MeasureError
from passnet.train.service.submission import Judged
from passnet_service.dispatch import Dispatcher
from passnet_service.queue import SubmissionQueue
from tests.train.service.scripted_judge import RIGHT, AbsentJudge, ScriptedJudge, job


@pytest.fixture
def queue(tmp_path):
    queue = SubmissionQueue(tmp_path, 100)
    yield queue
    queue.close()


def dispatched(queue, judges, num_jobs, item_timeout_s=5.0):
    """The reports on some jobs, asked for side by side, and the dispatcher."""

    async def run():
        async with Dispatcher(queue, judges, item_timeout_s, idle_s=0.02) as dispatcher:
            for number in range(num_jobs):
                await dispatcher.put(f"id{number}", job(number))
            asked = [dispatcher.report(f"id{number}", 10) for number in range(num_jobs)]
            reports = await asyncio.gather(*asked)
            assert await dispatcher.report("unknown", 1) is None
            return reports, dispatcher

    return asyncio.run(run())


def test_two_judges_work_side_by_side_and_no_job_is_judged_twice(queue):
    judges = [ScriptedJudge(name=name, seconds=0.01) for name in ("cpu:0", "cpu:1")]
    reports, dispatcher = dispatched(queue, judges, 20)
    assert all(report.judged == Judged((RIGHT,)) for report in reports)
    texts = [text for judge in judges for text in judge.texts]
    assert len(texts) == len(set(texts)) == 20 == dispatcher.num_judged
    assert {report.judge for report in reports} == {"cpu:0", "cpu:1"}


def test_an_item_whose_judge_is_lost_is_judged_by_the_next(queue):
    judge = ScriptedJudge("lost", "lost")
    reports, dispatcher = dispatched(queue, [judge], 2)
    assert [report.judged for report in reports] == [Judged((RIGHT,))] * 2
    assert reports[0].num_losses == 2 == dispatcher.num_lost and judge.num_opened == 3


def test_an_item_that_costs_three_judges_is_a_fault_of_ours_and_the_others_go_on(queue):
    reports, _ = dispatched(queue, [ScriptedJudge("lost", "lost", "lost")], 2)
    assert "3 judges were lost over it: judge scripted" in (reports[0].judged.fault or "")
    assert reports[0].judged.trials == () and reports[1].judged == Judged((RIGHT,))


def test_an_item_that_takes_too_long_is_a_fault_of_ours_and_its_judge_starts_anew(queue):
    judge = ScriptedJudge("hang")
    reports, _ = dispatched(queue, [judge], 2, item_timeout_s=0.1)
    assert reports[0].judged == Judged(fault="not judged in 0.1 s")
    assert reports[1].judged == Judged((RIGHT,)) and judge.num_opened == 2


def test_a_judge_that_does_not_start_ends_the_service_and_loses_no_job(queue):
    judge = AbsentJudge()

    async def run():
        async with Dispatcher(queue, [judge], 5.0) as dispatcher:
            await dispatcher.put("id", job())
            await dispatcher.fed()

    with pytest.raises(MeasureError, match="exit code 1, before its first job"):
        asyncio.run(run())
    assert judge.num_opened == 3 and queue.counts().waiting == 1
