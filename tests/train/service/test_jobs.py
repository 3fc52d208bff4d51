"""A submission completed for its judge: with the service's held-out graphs, and its own."""

from dataclasses import replace

import pytest

from passnet.errors import InputError
from passnet.judge.suite.suite import make_suite, row_of_graph
from passnet_service.jobs import check_graphs, judge_job, submission_id
from tests.judge.folders import small_graph
from tests.train.service.scripted_judge import ROW, submission

SMALL = {"small": make_suite("small", [small_graph()])}
UNSEEN = replace(small_graph((32, 32)), name="unseen")
HELD_OUT = make_suite("held", [UNSEEN])
MORE = row_of_graph(replace(small_graph((16, 16)), name="unseen"))


def shapes(submitted, held_out=HELD_OUT):
    return [row.tensors for row in judge_job(submitted, SMALL, held_out).unseen]


def test_held_out_graphs_join_a_submission_however_it_gives_its_graphs():
    unseen = row_of_graph(UNSEEN).tensors
    for fields in ({"graphs": (), "suite": "small"}, {}):
        assert shapes(submission(**fields)) == [unseen]
        assert shapes(submission(**fields, unseen=(MORE,))) == [unseen, MORE.tensors]
        assert shapes(submission(**fields, unseen=(MORE,)), None) == [MORE.tensors]


def test_held_out_graphs_join_a_task_of_another_name_by_its_ops_alone():
    renamed = replace(submission(), task="another", graphs=(replace(ROW, task="another"),))
    job = judge_job(renamed, {}, HELD_OUT)
    assert [row.task for row in job.unseen] == ["another"]
    other = replace(ROW, op_sequence=("aten.relu.default",))
    assert shapes(submission(graphs=(other,))) == []
    with pytest.raises(InputError, match="other ops than their column op_sequence"):
        check_graphs([other])


def test_a_held_out_graph_that_a_client_sends_too_counts_once_and_names_stay_distinct():
    both = (replace(row_of_graph(UNSEEN), name="mine"), MORE)
    job = judge_job(submission(unseen=both), {}, HELD_OUT)
    assert [row.name for row in job.unseen] == ["unseen", "unseen (2)"]
    check_graphs(job.unseen)


def test_a_judgement_for_a_reward_is_not_that_of_an_evaluation():
    asked = [submission(), submission(purpose="reward"), submission(purpose="reward", repeat=1)]
    ids = [submission_id(judge_job(each, {}, None), "", each.repeat) for each in asked]
    assert len(set(ids)) == 3
