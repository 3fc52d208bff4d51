"""Entries of a leaderboard: what is checked of them, and that each check is seen to fail."""

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from passnet.bench.in_nets import PassesInNets, read_in_nets
from passnet.bench.run_record import BenchRunInfo, run_folder
from passnet.cli import main
from passnet.core.records.serialise import SCHEMA_VERSION, read_json, write_json
from passnet.errors import InputError
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import load_suite, only_tasks
from passnet.judge.timing.estimate import low_mean, speedup
from passnet.judge.timing.roofline import Roofline
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding
from passnet_site.leaderboard.board_settings import board_settings
from passnet_site.leaderboard.entry import (
    ENTRY_FILE,
    TRIALS,
    LeaderboardEntry,
    claimed_scores,
    entry_folders,
    read_entry,
    write_entry,
)
from passnet_site.leaderboard.entry_checks import check_entry, check_run, failed
from passnet_site.leaderboard.rejudging import (
    EntryVerification,
    compare,
    read_verification,
    write_verification,
)
from passnet_site.pages.board_pages import line_table
from passnet_site.pages.boards import board_scores, boards_of
from passnet_site.pages.measured import KnownSuites, read_entries
from tests.bench.runs import passnet, write_small_suite
from tests.judge.folders import GOOD, write_passes
from tests.pages.site.runs import hostile_suite, write_hostile_passes, write_run

SUITE = hostile_suite()


def make(tmp_path: Path) -> tuple[Path, LeaderboardEntry, list[Trial]]:
    run = write_run(tmp_path / "run", SUITE, write_hostile_passes(tmp_path / "mine"))
    folder = tmp_path / "board" / "first"
    folder.mkdir(parents=True)
    info, trials = run_folder(run).read_info(), list(run_folder(run).records().values())
    in_nets = [*read_in_nets(run), PassesInNets("of other passes", ())]
    write_entry(folder, "first", "somebody", info, trials, SUITE, in_nets)
    return (folder, *read_entry(folder))


def test_an_entry_carries_its_run_and_passes_every_check(tmp_path: Path) -> None:
    folder, entry, trials = make(tmp_path)
    checks = check_entry(folder, entry, trials, SUITE)
    assert failed(checks) == []
    assert {check.name for check in checks} == {
        "judge", "suite", "settings", "complete", "steady", "times", "findings", "sources",
        "scores",
    }  # fmt: skip
    assert entry.scores == claimed_scores(trials)
    assert list(entry.in_nets) == read_in_nets(tmp_path / "run") != []
    assert (folder / "passes" / "0" / "Fuse.py").is_file()
    assert [each.name for each in entry.info.candidates][-1] == "first"
    assert {trial.candidate for trial in trials} == set(entry.scores)
    assert str(tmp_path) not in (folder / ENTRY_FILE).read_text()


def faster(trial: Trial) -> Trial:
    assert trial.speedup is not None
    return replace(trial, speedup=trial.speedup * 1.5)


def on_busy_machine(trial: Trial) -> Trial:
    """A trial whose second turns of the reference were fast, with the numbers that this gives."""
    rounds = tuple((one * 1.3, two) for one, two in trial.reference_rounds_ms)
    found = speedup(np.array(rounds), np.array(trial.candidate_rounds_ms), 0)
    return replace(trial, reference_rounds_ms=rounds, speedup=found.value, speedup_low=found.low,
                   speedup_high=found.high,
                   reference_ms=float(low_mean(np.array(rounds).reshape(-1))))  # fmt: skip


REJECTED = (Finding("reject", "constant_output", "x"),)

BAD_TRIALS: dict[str, tuple[Callable[[list[Trial]], list[Trial]], str]] = {
    "one is missing": (lambda trials: trials[1:], "complete: 1 trials are missing"),
    "one is there twice": (lambda trials: [trials[0], *trials], "complete: 1 trials are there"),
    "one is of no graph": (
        lambda trials: [*trials, replace(trials[0], graph="x")], "complete: 1 trials are of no"),
    "a speedup is better than its times": (
        lambda trials: [faster(trials[0]), *trials[1:]], "times: 1 trials are not what"),
    "raw times are gone": (
        lambda trials: [replace(trials[0], candidate_rounds_ms=()), *trials[1:]],
        "its raw times are missing"),
    "the machine was busy": (
        lambda trials: [on_busy_machine(trials[0]), *trials[1:]],
        "times: 1 trials are not .* eager torch differs from itself"),
    "eager torch is slower than its times": (
        lambda trials: [replace(trials[0], reference_ms=9.0), *trials[1:]],
        r"a call takes \(9.0, .*\) ms, and \[0.2"),
    "a call is faster than its times": (
        lambda trials: [replace(trials[0], candidate_ms=1e-6), *trials[1:]],
        r"a call takes \(0.2.*, 1e-06\) ms"),
    "what failed has a time without raw ones": (
        lambda trials: [
            Trial(*(trials[0].task, trials[0].graph, "eager", "timeout"), candidate_ms=1.0),
            *trials[1:],
        ],
        "its raw times are missing"),
    "what failed has a speedup": (
        lambda trials: [replace(trials[0], status="timeout"), *trials[1:]],
        "it claims a speedup, and is timeout"),
    "a cheat counts": (
        lambda trials: [replace(trials[0], findings=REJECTED), *trials[1:]],
        "findings: .* with a finding that rejects"),
    "many are unstable": (
        lambda trials: [replace(trials[0], status="unstable"), *trials[1:]],
        "steady: 12.5 % of the trials of eager"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TRIALS)
def test_bad_trials_are_found(name: str, tmp_path: Path) -> None:
    change, sentence = BAD_TRIALS[name]
    _, entry, trials = make(tmp_path)
    with pytest.raises(AssertionError, match=sentence):
        assert "; ".join(failed(check_run(entry.info, change(trials), SUITE))) == ""


BAD_INFOS: dict[str, tuple[Callable[[BenchRunInfo], BenchRunInfo], str]] = {
    "another judge": (
        lambda info: replace(info, environment=replace(info.environment, passnet="0.0.9")),
        "judge: judged by passnet 0.0.9"),
    "another suite": (lambda info: replace(info, suite_hash="0" * 64), "suite: "),
    "no sandbox": (
        lambda info: replace(info, settings=replace(info.settings, sandbox="none")),
        "settings: confine candidate code"),
    "nothing timed": (
        lambda info: replace(info, settings=replace(
            info.settings, judge=replace(info.settings.judge, timing=None))),
        "settings: measure each candidate"),
    "noise allowed": (
        lambda info: replace(info, settings=replace(
            info.settings, judge=replace(info.settings.judge, self_tolerance=1.0))),
        "settings: a self-tolerance"),
    "checks of the judge are off": (
        lambda info: replace(info, settings=replace(info.settings, judge=replace(
            info.settings.judge, input_seed=7, num_structured=0, timing=TimingPlan(
                0.8, min_rounds=1, look_share=0.0)))),
        "settings: leave these settings of the judge as they are: input_seed (7), num_structured "
        "(0), min_rounds (1), look_share (0.0)"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_INFOS)
def test_bad_settings_are_found(name: str, tmp_path: Path) -> None:
    change, sentence = BAD_INFOS[name]
    _, entry, trials = make(tmp_path)
    found = failed(check_run(change(entry.info), trials, SUITE))
    assert any(text.startswith(sentence) for text in found), found


def test_what_is_wrong_at_every_level_needs_no_speedup(tmp_path: Path) -> None:
    _, entry, trials = make(tmp_path)
    wrong = replace(trials[0], smallest_t=None, speedup=None, speedup_low=None, speedup_high=None)
    assert failed(check_run(entry.info, [wrong, *trials[1:]], SUITE)) == []


def test_a_cheat_may_have_raw_times_below_those_without_calls(tmp_path: Path) -> None:
    _, entry, trials = make(tmp_path)
    rounds = tuple((-1e-5, 1e-5) for _ in trials[0].reference_rounds_ms)
    cheat = Trial(
        *(trials[0].task, trials[0].graph, trials[0].candidate, "cheat"),
        findings=REJECTED,
        reference_ms=trials[0].reference_ms,
        candidate_ms=-1e-5,
        reference_rounds_ms=trials[0].reference_rounds_ms,
        candidate_rounds_ms=rounds,
    )
    assert failed(check_run(entry.info, [cheat, *trials[1:]], SUITE)) == []


def test_changed_sources_scores_and_files_are_found(tmp_path: Path) -> None:
    folder, entry, trials = make(tmp_path)
    scores = {name: replace(score, score=9.0) for name, score in entry.scores.items() if score}
    [text] = failed(check_entry(folder, replace(entry, scores=scores), trials, SUITE))
    assert text.startswith("scores: eager claims AS 9.0")
    source = folder / "passes" / "0" / "Fuse.py"
    source.write_text(source.read_text() + "# more\n")
    [text] = failed(check_entry(folder, entry, trials, SUITE))
    assert text == "sources: the files of first are not those that were judged"
    TRIALS.write(folder / "trials.parquet", [faster(trials[0]), *trials[1:]])
    with pytest.raises(InputError, match=r"trials\.parquet: not the file that entry\.json"):
        read_entry(folder)


def test_a_run_of_some_tasks_is_told_to_be_no_entry(tmp_path: Path) -> None:
    whole = load_suite("demo-small")
    part = only_tasks(whole, [task.name for task in whole.tasks][:2])
    run = write_run(tmp_path / "run", part, write_hostile_passes(tmp_path / "mine"))
    words = ["add", run, "--name", "a", "--sender", "b", "--leaderboard", tmp_path / "board"]
    done = CliRunner().invoke(main, ["leaderboard", *map(str, words)])
    text = "The run judged 2 of the 14 tasks of demo-small; run it without --task"
    assert done.exit_code == 2 and text in done.stderr, done.output


def test_an_entry_is_judged_again_by_the_settings_of_its_board() -> None:
    given = RunSettings(
        JudgeSettings("cpu", 3, 7, 0, TimingPlan(1.5, max_rounds=1), rules="strict", max_repeats=9),
        2, "bubblewrap", "suite",
    )  # fmt: skip
    own = JudgeSettings("cpu", timing=TimingPlan(1.5), rules="strict")
    assert board_settings(given) == RunSettings(own, 2, "bubblewrap", "suite")


@pytest.mark.parametrize("kind", ["null", "inductor", "aoti", "eager"])
@pytest.mark.parametrize("place", ["passes", "root"])
def test_no_baseline_of_an_entry_brings_code(kind: str, place: str, tmp_path: Path) -> None:
    folder, _, _ = make(tmp_path)
    path = folder / ENTRY_FILE
    record = json.loads(path.read_text())
    [baseline] = [each for each in record["info"]["candidates"] if each["kind"] == "eager"]
    baseline.update({"kind": kind, place: str(tmp_path / "mine")})
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match=f"a {kind} has no passes"):
        read_entry(folder)


def test_passes_of_an_entry_are_named_by_its_own_folder_alone(tmp_path: Path) -> None:
    folder, entry, _ = make(tmp_path)
    for change in ({"passes": str(tmp_path)}, {"kind": "module"}):
        others = tuple(
            replace(each, **change) if each.has_code else each for each in entry.info.candidates
        )
        write_json(folder / ENTRY_FILE, replace(entry, info=replace(entry.info, candidates=others)))
        with pytest.raises(InputError, match="names code outside of the entry"):
            read_entry(folder)


def test_an_entry_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    make(tmp_path)
    broken = tmp_path / "board" / "broken"
    broken.mkdir()
    (broken / ENTRY_FILE).write_text("{}")
    run = passnet("leaderboard", "verify", "--leaderboard", tmp_path / "board")
    assert run.returncode == 1 and "first: " in run.stdout
    assert "broken: unreadable" in run.stdout


@pytest.mark.slow
def test_a_verification_that_cannot_be_read_does_not_hide_other_entries(tmp_path: Path) -> None:
    folder, _, _ = make(tmp_path)
    broken = folder.parent / "verified" / "first"
    broken.mkdir(parents=True)
    (broken / "verification.json").write_text("{}")
    shutil.copytree(folder, folder.parent / "second")
    record = folder.parent / "second" / ENTRY_FILE
    write_json(record, replace(read_json(record, LeaderboardEntry), name="second"))
    run = passnet("leaderboard", "verify", "--leaderboard", folder.parent, "--json")
    first, second = json.loads(run.stdout)
    assert run.returncode == 1 and "verification.json" in first["problems"][-1]
    assert (second["entry"], second["verification"]) == ("second", None)


def test_pages_show_what_no_check_derives_only_where_it_was_judged_here(tmp_path: Path) -> None:
    folder, entry, trials = make(tmp_path)
    limit = Roofline(1, 1, 0, 0, 1e9, 1e9, 1.0, 1.0)
    claimed = [replace(each, roofline=limit, candidate_cold_ms=1.0) for each in trials]
    TRIALS.write(folder / "trials.parquet", claimed)
    digest = hashlib.sha256((folder / "trials.parquet").read_bytes()).hexdigest()
    entry = replace(entry, trials_sha256=digest)
    write_json(folder / ENTRY_FILE, entry)
    [run] = read_entries(folder.parent, KnownSuites((SUITE,)))
    assert run.standing == "entry"
    assert {(each.roofline, each.candidate_cold_ms) for each in run.trials} == {(None, None)}
    write_verification(folder.parent, verification(folder, entry, trials), claimed)
    [run] = read_entries(folder.parent, KnownSuites((SUITE,)))
    assert (run.standing, {each.roofline for each in run.trials}) == ("verified", {limit})
    [board] = boards_of([run], [SUITE])
    columns = line_table(board, board_scores(board).whole, {})["columns"]
    [in_nets] = [column["values"] for column in columns if column["title"] == "in nets"]
    assert in_nets == [None, None, "1.030, 1 of 2 nets, from records"]


def test_passes_of_an_entry_lie_in_it(tmp_path: Path) -> None:
    folder, entry, _ = make(tmp_path)
    elsewhere = tuple(
        replace(each, root="passes/../../..") if each.root else each
        for each in entry.info.candidates
    )
    write_json(folder / ENTRY_FILE, replace(entry, info=replace(entry.info, candidates=elsewhere)))
    with pytest.raises(InputError, match="has its passes in 'passes/../../..'"):
        read_entry(folder)


def test_what_could_not_be_timed_has_no_score(tmp_path: Path) -> None:
    _, _, trials = make(tmp_path)
    unstable = [replace(t, status="unstable") if t.candidate == "eager" else t for t in trials]
    found = claimed_scores(unstable)
    assert found["eager"] is None and found["first"] == claimed_scores(trials)["first"]
    assert claimed_scores([t for t in unstable if t.candidate == "eager"]) == {"eager": None}
    assert claimed_scores([]) == {}


def verification(folder: Path, entry: LeaderboardEntry, trials: list[Trial]) -> EntryVerification:
    from passnet_site.leaderboard.entry import entry_hash

    return EntryVerification(
        SCHEMA_VERSION,
        entry.name,
        entry_hash(folder),
        entry.info.settings,
        entry.info.environment,
        True,
        compare(entry, trials, trials, True),
    )


def test_what_was_judged_again_holds_for_the_files_that_were(tmp_path: Path) -> None:
    folder, entry, trials = make(tmp_path)
    board = folder.parent
    assert read_verification(board, "first") is None
    write_verification(board, verification(folder, entry, trials), trials)
    found = read_verification(board, "first")
    assert found is not None and found[0].is_confirmed and found[1] == trials
    assert [path.name for path in entry_folders(board)] == ["first"]
    (folder / "passes" / "0" / "more.py").write_text("x = 1\n")
    assert read_verification(board, "first") is None


def test_an_entry_that_does_otherwise_here_is_not_confirmed(tmp_path: Path) -> None:
    _, entry, trials = make(tmp_path)
    slower = [
        replace(t, speedup=t.speedup and t.speedup / 20, speedup_low=t.speedup_low and
                t.speedup_low / 20, speedup_high=t.speedup_high and t.speedup_high / 20)
        for t in trials
    ]  # fmt: skip
    assert not any(each.is_confirmed for each in compare(entry, trials, slower, True))
    assert all(each.is_confirmed for each in compare(entry, trials, slower, False))
    wrong = [replace(t, smallest_t=None) if t.candidate == "eager" else t for t in trials]
    states = {each.candidate: each for each in compare(entry, trials, wrong, False)}
    assert not states["eager"].is_confirmed and states["first"].is_confirmed
    assert not any(each.is_confirmed for each in compare(entry, trials, [trials[0]], True)[1:])


@pytest.mark.slow
def test_a_run_is_added_checked_and_judged_again(tmp_path: Path) -> None:
    suite = write_small_suite(tmp_path / "small.parquet", 2)
    passes = write_passes(tmp_path / "mine", GOOD)
    board = ("--leaderboard", tmp_path / "board", "--suite", suite)
    run = passnet("bench", "run", "--suite", suite, "--candidate", "eager", "--candidate", passes,
                  "--self-tolerance", "0.1", "--seconds", "0.4", "--out", tmp_path / "run",
                  timeout_s=600)  # fmt: skip
    assert run.returncode == 0, run.stderr
    added = passnet(
        "leaderboard", "add", tmp_path / "run", "--name", "mine", "--sender", "me", *board
    )
    if "could not be timed" in added.stderr:
        pytest.skip("the machine is too busy to time anything")
    assert added.returncode == 0, added.stderr
    checked = passnet("leaderboard", "verify", *board)
    assert checked.returncode == 0 and "mine: from records" in checked.stdout, checked.stdout
    again = passnet("leaderboard", "verify", "--rejudge", "--work", tmp_path / "work", *board,
                    timeout_s=600)  # fmt: skip
    if again.returncode:
        assert "apart" in again.stdout or "could not be timed" in again.stdout, again.stderr
    else:
        assert "mine: verified" in again.stdout
    record = read_json(tmp_path / "board/verified/mine/verification.json", EntryVerification)
    assert {each.num_compared for each in record.candidates} <= {2, 3}
    twice = passnet(
        "leaderboard", "add", tmp_path / "run", "--name", "mine", "--sender", "me", *board
    )
    assert twice.returncode == 2 and "already exists" in twice.stderr
