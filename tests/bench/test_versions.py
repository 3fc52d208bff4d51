"""A run goes on with another version of its suite, with the trials of unchanged graphs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.bench.run import run_suite
from passnet.bench.run_record import run_folder, suite_of_run, unchanged_graphs
from passnet.core.jobs.run_plan import RunPlan
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.settings import RunSettings
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import Suite, load_suite, make_suite, suite_of_hash
from passnet_audit.suites.domains import declare
from passnet_site.pages.measured import KnownSuites
from tests.bench.test_parts import SETTINGS, ToldJudges, entries
from tests.conftest import ROOT

NAME = "passbench-v1-single-small"
BEFORE, NOW = load_suite(f"{NAME}@1.0"), load_suite(NAME)


def contents(suite: Suite) -> set[tuple[str, str | None]]:
    return {(graph.name, fingerprints(graph.graph).full) for graph in suite.graphs}


CHANGED = {name for name, _ in contents(NOW) - contents(BEFORE)}
KEPT = {name for name, _ in contents(NOW) & contents(BEFORE)}


def run(suite: Suite, out: Path, settings: RunSettings = SETTINGS) -> list[str]:
    """Go on with a run, and return the graphs that were judged."""
    judges = ToldJudges()
    plan = RunPlan(resume=True)
    run_suite(suite, entries(suite, "eager"), settings, out, plan, judges=judges.judges)
    return [graph for graph, _ in judges.asked]


def test_trials_of_unchanged_graphs_are_kept_and_others_are_dropped(tmp_path: Path) -> None:
    assert len(run(BEFORE, tmp_path)) == len(BEFORE.graphs)
    assert CHANGED and set(run(NOW, tmp_path)) == CHANGED
    folder = run_folder(tmp_path)
    assert folder.read_info().suite_hash == NOW.content_hash
    assert {graph for graph, _ in folder.records()} == CHANGED | KEPT
    assert len(folder.records_path.read_text().splitlines()) == len(NOW.graphs)
    assert run(NOW, tmp_path) == []


def test_content_decides_which_graphs_are_unchanged_and_not_the_name() -> None:
    first, *rest = NOW.graphs[:5]
    other = replace(first, graph=declare(first.graph, {first.graph.tensors[0].name: "positive"}))
    edited = make_suite(NAME, [other, *rest[1:]])
    assert unchanged_graphs(NOW, edited) == {graph.name for graph in rest[1:]}
    drawn = replace(first.graph, tensors=tuple(replace(t, mean=9.0) for t in first.graph.tensors))
    redrawn = make_suite(NAME, [replace(first, graph=drawn), *rest])
    assert unchanged_graphs(NOW, redrawn) == {graph.name for graph in rest}, "of other inputs"


def test_a_run_goes_on_with_no_suite_that_is_unknown_or_with_other_settings(tmp_path: Path) -> None:
    unknown = make_suite(NAME, NOW.graphs[:5])
    run(unknown, tmp_path / "unknown")
    with pytest.raises(InputError, match="another version or other tasks of suite"):
        run(NOW, tmp_path / "unknown")
    run(BEFORE, tmp_path / "before")
    with pytest.raises(InputError, match="other settings"):
        run(NOW, tmp_path / "before", replace(SETTINGS, num_threads=2))
    assert len(run_folder(tmp_path / "before").records()) == len(BEFORE.graphs)


@pytest.mark.slow
def test_recorded_runs_open_with_the_version_that_they_were_measured_on() -> None:
    known = KnownSuites()
    runs = sorted((ROOT / "baselines").glob("passbench-v1-*/run.json"))
    assert runs
    for folder in (path.parent for path in runs):
        suite, info = suite_of_run(folder), run_folder(folder).read_info()
        assert suite is not None and known.of_hash(info.suite_hash) == suite
        page = (folder / "README.md").read_text(encoding="utf-8")
        assert f"version {suite.version} of the suite" in page, folder
    assert suite_of_hash(NAME, "0" * 64) is None


@pytest.mark.slow
def test_the_changelog_has_the_hash_of_each_version() -> None:
    text = (ROOT / "suites" / "CHANGELOG.md").read_text(encoding="utf-8")
    pattern = r"^\| `(\S+)` \| (\S+) \| [\d,]+ \| [\d,]+ \| `(\w{64})` \|$"
    rows = re.findall(pattern, text, re.MULTILINE)
    listed = {(name, version): content_hash for name, version, content_hash in rows}
    shipped = [load_suite(name) for name in shipped_suites() if "-v1" in name]
    assert listed == {(suite.name, suite.version): suite.content_hash for suite in shipped}
