"""Shares of the time of nets: from a run, into scores, and where they are not shown."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.bench.environment import describe_environment
from passnet.bench.in_nets import ALONE, TaskInNet, find_places
from passnet.bench.run_record import run_info
from passnet.bench.scores import as_json, read_rows, score_rows
from passnet.bench.shares import (
    SHARES_FILE,
    NetShare,
    SuiteShares,
    shares_for,
    shares_in_run,
    shipped_shares,
)
from passnet.core.records.serialise import LineWriter, read_json, write_json
from passnet.data.capture.store import GraphSource, write_set
from passnet.errors import InputError
from passnet.graph.spec import Graph
from passnet.graph.text.parse import parse_program
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.settings import RunSettings
from passnet.judge.suite.shipped import suites_folder
from passnet.judge.suite.suite import Suite, load_suite, make_suite, write_suite
from passnet.judge.task import NetSource, TaskGraph
from passnet.judge.trial import Trial
from passnet.pages.tables.tables import total_table
from tests.bench.runs import QUICK, captured, passnet
from tests.judge.folders import PROGRAM, small_graph

TWICE = PROGRAM.replace(
    "return (tmp_1,)",
    "tmp_2 = tmp_1 + in_1\n        tmp_3 = torch.relu(tmp_2)\n        return (tmp_3,)",
)
APART = PROGRAM.replace(
    "tmp_1 = torch.relu(tmp_0)", "tmp_2 = torch.exp(tmp_0)\n        tmp_1 = torch.relu(tmp_2)"
)
SUITE = make_suite("tasks", [replace(small_graph(), source=NetSource("a/apart", "a", "1", 0, 2))])
SHARES = SuiteShares("tasks", "hash", "a machine", "2.13", (NetShare("a", "net", 2, 0.75),))
ROWS = [
    {"task": task, "graph": task, "status": "ok", "smallest_t": -5, "speedup": speedup}
    for task, speedup in (("a", 4.0), ("b", 2.0))
]


def places_in(*programs: str) -> list[TaskInNet]:
    """The task of the suite, in nets with these programs."""
    task = SUITE.graphs[0].graph
    nets = {f"net{n}": Graph(parse_program(text), task.tensors) for n, text in enumerate(programs)}
    return [
        TaskInNet(
            "add_relu",
            net,
            TaskGraph(f"{net}--task", f"{net}--task", task),
            TaskGraph(net, net, graph),
        )
        for net, graph in nets.items()
    ]


def write_run(out: Path, times_ms: dict[str, float | None], suite: Suite = SUITE) -> Path:
    """A run of Inductor alone with these times; the trial of a graph without one has failed."""
    entry = CandidateEntry(Candidate(ALONE, "inductor"))
    out.mkdir()
    write_json(out / "run.json", run_info(suite, [entry], RunSettings(), describe_environment()))
    with LineWriter(out / "trials.jsonl") as writer:
        for graph, time_ms in times_ms.items():
            status = "ok" if time_ms else "timeout"
            writer.write(Trial(graph, graph, ALONE, status, candidate_ms=time_ms))
    return out


def test_a_share_is_places_times_the_time_of_the_task_over_that_of_the_net(tmp_path: Path) -> None:
    places = places_in(TWICE, PROGRAM, TWICE, APART, TWICE, TWICE)
    times_ms: dict[str, float | None] = {
        **{"net0--task": 0.2, "net0": 1.0},  # 2 places
        **{"net1--task": 0.2, "net1": 1.0},  # 1 place
        **{"net2--task": 0.8, "net2": 1.0},  # more than the whole net
        **{"net3--task": 0.2, "net3": 1.0},  # no place in one piece
        **{"net4--task": 0.2, "net4": None},  # the net failed; net5 is not finished
    }
    found = shares_in_run(SUITE, places, write_run(tmp_path / "run", times_ms))
    assert [(each.net, each.places, each.share) for each in found.nets] == [
        ("net0", 2, pytest.approx(0.4)),
        ("net1", 1, pytest.approx(0.2)),
        ("net2", 2, 1.0),
    ]
    assert found.tasks == {"add_relu": pytest.approx(1.6 / 3)}  # the arithmetic mean
    assert (found.suite, found.suite_hash) == ("tasks", SUITE.content_hash)
    assert found.torch and "thread" in found.hardware
    with pytest.raises(InputError, match="has not timed Inductor on a task of tasks and in its"):
        shares_in_run(SUITE, places, write_run(tmp_path / "failed", {"net0": 1.0}))


def test_nets_that_do_not_hold_a_task_in_one_piece_can_be_left_out(tmp_path: Path) -> None:
    tensors = SUITE.graphs[0].graph.tensors
    rows = [
        captured(Graph(parse_program(APART), tensors), GraphSource("a/apart", 0)),
        captured(Graph(parse_program(TWICE), tensors), GraphSource("a/twice", 0)),
    ]
    write_set(tmp_path, rows, {"a": ["1"]})
    [own], _ = find_places(SUITE.tasks, tmp_path)
    [held], [note] = find_places(SUITE.tasks, tmp_path, is_held=True)
    assert (own.net, own.num_places, held.net, held.num_places) == ("a/apart", 0, "a/twice", 2)
    assert note.endswith("with its ops in one piece; 1 others hold its ops")


def test_scores_show_shares_only_where_they_are_known(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    write_json(tmp_path / "file.json", SHARES)
    scores = score_rows(read_rows(rows))
    shares = shares_for(rows, None, tmp_path / "file.json")
    of_task = scores[0].suite.tasks["a"]
    assert as_json(scores, shares=shares)["as_by_share"] == {
        **dict.fromkeys(("score", "flatter", "steeper"), pytest.approx(of_task)),
        **{"num_tasks": 1, "largest_change": None, "changed_by": None},
    }
    table = total_table(scores, shares)
    cells = dict(zip(table.heads, table.rows[0], strict=True))
    assert (cells["AS by share"], cells["AS64"]) == (f"{of_task:.3f}", cells["AS"])
    assert table.note.endswith(
        "AS by share: 1 tasks, weighted by their shares of the time of nets."
    )
    assert shares_for(rows) == {}
    assert "as_by_share" not in as_json(scores) and "AS by share" not in total_table(scores).heads
    shown = passnet("bench", "score", rows, "--json", "--shares", tmp_path / "file.json")
    assert json.loads(shown.stdout)["as_by_share"]["score"] == pytest.approx(of_task), shown.stderr


def test_shares_of_another_suite_and_impossible_ones_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"a": 1.0})
    write_json(tmp_path / "file.json", SHARES)
    with pytest.raises(InputError, match="holds shares of another suite or version, tasks"):
        shares_for(run, None, tmp_path / "file.json")
    with pytest.raises(InputError, match="of another suite"):
        shares_for(tmp_path / "rows.jsonl", SUITE, tmp_path / "file.json")
    write_json(tmp_path / "file.json", replace(SHARES, suite_hash=SUITE.content_hash))
    assert shares_for(run, None, tmp_path / "file.json") == {"a": 0.75}
    text = (tmp_path / "file.json").read_text()
    for share in ("0.0", "1.5"):
        (tmp_path / "file.json").write_text(text.replace("0.75", share))
        with pytest.raises(InputError, match=f"its share is {share}"):
            shares_for(run, None, tmp_path / "file.json")


def test_shipped_shares_are_those_of_a_shipped_suite() -> None:
    assert shipped_shares("of no suite") == shipped_shares(None) == {}
    for path in suites_folder().glob(f"*.{SHARES_FILE}"):
        found = read_json(path, SuiteShares)
        suite = load_suite(found.suite)
        assert found.suite_hash == suite.content_hash, f"{path}: measure it again"
        assert {each.task for each in found.nets} <= {task.name for task in suite.tasks}
        assert shipped_shares(suite.content_hash) == found.tasks


@pytest.mark.parametrize("name", ["demo", "passbench-v1-small"])
def test_shipped_shares_are_those_that_were_recorded_in_nets(name: str) -> None:
    """A record's share is of the places that a pass matched, a shipped one of all places."""
    path = suites_folder().parent / "baselines" / f"{name}-in-nets" / "in_nets.json"
    if not path.is_file():
        pytest.skip("there are no baselines here")
    measured = {
        (place["task"], place["net"]): place["share"] / place["num_matches"]
        for candidate in json.loads(path.read_text(encoding="utf-8"))
        for place in candidate["places"]
        if place["num_matches"] and place["share"]
    }
    found = read_json(suites_folder() / f"{name}.{SHARES_FILE}", SuiteShares)
    both = [each for each in found.nets if (each.task, each.net) in measured]
    assert len(both) >= 4
    for each in both:
        share = min(1.0, each.places * measured[each.task, each.net])
        assert each.share == pytest.approx(share), each


@pytest.mark.slow
def test_a_suite_is_weighed_and_weighed_again_from_its_run(tmp_path: Path) -> None:
    write_suite(tmp_path / "tasks.parquet", SUITE)
    net = Graph(parse_program(TWICE), SUITE.graphs[0].graph.tensors)
    (tmp_path / "graphs").mkdir()
    write_set(tmp_path / "graphs", [captured(net, GraphSource("a/twice", 0))], {"a": ["1"]})
    words = ("weigh", tmp_path / "tasks.parquet", "--graphs", tmp_path / "graphs", *QUICK)
    first = passnet("suite", *words, "--out", tmp_path / "run", "--json")
    assert first.returncode == 0, first.stderr
    [record] = json.loads(first.stdout)["nets"]
    assert (record["task"], record["net"], record["places"]) == ("add_relu", "a/twice", 2)
    again = passnet("suite", *words, "--from", tmp_path / "run", "--out", tmp_path / "again")
    assert "shares of 1 of 1 tasks" in again.stdout, again.stderr
    files = [tmp_path / folder / SHARES_FILE for folder in ("run", "again")]
    assert files[0].read_bytes() == files[1].read_bytes()
