"""Judges in processes of their own: each with its own folder, also where two share a device."""

import asyncio

import pytest

from passnet.core.records.serialise import encode
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet_service.jobs import judge_job
from passnet_service.judges import ProcessJudge
from passnet_service.settings import ServiceSettings, parse_devices
from tests.train.service.running import submitted

SETTINGS = ServiceSettings(RunSettings(JudgeSettings(timing=None)), "direct")


@pytest.mark.slow
def test_the_end_of_a_judge_leaves_another_of_the_same_device_alone(tmp_path):
    devices = enumerate(parse_devices("cpu:0,cpu:0"))
    one, two = (ProcessJudge(*each, SETTINGS, tmp_path) for each in devices)
    job = encode(judge_job(submitted(is_timed=False), {}, None))

    async def run():
        await asyncio.gather(one.open(), two.open())
        folders = set(tmp_path.glob("*/passnet-judge-*"))
        await one.close()
        left = {folder for folder in folders if folder.is_dir()}
        judged = await two.judge(job)
        await two.close()
        return folders, left, judged

    folders, left, judged = asyncio.run(run())
    assert len(folders) == 2 and len(left) == 1 and one.name != two.name
    assert judged.fault is None and [trial.status for trial in judged.trials] == ["ok"]
