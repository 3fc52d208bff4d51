import json

import pytest

from passnet.core.jobs.process import JobLimits
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import read_lines
from passnet.data.dataset.store import (
    Occurrence,
    Provenance,
    SubgraphRow,
    row_of_graph,
    write_dataset,
)
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints
from passnet.judge.suite.suite import load_suite
from passnet_audit.suites.assembly import (
    RECORDS_FILE,
    AdmissionRecord,
    AssemblyPlan,
    AssemblyWork,
    admit,
    assemble,
)
from passnet_audit.suites.selection import SelectionPlan
from tests.bench.runs import passnet
from tests.data.mine.test_fusion import graph

LIMITS = JobLimits(60.0, 2048)


def row(body: str, net: str = "timm/a", **shapes: tuple[int, ...]) -> SubgraphRow:
    target = graph(body, **shapes)
    occurrence = Occurrence("g", 3, 3 + len(target.program.ops))
    provenance = Provenance(("fusible",), "", "", "cv", (net,), 1, 1, (occurrence,))
    return row_of_graph(target, provenance, "test")


ADD_RELU = "a = x + y\nb = torch.relu(a)\nreturn (b,)\n"
GOOD = [
    row(ADD_RELU, x=(8, 16), y=(8, 16)),
    row(ADD_RELU, "timm/b", x=(8, 256), y=(8, 256)),
    row("a = x * y\nb = torch.tanh(a)\nreturn (b,)\n", x=(8, 16), y=(8, 16)),
]
DEGENERATE = row("a = x * 1.0\nb = a + 1e-9\nreturn (b,)\n", x=(8, 16))
HEAVY = row("a = x @ x\nb = torch.relu(a)\nreturn (b,)\n", x=(1024, 1024))


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dataset")
    write_dataset(folder, [*GOOD, DEGENERATE, HEAVY], {"timm": ["1.0", "1.1"]})
    return folder


def plan(num_tasks: int) -> AssemblyPlan:
    return AssemblyPlan(
        SelectionPlan(num_tasks=num_tasks), max_gflops=1.0, limits=LIMITS, compiles=False
    )


@pytest.mark.slow
def test_a_suite_holds_what_is_admitted_and_says_where_it_is_from(dataset, tmp_path):
    path = tmp_path / "made.parquet"
    assembled = assemble(dataset, plan(2), AssemblyWork(path, tmp_path / "work"))
    suite = load_suite(str(path))
    assert suite == assembled.suite
    assert {len(task.graphs) for task in suite.tasks} == {1, 2}
    source = suite.tasks[0].graphs[0].source
    assert source is not None
    assert (source.library, source.version, source.start, source.domain) == ("timm", "1.1", 3, "cv")
    full = {fingerprints(graph.graph).full for task in suite.tasks for graph in task.graphs}
    assert full == {row.full for row in GOOD}
    admissions = {record.full: record for record in assembled.admissions}
    assert not admissions[DEGENERATE.full].is_admitted and admissions[DEGENERATE.full].wrong
    assert admissions[HEAVY.full].error == "too much work"


@pytest.mark.slow
def test_more_tasks_than_are_admitted_are_refused_and_no_suite_is_left(dataset, tmp_path):
    path = tmp_path / "made.parquet"
    with pytest.raises(InputError, match="2 tasks fit the plan, and 4 are wanted"):
        assemble(dataset, plan(4), AssemblyWork(path, tmp_path / "work"))
    assert not path.exists()
    assert len(list(read_lines(tmp_path / "work" / RECORDS_FILE, AdmissionRecord))) == 5


@pytest.mark.slow
def test_a_plan_that_does_not_fit_leaves_no_folder_behind(dataset, tmp_path):
    work = AssemblyWork(tmp_path / "many.parquet", tmp_path / "work")
    with pytest.raises(InputError, match="and 9 are wanted"):
        assemble(dataset, plan(9), work)
    assert not work.folder.exists()


@pytest.mark.slow
def test_admissions_are_not_made_again(dataset, tmp_path):
    first = assemble(dataset, plan(2), AssemblyWork(tmp_path / "one.parquet", tmp_path / "work"))
    lines = (tmp_path / "work" / RECORDS_FILE).read_text().splitlines()

    def none(*_):
        raise AssertionError("all are known")

    with pytest.raises(InputError, match="--resume"):
        assemble(dataset, plan(2), AssemblyWork(tmp_path / "two.parquet", tmp_path / "work"))
    run = RunPlan(resume=True, executor=none)
    work = AssemblyWork(tmp_path / "two.parquet", tmp_path / "work", run)
    again = assemble(dataset, plan(2), work)
    assert again.suite.content_hash == first.suite.content_hash
    assert (tmp_path / "work" / RECORDS_FILE).read_text().splitlines() == lines


def test_a_subgraph_that_does_not_run_is_an_error_and_not_a_crash():
    wrong = row("a = torch.reshape(x, (7, 7))\nb = a + 1\nreturn (b,)\n", x=(8, 16))
    record = admit(wrong, 1.0, compiles=False)
    assert record.error is not None and not record.is_admitted


@pytest.mark.slow
def test_the_command_makes_a_suite_and_counts(dataset, tmp_path):
    out = tmp_path / "made.parquet"
    args = ("suite", "make", dataset, "--out", out, "--tasks", "2", "--max-gflops", "1")
    process = passnet(*args, "--jobs", "2", "--quick", "--json")
    assert process.returncode == 0, process.stderr
    facts = json.loads(process.stdout)
    assert (facts["tasks"], facts["graphs"], facts["nets"]) == (2, 3, 2)
    assert (facts["degenerate"], facts["not_run"]) == (1, 1)
    shown = passnet("suite", "show", out, "--svg", tmp_path / "svg")
    assert shown.returncode == 0 and "torch.tanh" in shown.stdout
    assert len(list((tmp_path / "svg").glob("*.svg"))) == 3
    bad = passnet("suite", "make", dataset, "--out", tmp_path / "x.txt")
    assert bad.returncode != 0 and "is a .parquet file" in bad.stderr


@pytest.mark.slow
def test_ops_that_compute_nothing_are_not_tried_again_and_again(tmp_path):
    body = "a = x.contiguous()\nreturn (a,)\n"
    idle = [row(body, x=(2, 16**power)) for power in range(1, 5)]
    write_dataset(tmp_path, [GOOD[0], *idle], {})
    assembly_plan = AssemblyPlan(
        SelectionPlan(num_tasks=2, max_graphs=1), 1.0, LIMITS, enough_tries=2, compiles=False
    )
    work = tmp_path / "work"
    with pytest.raises(InputError, match="1 tasks"):
        assemble(tmp_path, assembly_plan, AssemblyWork(tmp_path / "made.parquet", work))
    tried = [
        record.wrong
        for record in read_lines(work / RECORDS_FILE, AdmissionRecord)
        if record.computes_nothing
    ]
    assert len(tried) == 2
