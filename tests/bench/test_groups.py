"""Trials by groups of their graphs: which group a graph is in, and what is said of a group."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.bench.environment import describe_environment
from passnet.bench.groups import GROUPINGS, group_rows
from passnet.bench.run_record import RUN_FILE, run_info, suite_of_run
from passnet.bench.scores import Row
from passnet.cli.bench import bench_score
from passnet.core.records.serialise import write_json
from passnet.errors import InputError
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import load_suite
from tests.bench.runs import passnet, write_small_suite


def row(graph: str, speedup: float, width: float = 0.0, **others: object) -> Row:
    fields = {
        "task": "t", "graph": graph, "status": "ok", "smallest_t": -5, "speedup": speedup,
        "speedup_low": speedup - width, "speedup_high": speedup + width, **others,
    }  # fmt: skip
    return Row(**fields)  # type: ignore[arg-type]


def failed(graph: str, **others: object) -> Row:
    return Row("t", graph, "runtime_error", None, None, **others)  # type: ignore[arg-type]


def test_a_group_is_what_wins_what_loses_and_what_fails() -> None:
    rows = [
        row("a", 2.0, reference_ms=0.1),
        row("b", 0.5, reference_ms=0.1),
        row("c", 1.05, width=0.02, reference_ms=0.1),
        row("d", 4.0, reference_ms=0.1, smallest_t=-4, relative_error=0.1, eager_error=0.2),
        failed("e", reference_ms=0.1),
        row("f", 9.0, reference_ms=0.1, status="unstable"),
    ]
    [group] = group_rows(rows, "time")
    assert (group.name, group.candidate, group.num_trials) == ("0.05 to 0.2 ms", "candidate", 5)
    assert group.geomean_speedup == pytest.approx(1.05 ** (1 / 3))
    assert (group.faster, group.slower) == (0.2, 0.2)
    assert group.failed == pytest.approx(0.4) and group.failed_nearer == 0.2


def test_only_a_trial_that_is_not_correct_can_be_nearer() -> None:
    errors = {"relative_error": 0.3, "eager_error": 0.2, "reference_ms": 1.0}
    [group] = group_rows([row("a", 1.0, smallest_t=-4, **errors)], "time")
    assert (group.failed, group.failed_nearer) == (1.0, 0.0)
    [group] = group_rows([row("a", 1.0, **{**errors, "relative_error": 0.1})], "time")
    assert (group.failed, group.failed_nearer) == (0.0, 0.0)


def test_times_are_those_of_eager_torch_short_before_long() -> None:
    rows = [
        row("long", 1.0, reference_ms=7.0),
        row("short", 1.0, reference_ms=0.01),
        row("between", 1.0, reference_ms=0.3),
        row("between", 1.0, reference_ms=0.1, candidate="other"),
        failed("unknown"),
    ]
    names = [(item.name, item.candidate) for item in group_rows(rows, "time")]
    assert names == [
        ("below 0.05 ms", "candidate"),
        ("0.05 to 0.2 ms", "candidate"),
        ("0.05 to 0.2 ms", "other"),
        ("from 5 ms", "candidate"),
        ("not timed", "candidate"),
    ]


def test_what_a_graph_is_comes_from_the_suite(tmp_path: Path) -> None:
    suite = load_suite(str(write_small_suite(tmp_path / "small.parquet")))
    rows = [row(item.name, 2.0) for task in suite.tasks for item in task.graphs]
    said = {by: [item.name for item in group_rows(rows, by, suite)] for by in GROUPINGS[1:]}
    assert said == {
        "ops": ["below 3 ops"], "dtype": ["float32"], "domain": ["unknown"], "library": ["unknown"],
    }  # fmt: skip
    demo = load_suite("demo")
    rows = [row(item.name, 2.0) for task in demo.tasks for item in task.graphs]
    dtypes = {item.name: item.num_trials for item in group_rows(rows, "dtype", demo)}
    assert set(dtypes) == {"float32", "bfloat16"} and sum(dtypes.values()) == len(rows)
    assert list(dtypes.values()) == sorted(dtypes.values(), reverse=True)
    with pytest.raises(InputError, match="suite small has no graph"):
        group_rows(rows, "dtype", suite)


def test_the_command_groups_and_asks_for_the_suite_that_it_does_not_know(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet")
    path = tmp_path / "rows.jsonl"
    record = {
        "task": "add_relu", "graph": "add_relu-0", "status": "ok", "smallest_t": -5,
        "speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1, "reference_ms": 0.3,
    }  # fmt: skip
    path.write_text(json.dumps(record) + "\n")
    refused = passnet("bench", "score", path, "--by", "ops")
    assert refused.returncode == 2 and "name the suite that was measured with --suite" in (
        refused.stderr
    )
    by = ("--by", "time", "--by", "ops")
    done = passnet("bench", "score", path, *by, "--suite", suite, "--json")
    groups = json.loads(done.stdout)["groups"]
    assert groups["time"][0]["name"] == "0.2 to 1 ms" and groups["time"][0]["faster"] == 1.0
    assert groups["ops"][0]["name"] == "below 3 ops"
    shown = passnet("bench", "score", path, "--by", "time")
    assert "By time" in shown.stdout and "100.0" in shown.stdout


def test_a_run_over_a_shipped_suite_knows_it(tmp_path: Path) -> None:
    assert suite_of_run(tmp_path) is None
    demo = load_suite("demo")
    record = run_info(demo, [], RunSettings(), describe_environment())
    write_json(tmp_path / RUN_FILE, record)
    assert suite_of_run(tmp_path) == demo
    for change in ({"suite": "mine"}, {"suite_hash": "0" * 64}):
        write_json(tmp_path / RUN_FILE, replace(record, **change))
        assert suite_of_run(tmp_path) is None


def test_the_command_offers_all_groupings() -> None:
    [option] = [item for item in bench_score.params if item.name == "by"]
    assert tuple(option.type.choices) == GROUPINGS  # type: ignore[attr-defined]
