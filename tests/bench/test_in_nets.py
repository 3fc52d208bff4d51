"""Passes in the nets that their tasks came from: places, figures, and a run."""

import json
import multiprocessing
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from passnet.bench.environment import describe_environment
from passnet.bench.in_nets import (
    AGAIN,
    ALONE,
    InNet,
    PassesInNets,
    TaskInNet,
    _copy_passes,
    candidate_in,
    candidates_in,
    find_places,
    keep_in_nets,
    pass_folders,
    read_in_nets,
    record_of,
)
from passnet.bench.run_record import run_info
from passnet.core.records.serialise import encode, write_json
from passnet.data.capture.store import GraphSource, write_set
from passnet.errors import InputError, PassFolderError
from passnet.graph.spec import Graph
from passnet.graph.text.parse import parse_program
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import load_suite, make_suite, write_suite
from passnet.judge.task import NetSource, TaskGraph
from passnet.judge.trial import Trial
from passnet.pages.tables.tables import net_table
from passnet.passes.folder import hash_folders
from tests.bench.runs import QUICK, captured, passnet
from tests.judge.folders import GOOD, PROGRAM, small_graph, write_passes

CLAMP = """
def replacement_args(x, y):
    return (x, y)


def fused(x, y):
    return torch.clamp(x + y, min=0)


def replacement_func():
    return fused
"""

TWICE = PROGRAM.replace(
    "return (tmp_1,)",
    "tmp_2 = tmp_1 + in_1\n        tmp_3 = torch.relu(tmp_2)\n        return (tmp_3,)",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A suite of one task, with its passes, and the graphs of its nets."""
    task = small_graph((32, 32))
    sources = [NetSource(net, "timm", "1", 0, 2) for net in ("timm/lost", "timm/net")]
    graphs = [replace(task, name=f"g{n}", source=source) for n, source in enumerate(sources)]
    write_suite(tmp_path / "tasks.parquet", make_suite("tasks", graphs))
    write_passes(tmp_path / "passes" / "add_relu", CLAMP)
    (tmp_path / "graphs").mkdir()
    net = Graph(parse_program(TWICE), task.graph.tensors)
    rows = [
        captured(task.graph, GraphSource("timm/net", 1)),
        captured(net, GraphSource("timm/net", 0), GraphSource("timm/other", 0)),
    ]
    write_set(tmp_path / "graphs", rows, {"timm": ["1"]})
    return tmp_path


def test_a_task_is_found_in_the_largest_graph_of_its_net(folder: Path) -> None:
    graph = small_graph()
    suite = make_suite("tasks", [replace(graph, source=NetSource("timm/net", "timm", "1", 0, 2))])
    passes = candidate_in(folder / "passes", suite)
    assert pass_folders(suite, passes) == {"add_relu": folder / "passes" / "add_relu"}
    [place], notes = find_places(suite.tasks, folder / "graphs")
    assert place.num_places == 2
    assert (place.task, place.net, notes) == ("add_relu", "timm/net", [])
    assert [len(each.graph.program.ops) for each in (place.on_task, place.in_net)] == [2, 4]
    lost = make_suite("tasks", [replace(graph, source=NetSource("a/b", "a", "1", 0, 2))])
    others, [note] = find_places(lost.tasks, folder / "graphs", 9)
    assert {place.net for place in others} == {"timm/net", "timm/other"}
    for other in others:  # the task as it stands there
        cut = other.on_task.graph
        assert len(cut.program.ops) == 2
        assert {spec.shape for spec in cut.tensors} == {(32, 32)} != {graph.graph.tensors[0].shape}
    assert note.endswith("; 2 others hold its ops")
    program = parse_program(PROGRAM.replace("relu", "exp"))
    nowhere = make_suite("tasks", [replace(graph, graph=Graph(program, graph.graph.tensors))])
    with pytest.raises(InputError, match="no net of at most 64 MiB that holds the ops of one of"):
        find_places(nowhere.tasks, folder / "graphs")
    with pytest.raises(InputError, match="no net of at most 0 MiB"):
        find_places(suite.tasks, folder / "graphs", max_mib=0)
    with pytest.raises(PassFolderError, match="nor a pass folder named after a task"):
        candidate_in(folder, suite)


def trial(graph: str, candidate: str, speedup: float, ms: float, matches: int = 0) -> Trial:
    return Trial(
        *(graph, graph, candidate, "ok"),
        smallest_t=-6,
        speedup=speedup,
        speedup_low=speedup * 0.99,
        speedup_high=speedup * 1.02,
        candidate_ms=ms,
        matches={"Fuse": matches} if matches else {},
    )


def test_figures() -> None:
    graph = small_graph().graph
    on_task, in_net = TaskGraph("t--task", "t--task", graph), TaskGraph("t", "t", graph)
    trials = [
        *(trial("t--task", ALONE, 1.0, 0.4), trial("t--task", "mine", 2.0, 0.2, 1)),
        *(
            trial("t", ALONE, 1.5, 4.0),
            trial("t", AGAIN, 1.53, 3.9),
            trial("t", "mine", 1.65, 3.6, 3),
        ),
    ]
    by_name = {(each.graph, each.candidate): each for each in trials}
    record = record_of(TaskInNet("t", "net", on_task, in_net), by_name, "mine")
    assert (record.num_matches, record.task_speedup) == (3, 2.0)
    assert record.share == pytest.approx(0.3)  # three times 0.4 ms of 4 ms
    assert record.predicted == pytest.approx(1 / 0.85)
    assert (record.speedup, record.again) == (pytest.approx(1.1), pytest.approx(1.02))
    assert 1.07 < record.low < 1.1 < record.high < 1.13  # type: ignore[operator]
    assert record.is_won_on_task and record.is_won_in_net
    assert not replace(record, low=0.99).is_won_in_net
    table = net_table([record, InNet("t", "net", "timeout", 0)])
    assert "Of 1 folders that are faster on their task, 1 are in their net" in table.note
    assert table.rows[0][5:7] == ("1.176", "1.10 (1.08 to 1.12)")


@pytest.mark.parametrize(
    ("own", "alone", "is_right"),
    [(-6, -6, True), (None, -6, False), (-2, -6, False), (-2, -2, True), (None, None, False)],
)
def test_wrong_values_in_a_net_win_nothing(
    own: int | None, alone: int | None, is_right: bool
) -> None:
    graph = small_graph().graph
    site = TaskInNet("t", "net", TaskGraph("t--task", "t--task", graph), TaskGraph("t", "t", graph))
    trials = {
        (place, name): trial(place, name, speedup, 1.0, 1)
        for place in ("t", "t--task")
        for name, speedup in ((ALONE, 1.0), (AGAIN, 1.0), ("mine", 2.0))
    }
    trials["t", "mine"] = replace(trials["t", "mine"], smallest_t=own)
    trials["t", ALONE] = replace(trials["t", ALONE], smallest_t=alone)
    record = record_of(site, trials, "mine")
    assert (record.speedup is not None, record.is_won_in_net) == (is_right, is_right)
    assert record.status == ("ok" if is_right else "wrong values")


def test_a_folder_that_changed_since_is_refused_and_the_judged_one_stays(tmp_path: Path) -> None:
    graph = small_graph().graph
    site = TaskInNet("t", "net", TaskGraph("t--task", "t--task", graph), TaskGraph("t", "t", graph))
    passes = write_passes(tmp_path / "passes", GOOD)
    _copy_passes(tmp_path / "out", [site], {"t": passes})
    copied = hash_folders([tmp_path / "out"])
    _copy_passes(tmp_path / "out", [site], {"t": passes})
    (passes / "note.txt").write_text("changed")
    with pytest.raises(InputError, match="other passes than"):
        _copy_passes(tmp_path / "out", [site], {"t": passes})
    assert hash_folders([tmp_path / "out"]) == copied


def test_passes_of_a_run_are_those_that_it_judged(folder: Path) -> None:
    suite = load_suite(folder / "tasks.parquet")
    entries = [
        *(parse_candidate(word, suite.tasks) for word in ("eager", f"{folder}/passes@direct")),
        parse_candidate(str(folder / "passes"), suite.tasks),
    ]
    info = run_info(suite, entries, RunSettings(), describe_environment())
    write_json(folder / "run.json", info)
    assert candidate_in(folder, suite).code_hash == entries[1].code_hash
    with pytest.raises(InputError, match="eager is not among them"):
        candidate_in(folder, suite, "eager")
    with pytest.raises(InputError, match="is a run of tasks, and not of other"):
        candidate_in(folder, replace(suite, name="other"))
    with pytest.raises(InputError, match="is no run folder"):
        candidate_in(folder / "passes", suite, "eager")
    write_passes(folder / "passes" / "add_relu", CLAMP + "\n")
    with pytest.raises(InputError, match="were changed since the run"):
        candidate_in(folder, suite)


def test_candidates_are_told_apart_by_the_names_of_their_folders(folder: Path) -> None:
    suite = load_suite(folder / "tasks.parquet")
    shutil.copytree(folder / "passes", folder / "inductor")
    found = candidates_in([folder / "passes"], suite)
    assert list(found) == [folder.name]
    for paths in ([folder / "passes"] * 2, [folder / "inductor"]):
        with pytest.raises(InputError, match="another candidate is called"):
            candidates_in(paths, suite)


def test_what_passes_did_is_kept_by_their_content(tmp_path: Path) -> None:
    place = InNet("t", "net", "ok", 1, speedup=2.0)
    first, other = (
        PassesInNets("a", (place, InNet("t", "lost", "timeout", 0))),
        PassesInNets("b", ()),
    )
    for each in (PassesInNets("a", ()), other, first):
        keep_in_nets(each, tmp_path)
    assert read_in_nets(tmp_path) == [other, first]
    assert (first.score, other.score) == (pytest.approx(2.0), None)


def test_records_of_other_tasks_and_nets_of_the_same_passes_are_kept(tmp_path: Path) -> None:
    def passes(*places: InNet) -> PassesInNets:
        return PassesInNets("a", places, "mine")

    one, two = InNet("t", "one", "ok", 1, speedup=2.0), InNet("t", "two", "ok", 1, speedup=3.0)
    other, again = InNet("other", "one", "timeout", 0), replace(two, speedup=4.0)
    for each in (passes(one, two), passes(other), passes(again)):
        keep_in_nets(each, tmp_path)
    assert read_in_nets(tmp_path) == [passes(one, again, other)]


def _keep_many(folder: Path, name: str) -> None:
    for number in range(20):
        keep_in_nets(PassesInNets(f"{name}-{number}", ()), folder)


def test_records_that_two_processes_store_are_all_kept(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_keep_many, args=(tmp_path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    kept = {each.code_hash for each in read_in_nets(tmp_path)}
    assert kept == {f"{name}-{number}" for name in "ab" for number in range(20)}


def test_parts_that_take_longer_than_their_net_have_no_share_and_no_prediction(
    tmp_path: Path,
) -> None:
    graph = small_graph().graph
    site = TaskInNet("t", "net", TaskGraph("t--task", "t--task", graph), TaskGraph("t", "t", graph))
    times_ms = {"t--task": 1.0, "t": 2.9}
    trials = {
        (place, name): trial(place, name, speedup, ms, 3)
        for place, ms in times_ms.items()
        for name, speedup in ((ALONE, 1.0), (AGAIN, 1.0), ("mine", 2.0))
    }
    record = record_of(site, trials, "mine")
    assert (record.share, record.predicted, record.task_speedup) == (None, None, 2.0)
    [row] = net_table([record]).rows
    assert row[4:6] == ("–", "–")
    text = encode([PassesInNets("a", (record,))]).replace(
        b'"share":null,"predicted":null', b'"share":3.4,"predicted":0.42'
    )
    assert b"3.4" in text
    (tmp_path / "in_nets.json").write_bytes(text)
    assert read_in_nets(tmp_path) == [PassesInNets("a", (record,))]


def test_the_score_says_how_many_nets_it_is_of() -> None:
    lost = tuple(InNet(f"t{number}", "net", "runtime_error", 1) for number in range(9))
    found = PassesInNets("a", (InNet("t", "net", "ok", 1, speedup=1.5), *lost))
    assert (found.score, found.score_text) == (pytest.approx(1.5), "1.500, 1 of 10 nets")
    assert PassesInNets("a", lost).score_text == "0 of 9 nets"
    assert "of 1 of 10 nets is 1.500" in net_table(found.places).note


@pytest.mark.slow
def test_a_run_goes_on(folder: Path) -> None:
    shutil.copytree(folder / "passes", folder / "second")
    options = (
        "apply",
        folder / "passes",
        folder / "second",
        "--suite",
        folder / "tasks.parquet",
        *QUICK,
    )
    options = (*options, "--graphs", folder / "graphs", "--out", folder / "run")
    first = passnet("bench", *options, "--json", timeout_s=400)
    assert first.returncode == 0, first.stderr
    record, second = json.loads(first.stdout)
    assert (record.pop("candidate"), second["candidate"]) == (folder.name, "second")
    assert (second["status"], second["num_matches"]) == ("ok", 2)
    assert (record["error"], record["status"], record["num_matches"]) == (None, "ok", 2)
    assert record["net"] == "timm/net"
    assert record["speedup"] > 0
    assert (record["share"] is None) == (record["predicted"] is None)  # None in so small a net
    again = passnet("bench", *options, "--resume")
    assert "timm/net" in again.stdout and again.returncode == 0
    kept = read_in_nets(folder / "run")  # of the same passes, so the last is kept
    assert [asdict(place) for each in kept for place in each.places] == [
        {key: value for key, value in second.items() if key != "candidate"}
    ]
