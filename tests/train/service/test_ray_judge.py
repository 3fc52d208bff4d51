"""A judge of the service on a Ray cluster; skipped where Ray is not installed."""

import asyncio
from dataclasses import replace
from importlib.util import find_spec

import pytest

from passnet.bench.environment import describe_environment
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet_service.dispatch import Dispatcher
from passnet_service.jobs import judge_job
from passnet_service.judges import RayJudge
from passnet_service.queue import SubmissionQueue
from passnet_service.settings import ServiceSettings
from tests.bench.ray_actors import cluster
from tests.train.service.running import submitted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
]


@pytest.fixture(scope="module", autouse=True)
def a_cluster():
    with cluster():
        yield


def test_an_actor_that_is_lost_over_an_item_is_followed_by_another(tmp_path):
    run = RunSettings(JudgeSettings(), sandbox=find_sandbox().name)
    judge = RayJudge("ray:0", ServiceSettings(run, "direct"), describe_environment())
    queue = SubmissionQueue(tmp_path, 10)
    job = judge_job(replace(submitted(), is_timed=False), {}, None)

    async def judged():
        async with Dispatcher(queue, [judge], 120.0) as dispatcher:
            await dispatcher.put("first", job)
            while not (await dispatcher.counts()).judging:
                await asyncio.sleep(0.1)
            judge._actor.end()  # as if its machine had gone
            return await dispatcher.report("first", 120.0)

    report = asyncio.run(judged())
    queue.close()
    assert report.num_losses == 1 and report.judge == "ray:0"
    assert [trial.status for trial in report.judged.trials] == ["ok"]
