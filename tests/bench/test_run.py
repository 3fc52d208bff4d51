"""A run from the command line, end to end: measured, killed, resumed, scored again."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from passnet.bench.run_record import run_folder
from passnet.graph.text.files import GraphSample, write_sample
from passnet.judge.limitations import NOT_COVERED
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.suite.suite import make_suite, write_suite
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from passnet.pages.tables.tables import phase_table
from tests.bench.runs import QUICK, command, lines, passnet, write_small_suite
from tests.conftest import ROOT
from tests.judge.folders import GOOD, small_graph, write_passes

pytestmark = pytest.mark.xdist_group("bench")


@pytest.mark.slow
def test_a_run_measures_scores_and_leaves_its_records(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet")
    good = write_passes(tmp_path / "passes" / "add_relu", GOOD)
    out = tmp_path / "run"
    done = passnet(
        "bench", "run", "--suite", suite, "--candidate", "eager", "--candidate", "null@direct",
        "--candidate", "null@guarded", "--candidate", good.parent,
        "--candidate", f"{good}@direct", "--candidate", f"{good}@guarded", "--out", out, *QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "AS by task" in done.stdout and "Where the time went" in done.stdout
    names = {"run.json", "trials.jsonl", "scores.json", "tables.md", "es.svg"}
    assert {path.name for path in out.iterdir()} == names
    trials = lines(out)
    assert len(trials) == 6 * 5
    by_key = {(item["graph"], item["candidate"]): item for item in trials}
    assert len(by_key) == len(trials)
    for item in trials:
        if item["candidate"] in ("eager", "null@direct", "null@guarded"):
            assert item["status"] == "ok" and item["smallest_t"] == -10 and item["speedup"] > 0
    folder = by_key[("mul_relu-0", str(good.parent))]
    assert folder["status"] == "no_match" and "no pass folder for task mul_relu" in folder["error"]
    direct = by_key[("mul_relu-0", f"{good}@direct")]
    assert direct["status"] == "no_match" and "nearest miss" in direct["error"]
    for call in ("direct", "guarded"):
        trial = by_key[("add_relu-0", f"{good}@{call}")]
        assert (trial["status"], trial["matches"]) == ("ok", {"Fuse": 1})
    info = json.loads((out / "run.json").read_text())
    assert info["environment"]["cpu"] and info["environment"]["torch"]
    assert info["code_hashes"][str(good.parent)]


def test_phases_that_overlap_add_up_to_all_of_the_time() -> None:
    trials = [
        Trial("t", name, "eager", "ok", phases_s={"timing": 4.0, "compile": seconds})
        for name, seconds in (("a", 3.0), ("b", 9.0))
    ]
    assert phase_table(trials, 10.0).rows == [
        ("compile", "12.0", "60"), ("timing", "8.0", "40"), ("rest", "0.0", "0"),
    ]  # fmt: skip
    assert phase_table(trials, 40.0).rows == [
        ("rest", "20.0", "50"), ("compile", "12.0", "30"), ("timing", "8.0", "20"),
    ]  # fmt: skip


@pytest.mark.slow
def test_scores_are_recomputed_from_the_run_folder_alone(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    out = tmp_path / "run"
    done = passnet("bench", "run", "--suite", suite, "--candidate", "eager", "--out", out, "--json",
                   *QUICK)  # fmt: skip
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)
    again = json.loads(passnet("bench", "score", out, "--json").stdout)
    assert again == first
    assert first["as"] > 0 and set(first["es"]) == {str(t) for t in range(-10, 5)}
    recorded = json.loads((out / "run.json").read_text())["not_covered"]
    assert recorded == [*NOT_COVERED, *find_sandbox().unrestricted]
    documented = " ".join((ROOT / "docs" / "judging.md").read_text().split())
    assert all(sentence in documented for sentence in NOT_COVERED)
    harsher = json.loads(passnet("bench", "score", out, "--json", "--p", "1").stdout)
    assert harsher["as"] <= first["as"]


def test_a_killed_run_is_resumed_without_losing_or_repeating_a_trial(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 6)
    out = tmp_path / "run"
    words = ("bench", "run", "--suite", suite, "--candidate", "eager", "--candidate", "null@direct",
             "--out", out, "--seconds", "0.05", *QUICK[2:])  # fmt: skip
    process = subprocess.Popen(
        command(*words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    path = out / "trials.jsonl"
    deadline = time.monotonic() + 60
    while not (path.exists() and path.read_bytes().count(b"\n") >= 4):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = path.read_bytes()
    kept = before[: before.rfind(b"\n") + 1]
    assert 4 <= kept.count(b"\n") < 14, "killed too late to show anything"
    path.write_bytes(kept + b'{"task": "add_relu", "gra')  # as a kill in mid-write leaves it

    refused = passnet(*words)
    assert refused.returncode == 2 and "--resume" in refused.stderr
    resumed = passnet(*words, "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    after = path.read_bytes()
    assert after.startswith(kept)
    keys = [(item["graph"], item["candidate"]) for item in lines(out)]
    assert len(keys) == len(set(keys)) == 2 * 7
    assert passnet(*words, "--resume").returncode == 0
    assert path.read_bytes() == after, "a finished run is not measured again"


@pytest.mark.slow
def test_what_was_unstable_is_measured_again_where_that_is_asked_for(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    out = tmp_path / "run"
    words = ("bench", "run", "--suite", suite, "--candidate", "eager", "--out", out, *QUICK)
    assert passnet(*words).returncode == 0
    first, *others = lines(out)
    first.update(status="unstable", speedup=None, speedup_low=None, speedup_high=None)
    (out / "trials.jsonl").write_text("".join(json.dumps(item) + "\n" for item in [first, *others]))
    before = (out / "trials.jsonl").read_bytes()
    assert passnet(*words, "--resume").returncode == 0
    assert (out / "trials.jsonl").read_bytes() == before
    other = ("bench", "run", "--suite", suite, "--candidate", "null", "--out", out, *QUICK)
    assert passnet(*other, "--resume", "--retry").returncode == 0
    kept = [item for item in lines(out) if item["candidate"] != "null"]
    assert kept == [first, *others], "null alone was to be repeated"
    (out / "trials.jsonl").write_bytes(before)
    refused = passnet(*words, "--retry")
    assert refused.returncode == 2 and "--resume" in refused.stderr
    assert passnet(*words, "--resume", "--retry").returncode == 0
    *kept, again = lines(out)
    assert kept == others
    assert (again["graph"], again["status"]) == (first["graph"], "ok") and again["speedup"] > 0


@pytest.mark.slow
def test_a_run_can_be_extended_by_a_candidate_but_not_changed(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    good = write_passes(tmp_path / "passes", GOOD)
    out = tmp_path / "run"
    words = ("bench", "run", "--suite", suite, "--out", out, "--resume", *QUICK)
    assert passnet(*words, "--candidate", "eager").returncode == 0
    assert passnet(*words, "--candidate", f"{good}@direct").returncode == 0
    assert {item["candidate"] for item in lines(out)} == {"eager", f"{good}@direct"}
    other = passnet(*words, "--candidate", "eager", "--seed", "1")
    assert other.returncode == 2 and "other settings: judge.seed was 0 and is 1" in other.stderr
    write_passes(good, GOOD + "\n# changed\n")
    changed = passnet(*words, "--candidate", f"{good}@direct")
    assert changed.returncode == 2 and "have changed since that run" in changed.stderr


@pytest.mark.slow
def test_a_machine_without_a_compiler_does_not_make_a_cheat_of_eager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    words = ("--candidate", "eager", "--candidate", "inductor", "--out", tmp_path / "run", *QUICK)
    done = passnet("bench", "run", "--suite", suite, *words)
    assert done.returncode == 0, done.stderr
    statuses = [(trial["candidate"], trial["status"]) for trial in lines(tmp_path / "run")]
    assert sorted(statuses) == [("eager", "ok")] * 3 + [("inductor", "runtime_error")] * 3


@pytest.mark.slow
def test_one_bad_task_does_not_stop_the_others(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    bad = write_passes(
        tmp_path / "passes" / "add_relu",
        "import os\ndef replacement(x, y):\n    os._exit(1)\n",
    )
    good = write_passes(tmp_path / "passes" / "mul_relu", GOOD)
    path = good / "Fuse.py"
    text = path.read_text().replace("torch.relu(x + y)", "torch.relu(x * y)")
    path.write_text(text.replace("torch.clamp(x + y", "torch.clamp(x * y"))
    out = tmp_path / "run"
    done = passnet(
        "bench", "run", "--suite", suite, "--candidate", bad.parent, "--out", out, *QUICK
    )
    assert done.returncode == 0, done.stderr
    assert [item["status"] for item in lines(out)] == ["crash", "crash", "ok"]
    assert "exited with code 1" in done.stdout


@pytest.mark.slow
def test_an_unusable_folder_of_one_task_fails_that_task_and_no_other(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    bad = write_passes(tmp_path / "passes" / "add_relu", GOOD)
    (bad / "Fuse.py").write_text("def pattern(:\n")
    write_passes(tmp_path / "passes" / "mul_relu", GOOD)
    out = tmp_path / "run"
    done = passnet(
        "bench", "run", "--suite", suite, "--candidate", f"{bad.parent}@direct", "--out", out,
        *QUICK,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "note: task add_relu: " in done.stderr and "Fuse.py:1: not Python" in done.stderr
    first, second = lines(out)
    assert (first["task"], first["status"]) == ("add_relu", "compile_error")
    assert "Fuse.py:1: not Python" in first["error"]
    assert (second["task"], second["status"]) == ("mul_relu", "no_match")


@pytest.mark.slow
def test_a_graph_that_cannot_be_read_or_run_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "graphs"
    for name in ("good", "unknown", "unreadable"):
        write_sample(folder / name, GraphSample(small_graph().graph))
    for name, call in (("unknown", "torch.unknown_op("), ("unreadable", "exec(")):
        path = folder / name / "model.py"
        path.write_text(path.read_text().replace("torch.relu(", call))
    out = tmp_path / "run"
    done = passnet("bench", "run", "--suite", folder, "--candidate", "eager", "--out", out, *QUICK)
    assert done.returncode == 0, done.stderr
    assert "note: left out: " in done.stderr and "unreadable/model.py:7: " in done.stderr
    trials = {item["graph"]: item for item in lines(out)}
    assert {name: item["status"] for name, item in trials.items()} == {
        "good": "ok",
        "unknown": "reference_error",
    }
    assert "model.py:7: torch.unknown_op is not on the list" in trials["unknown"]["error"]


@pytest.mark.slow
def test_a_run_is_not_continued_with_another_torch_or_on_another_machine(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    words = ("bench", "run", "--suite", suite, "--candidate", "eager", "--out", tmp_path / "run",
             *QUICK)  # fmt: skip
    assert passnet(*words).returncode == 0
    path = tmp_path / "run" / "run.json"
    info = json.loads(path.read_text())
    for field, value in (("torch", "1.0"), ("cpu", "abacus")):
        other = {**info, "environment": {**info["environment"], field: value}}
        path.write_text(json.dumps(other))
        refused = passnet(*words, "--resume")
        assert refused.returncode == 2 and f"was measured with {field} {value}" in refused.stderr
    path.write_text(json.dumps({**info, "schema_version": 0}))
    refused = passnet(*words, "--resume")
    assert refused.returncode == 2 and "its records have version 0" in refused.stderr


@pytest.mark.slow
def test_code_that_breaks_the_rules_is_a_cheat_and_named(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    folder = write_passes(tmp_path / "passes", GOOD)
    words = ("bench", "run", "--suite", suite, "--task", "add_relu", "--candidate",
             f"{folder}@direct", *QUICK)  # fmt: skip
    for rules, status in (("open", "ok"), ("strict", "cheat")):
        out = tmp_path / rules
        done = passnet(*words, "--rules", rules, "--out", out)
        assert done.returncode == 0, done.stderr
        [trial] = lines(out)
        assert trial["status"] == status
        named = [(item["weight"], item["name"]) for item in trial["findings"]]
        assert named == ([] if rules == "open" else [("reject", "torch_fallback")])
    assert "torch.clamp" in trial["error"] and "Fuse.py:" in trial["error"]


BAD_INPUT = {
    "no such suite": (("--suite", "nosuch"), "no suite 'nosuch'; shipped are demo"),
    "no such candidate": (("--candidate", "nosuch"), "no baseline and no folder of that name"),
    "a file as candidate": (("--candidate", __file__), "a file; give the pass folder"),
    "an unknown flag": (("--candidate", "null@fast"), "no flag '@fast'"),
    "a candidate given twice": (("--candidate", "eager"), "candidate eager is given twice"),
    "an unknown task": (("--task", "nosuch"), "has no task 'nosuch'"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_a_usage_error_is_one_sentence_and_exit_code_two(name: str, tmp_path: Path) -> None:
    words, message = BAD_INPUT[name]
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    done = passnet("bench", "run", "--suite", suite, "--candidate", "eager", "--out",
                   tmp_path / "run", *words)  # fmt: skip
    assert done.returncode == 2
    assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


BAD_FOLDERS = {
    "a syntax error": ("Fuse.py", "def pattern(:\n", "Fuse.py:1: not Python"),
    "a missing function": ("Fuse.py", "def pattern(x):\n    return x\n", "no replacement_args"),
    "a name without a file": (
        "sorted_output_pass_rule_names.json",
        '["Fuse", "Gone"]',
        "missing, though the list names Gone",
    ),
    "a list that is no list": ("sorted_output_pass_rule_names.json", "{}", "JSON list"),
}


@pytest.mark.parametrize("name", BAD_FOLDERS)
def test_a_bad_pass_folder_is_refused_before_anything_runs(name: str, tmp_path: Path) -> None:
    file, text, message = BAD_FOLDERS[name]
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    folder = write_passes(tmp_path / "passes", GOOD)
    (folder / file).write_text(text)
    done = passnet("bench", "run", "--suite", suite, "--candidate", folder, "--out",
                   tmp_path / "run")  # fmt: skip
    assert done.returncode == 2 and message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_an_unlisted_pass_is_noted(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 1)
    folder = write_passes(tmp_path / "passes", GOOD)
    (folder / "Other.py").write_text((folder / "Fuse.py").read_text())
    done = passnet("bench", "run", "--suite", suite, "--candidate", f"{folder}@direct", "--out",
                   tmp_path / "run", *QUICK)  # fmt: skip
    assert done.returncode == 0
    assert "Other.py looks like a pass but is not on the list" in done.stderr


def test_many_get_ready_at_a_time_and_one_measures_alone() -> None:
    import threading

    from passnet.judge.processes.device_lock import DeviceTurns

    device = f"test{os.getpid()}"
    order: list[str] = []
    is_in = threading.Event()

    def other() -> None:
        with DeviceTurns(device) as turns:
            is_in.set()
            time.sleep(0.2)
            order.append("other is ready")
            with turns.alone():
                order.append("other measures")

    with DeviceTurns(device) as turns:
        thread = threading.Thread(target=other)
        thread.start()
        assert is_in.wait(5)  # though this one gets ready, too
        with turns.alone():
            order.append("one measures")
            time.sleep(0.2)
            order.append("one has measured")
    thread.join()
    measured = order.index("one measures")
    assert order.index("other is ready") < measured
    assert order[measured + 1] == "one has measured"
    assert "other measures" in order


@pytest.mark.slow
def test_tasks_side_by_side_give_every_trial_once(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    args = ("bench", "run", "--suite", suite, "--candidate", "eager", "--candidate", "null@direct",
            "--out", tmp_path / "run", "--jobs", "2", *QUICK)  # fmt: skip
    done = passnet(*args)
    assert done.returncode == 0, done.stderr
    trials = list(run_folder(tmp_path / "run").records().values())
    assert len(trials) == 6 and {item.status for item in trials} == {"ok"}
    lines = (tmp_path / "run" / "trials.jsonl").read_bytes()
    assert passnet(*args, "--resume").returncode == 0
    assert (tmp_path / "run" / "trials.jsonl").read_bytes() == lines


HARD_CODED = """
def replacement(x, y):
    out = torch.zeros_like(x)
    out[:, :64] = torch.relu(x[:, :64] + y[:, :64])
    return out
"""


@pytest.mark.slow
def test_a_pass_that_is_wrong_on_a_held_out_shape_is_rejected(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 2)  # 16 and 32 columns
    wider = TaskGraph("add_relu", "add_relu-wider", small_graph((32, 80)).graph)
    unseen = tmp_path / "unseen.parquet"
    write_suite(unseen, make_suite("unseen", [wider]))
    wrong = write_passes(tmp_path / "wrong", HARD_CODED)
    out = tmp_path / "run"
    words = ("bench", "run", "--suite", suite, "--task", "add_relu", "--out", out, *QUICK,
             "--candidate", "null@direct", "--candidate", f"{wrong}@direct")  # fmt: skip
    done = passnet(*words, "--held-out", unseen)
    assert done.returncode == 0, done.stderr
    for item in lines(out):
        if item["candidate"].startswith(str(wrong)):
            assert item["status"] == "cheat" and item["speedup"] is None
            assert "hard_coded_shape: on the held-out add_relu-wider" in item["error"]
        else:
            assert item["status"] == "ok" and not item["findings"]
    other = passnet(*words, "--resume")
    assert other.returncode == 2 and "other settings" in other.stderr
