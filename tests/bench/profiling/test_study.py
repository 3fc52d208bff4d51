import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from passnet.bench.environment import describe_environment
from passnet.bench.profiling.record import (
    ProfileInfo,
    ProfileRecord,
    ProfileSettings,
    ProfileSubject,
)
from passnet.bench.profiling.run import (
    RUN_FILE,
    profile_folder,
    profile_isolated,
    profile_subjects,
    read_profiles,
)
from passnet.bench.profiling.study import slow_suite, study
from passnet.cli.commands import main
from passnet.core.jobs.process import Job, JobEnd, JobOutcome, JobResult
from passnet.core.jobs.run_plan import RunPlan, RunShard
from passnet.core.records.serialise import decode, encode, write_json
from passnet.errors import InputError
from passnet.judge.suite.suite import load_suite
from passnet.pages.figures.profile_page import draw_study, study_page
from passnet.pages.tables.profile_tables import study_tables
from passnet_site.pages.build import build_site, read_parts
from tests.bench.profiling.records import LOST, SLOW_KERNELS, UNSTABLE, WON

OUT = "out of memory"
RECORDS = [LOST, SLOW_KERNELS, WON, UNSTABLE]


def test_slower_calls_are_told_apart_by_what_makes_them_slow() -> None:
    found = study(RECORDS)
    assert found.slower.value == pytest.approx(2 / 3)
    assert found.by_dispatch.value == pytest.approx(1 / 2)
    assert found.strictly_slower.value == pytest.approx(1 / 3)
    assert found.little_gain.value == pytest.approx(1 / 3)
    assert found.by_dispatch_at_least.value == pytest.approx(1 / 2)
    assert found.slower_weighted.value == pytest.approx(4 / 5)
    assert found.slower_direct.value == pytest.approx(1 / 3)
    assert found.by_dynamo.value == pytest.approx(1 / 2)
    assert found.geomean_direct == pytest.approx((1 * 0.5 * 5) ** (1 / 3))


def test_what_is_unstable_is_counted_by_cause_and_in_no_share() -> None:
    found = study(RECORDS)
    assert (found.num_items, found.num_measured) == (4, 3)
    assert found.left_out == {"the interval is wide": 1}
    with pytest.raises(InputError, match="no item was measured"):
        study([UNSTABLE])


@pytest.mark.parametrize("field", ["parts", "speedup", "eager_ms", "compiled_ms"])
def test_a_profile_that_is_ok_has_its_times_and_parts(field: str) -> None:
    with pytest.raises(InputError, match="is ok, but lacks times, parts or a speedup"):
        replace(LOST, **{field: None})
    text = json.loads(encode(LOST)) | {field: None}
    with pytest.raises(InputError, match="lacks times, parts or a speedup"):
        decode(json.dumps(text), ProfileRecord)


def test_groups_hold_each_item_once() -> None:
    for groups in study(RECORDS).groups.values():
        assert sum(group.num_items for group in groups) == 3
    [few, many] = study(RECORDS).groups["ops"]
    assert (few.num_items, few.by_dispatch, many.by_dispatch) == (2, 1.0, 0.0)


def test_the_sequences_that_lose_most_come_first() -> None:
    sequences = study([LOST, SLOW_KERNELS]).sequences
    assert [each.names for each in sequences] == [("slow",), ("lost",)]
    assert sequences[0].lost_ms == pytest.approx(0.037)


def test_the_page_and_the_figure_say_what_the_study_says(tmp_path: Path) -> None:
    found = study(RECORDS)
    page = study_page(found, [], "study.svg")
    assert "| slower from end to end than eager torch | 66.7 |" in page
    assert "published" in page and "![" in page
    draw_study(found, tmp_path / "study.svg")
    assert (tmp_path / "study.svg").read_text().startswith("<?xml")
    assert all(len(row) == len(table.heads) for table in study_tables(found) for row in table.rows)


def test_profiles_become_a_page_of_a_site(tmp_path: Path) -> None:
    run = write_run(tmp_path / "mine", RECORDS)
    parts = read_parts([run], None, [], None)
    build_site(parts, tmp_path / "site", "Site")
    assert sorted(path.name for path in run.iterdir()) == ["profile.json", "profiles.jsonl"]
    page = parts.studies[0].page
    assert "66.7 % of 3 subgraphs are slower" in page.finding
    assert "33.3 % when their compiled graph is called directly" in page.finding
    assert [table.title for table in page.tables] == [t.title for t in study_tables(study(RECORDS))]
    [shown] = [
        path for path in (tmp_path / "site" / "studies").glob("*.html") if path.name != "index.html"
    ]
    assert "66.7 % of 3 subgraphs are slower" in shown.read_text()


def write_run(folder: Path, records) -> Path:
    run = profile_folder(folder)
    folder.mkdir()
    info = ProfileInfo(1, ProfileSettings(), "", len(records), describe_environment())
    write_json(folder / run.info_file, info)
    with run.recorder(0) as record:
        for each in records:
            record(each)
    return folder


def test_runs_are_shown_together_and_a_measured_item_counts(tmp_path: Path) -> None:
    first = write_run(tmp_path / "first", [LOST, UNSTABLE])
    again = write_run(tmp_path / "again", [WON, UNSTABLE])
    assert {each.name: each.status for each in read_profiles([first, again])} == {
        "lost": "ok",
        "won": "ok",
        "unstable": "unstable",
    }
    done = CliRunner().invoke(main, ["profile", str(first), str(again), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["num_measured"] == 2
    done = CliRunner().invoke(main, ["profile", str(first), "--page", str(tmp_path / "page.md")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "page.md").read_text().startswith("# Where torch.compile loses")


def test_a_run_without_a_measurement_is_shown_as_json_and_exits_with_1(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, ["profile", str(write_run(tmp_path / "a", [UNSTABLE])), "--json"]
    )
    shown = json.loads(done.stdout)
    assert (done.exit_code, shown["num_measured"], len(shown["items"])) == (1, 0, 1)


def test_parts_are_put_together_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    known = {record.name: record for record in (LOST, WON, UNSTABLE)}
    items = [ProfileSubject(name, "subgraph") for name in known]
    asked: list[str] = []

    def told(subjects, work, num_workers):  # noqa: ANN001, ANN202 (an executor)
        asked.extend(subject.name for subject in subjects)
        return iter([JobOutcome(known[subject.name]) for subject in subjects])

    parts = [tmp_path / "one", tmp_path / "two"]
    for number, part in enumerate(parts, 1):
        profile_subjects(
            items, ProfileSettings(), part, RunPlan(executor=told, shard=RunShard(number, 2))
        )
    assert sorted(asked) == sorted(known)
    asked.clear()
    whole = profile_subjects(
        items, ProfileSettings(), tmp_path / "all", RunPlan(executor=told, parts=parts)
    )
    assert {record.name: record for record in whole} == known
    assert profile_folder(tmp_path / "all").records() == known
    assert not asked
    profile_subjects(
        items,
        ProfileSettings(),
        tmp_path / "all",
        RunPlan(executor=told, resume=True, retry=True, parts=parts),
    )
    assert asked == ["unstable"]
    with pytest.raises(InputError, match="no part of this run"):
        profile_subjects(
            items, ProfileSettings(seed=1), tmp_path / "b", RunPlan(executor=told, parts=parts)
        )


def test_other_content_of_an_item_does_not_go_on(tmp_path: Path) -> None:
    def told(subjects, work, num_workers):  # noqa: ANN001, ANN202 (an executor)
        return iter([JobOutcome(replace(LOST, name=subject.name)) for subject in subjects])

    net = tmp_path / "net.py"
    net.write_text("one")
    own = ProfileSubject(f"{net}:make", "net")
    graph = ProfileSubject("lost", "subgraph", program="one")
    out, plan = tmp_path / "run", RunPlan(executor=told, resume=True)
    profile_subjects([graph, own], ProfileSettings(), out, plan)
    assert len(profile_subjects([own, graph], ProfileSettings(), out, plan)) == 2
    for other in (replace(graph, program="other"), replace(graph, weight=2.0)):
        with pytest.raises(InputError, match="run: profiles other items, or other content"):
            profile_subjects([other, own], ProfileSettings(), out, plan)
    net.write_text("other")
    with pytest.raises(InputError, match="run: profiles other items, or other content"):
        profile_subjects([graph, own], ProfileSettings(), out, plan)


@pytest.mark.parametrize("fact", [("cpu", "another"), ("torch", "2.0"), ("passnet", "0")])
def test_profiles_of_another_machine_do_not_go_on_here_and_are_no_part(
    fact: tuple[str, str], tmp_path: Path
) -> None:
    items, out = [ProfileSubject("lost", "subgraph")], tmp_path / "there"

    def told(subjects, work, num_workers):  # noqa: ANN001, ANN202 (an executor)
        return iter([JobOutcome(LOST) for _ in subjects])

    profile_subjects(items, ProfileSettings(), out, RunPlan(executor=told))
    info = profile_folder(out).read_info()
    name, value = fact
    there = replace(info.environment, **{name: value})
    write_json(out / RUN_FILE, replace(info, environment=there))
    plans = {"there": RunPlan(executor=told, resume=True), "all": RunPlan(parts=(out,))}
    for folder, plan in plans.items():
        with pytest.raises(InputError, match=f"there: was measured with {name} {value}, and here"):
            profile_subjects(items, ProfileSettings(), tmp_path / folder, plan)


@pytest.mark.parametrize(
    ("log", "is_late", "cause"),
    [
        ("required rank 4 tensor to use channels_last memory_format", False, "crash"),
        ("illegal memory access", False, "crash"),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate", False, OUT),
        ("terminate called after throwing an instance of 'std::bad_alloc'", False, OUT),
        ("MemoryError", False, OUT),
        ("torch.OutOfMemoryError: CUDA out of memory", False, OUT),
        ("MemoryError", True, "time-out"),
    ],
)
def test_a_process_is_out_of_memory_only_if_it_says_so(log: str, is_late: bool, cause: str) -> None:
    class Runner:
        """A runner whose jobs all end like this."""

        def run(self, job: Job) -> JobResult:
            return JobResult(job, JobEnd(None, 11, is_late, 1.0, 10.0), None, None, log)

    runner: Any = Runner()
    outcome = profile_isolated(runner, ProfileSubject("a", "net"), ProfileSettings())
    assert outcome.record.cause == cause


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing-here"], "cannot read|holds no profiles"),
        (["demo", "--out", "x", "--shard", "3/2"], "--shard 3/2: give two numbers"),
        (["demo", "--make-suite", "x.parquet"], "needs the source of the profiles"),
        (["x", "--seed", "1", "--limit", "3", "--resume"], "--limit, --resume, --seed: goes with"),
        (["demo", "--out", "x", "--tasks", "3"], "--tasks goes with --make-suite"),
        (["demo", "demo-small", "--out", "x", "--limit", "1"], "fewer than the 2 sources"),
    ],
)
def test_a_wrong_word_ends_in_one_sentence(words: list[str], says: str, tmp_path: Path) -> None:
    import re

    with CliRunner().isolated_filesystem(tmp_path):
        done = CliRunner().invoke(main, ["profile", *words])
    assert done.exit_code == 2
    assert re.search(says, done.output)
    assert "Traceback" not in done.output


def test_the_op_sequences_that_lose_become_a_suite() -> None:
    from passnet.core.records.serialise import encode
    from passnet.graph.canonical import op_sequence
    from passnet.graph.text.render import render_program

    graph = load_suite("demo").graphs[0].graph
    ops = op_sequence(graph.program)
    text, tensors = render_program(graph.program), encode(graph.tensors).decode()
    item = ProfileSubject("lost", "subgraph", program=text, tensors=tensors, ops=ops)
    [sequence] = study([replace(LOST, ops=ops)]).sequences
    suite = slow_suite("losers", [sequence], {"lost": item})
    assert [task.ops for task in suite.tasks] == [ops]
    with pytest.raises(InputError, match="no suite to make"):
        slow_suite("losers", [], {})
