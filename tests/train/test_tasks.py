"""What an LLM may be trained on, and that the shipped data opens in one line."""

from pathlib import Path

import pytest

from passnet.errors import InputError
from passnet.judge.suite.suite import (
    benchmarks,
    load_suite,
    make_suite,
    read_suite_keys,
    write_suite,
)
from passnet.train.tasks import TRAINING_SUITE, training_tasks
from tests.judge.folders import small_graph

ROOT = Path(__file__).parents[2]


def test_a_benchmark_is_refused_whole_or_in_part(tmp_path):
    with pytest.raises(
        InputError, match="200 of its 200 tasks .*; a benchmark is not for training"
    ):
        training_tasks("passbench-v1-small")
    stolen = load_suite("passbench-v1-small").graphs[0]
    path = tmp_path / "own.parquet"
    write_suite(path, make_suite("own", [stolen]))
    with pytest.raises(InputError, match=f"such as {stolen.task} of passbench-v1.*: use train-v1"):
        training_tasks(str(path))
    write_suite(path, make_suite("own", [small_graph()]))
    assert list(training_tasks(str(path))) == ["add_relu"]


def test_the_training_suite_shares_nothing_with_any_benchmark():
    tasks = training_tasks()
    assert len(tasks) >= 1000
    assert (
        read_suite_keys([TRAINING_SUITE])
        .sequences.keys()
        .isdisjoint(read_suite_keys(benchmarks()).sequences)
    )


def test_keys_of_a_shipped_suite_are_those_of_its_graphs():
    suite, keys = load_suite("demo"), read_suite_keys(["demo"])
    assert keys.hashes == {"demo": suite.content_hash}
    assert keys.sequences.keys() == {task.ops for task in suite.tasks}


def test_the_shipped_training_data_opens_in_one_line(tmp_path):
    datasets = pytest.importorskip("datasets")
    builder = datasets.load_dataset_builder(str(ROOT / "training"), cache_dir=str(tmp_path))
    [path] = builder.config.data_files["train"]
    assert Path(path).name == "training-000.parquet"
