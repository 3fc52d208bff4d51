"""A reward service whose judges are on two Ray nodes, one of which is lost at work."""

import threading
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.train.service.client import judge_all_now
from tests.bench.ray_actors import nodes
from tests.train.service.running import serving, submitted

NUM_SUBMISSIONS = 12


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
def test_each_submission_has_one_answer_though_a_node_is_lost(tmp_path: Path) -> None:
    submissions = [submitted(number, is_timed=False) for number in range(NUM_SUBMISSIONS)]
    words = ("--executor", "ray", "--device", "cpu:0,cpu:1")
    with nodes({}, {}) as cluster, serving(tmp_path / "out", *words) as (_, address):
        judge_all_now(address, [submitted(99, is_timed=False)])  # a judge is at work
        lost = threading.Timer(
            1.0, cluster.remove_node, (cluster.list_all_nodes()[-1],), {"allow_graceful": False}
        )
        lost.start()
        reports = judge_all_now(address, submissions)
        lost.join()
    assert [report.judged is not None for report in reports] == [True] * NUM_SUBMISSIONS
    statuses = [[trial.status for trial in report.judged.trials] for report in reports]  # type: ignore[union-attr]
    assert statuses == [["ok"]] * NUM_SUBMISSIONS
    assert len({report.id for report in reports}) == NUM_SUBMISSIONS
    assert sum(report.num_losses for report in reports) == 1
