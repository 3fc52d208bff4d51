"""`passnet suite check` tries each graph in its own process, resumes, and keeps what is sound."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from passnet.core.jobs.run_plan import RunPlan
from passnet.errors import InputError, SuiteError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph
from passnet.judge.suite.suite import Suite, load_suite, make_suite, write_suite
from passnet.judge.task import TaskGraph
from passnet_audit.suites.admission import AdmissionPlan
from passnet_audit.suites.check import check_suite, sound_version
from passnet_audit.suites.domains import declare
from tests.judge.suite.test_soundness import QUICK, ROOT_OF_A_MEAN, graph_of


def named(task: str, graph: Graph, stem: str) -> TaskGraph:
    return TaskGraph(task, f"{stem}{str(fingerprints(graph).full)[:8]}", graph)


SOUND = named("sum", graph_of("a = x + y", "v = torch.tanh(a)"), "sum-net-")
ROOT = named("root", ROOT_OF_A_MEAN, "root-net-")
LOST = TaskGraph("lost", "lost", graph_of("a = x - x", "b = a - 1.0", "v = torch.sqrt(b)"))
ZERO = TaskGraph("zero", "zero", graph_of("a = x * 0.0", "v = torch.sqrt(a)"))
MIXED = make_suite("mixed", [SOUND, ROOT, LOST, ZERO])


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.mark.slow
def test_a_suite_is_checked_once_and_its_sound_version_declares_domains(work: Path) -> None:
    announced: list[str] = []
    plan = RunPlan(num_workers=1)
    admissions = check_suite(MIXED, QUICK, work, plan, announced.append)
    assert announced == [graph.name for graph in MIXED.graphs] == [a.graph for a in admissions]
    assert [admission.is_admitted for admission in admissions] == [True, True, False, False]
    assert admissions[1].domains == {"x": "positive"}

    sound = sound_version(MIXED, admissions, "mixed", "1.1")
    assert sound.content_hash != MIXED.content_hash and sound.version == "1.1"
    first, second = sound.graphs
    assert first == SOUND
    assert second.graph == declare(ROOT_OF_A_MEAN, {"x": "positive"})
    assert second.name == named("root", second.graph, "root-net-").name != ROOT.name

    def none(items: Iterable[Any], *_: Any) -> Iterator[Any]:
        assert not list(items), "all are known"
        return iter(())

    again = check_suite(sound, QUICK, work, RunPlan(resume=True))
    assert [admission.texts() for admission in again] == [(), ()]
    assert check_suite(MIXED, QUICK, work, RunPlan(resume=True, executor=none)) == admissions
    with pytest.raises(InputError, match="other settings"):
        check_suite(MIXED, AdmissionPlan(), work, RunPlan(resume=True))
    with pytest.raises(InputError, match="--resume"):
        check_suite(MIXED, QUICK, work, plan)


def test_a_version_stays_with_its_file_and_a_suite_without_sound_graphs_is_none(
    tmp_path: Path,
) -> None:
    suite = make_suite("mixed", [SOUND, ROOT])
    for version in ("", "1.1"):
        write_suite(tmp_path / "mixed.parquet", replace(suite, version=version))
        assert load_suite(str(tmp_path / "mixed.parquet")) == replace(suite, version=version)
    with pytest.raises(SuiteError, match="holds no graph"):
        sound_version(Suite("none", (), ""), [], "none", "")
