"""The subgraphs of a net at another size are those of the captured graph, at the same ops."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from passnet.cli import main
from passnet.core.jobs.process import JobLimits, JobOutcome
from passnet.core.jobs.run_folder import RunFolder
from passnet.core.jobs.run_plan import RunPlan, RunShard
from passnet.core.records.serialise import decode
from passnet.core.terminal.progress import no_progress
from passnet.data.capture.recapture import recapture
from passnet.data.capture.store import GraphRow
from passnet.data.dataset.build import BuildSettings, MiningJob, build_dataset, mine
from passnet.data.dataset.build_records import SizedRecord, count_sized, read_sized_records
from passnet.data.dataset.query import Dataset
from passnet.data.dataset.resize import (
    NETS_A_TURN,
    SizeJob,
    add_sizes,
    in_turns,
    mined_part,
    resized,
    size_jobs,
    sized_part,
)
from passnet.data.dataset.stats import stats
from passnet.data.dataset.store import SUBGRAPHS, graph_of, read_dataset
from passnet.data.dataset.verification import verify
from passnet.errors import InputError
from passnet.graph.spec import TensorSpec
from passnet.pages.tables.dataset import stats_tables
from tests.data.capture import sized
from tests.data.dataset.test_build import captured, row

SETTINGS = BuildSettings(kinds=("single",), dtypes=())


def entry(name: str) -> str:
    return f"{sized.__file__}:{name}"


def row_of(name: str) -> GraphRow:
    [graph] = recapture(entry(name), {}).graphs
    return row(graph, entry(name))


def jobs_of(name: str, folder, num_sizes: int = 3) -> tuple[list[SizeJob], dict]:
    """The jobs of a net, whose graph is mined, and the mined rows by full fingerprint."""
    target = row_of(name)
    _, rows = mine(MiningJob(target, (), ("single",)))
    part = mined_part(folder, target.full)
    part.parent.mkdir(exist_ok=True)
    SUBGRAPHS.write(part, rows)
    jobs = size_jobs([target], num_sizes, folder, {})
    return list(jobs.values()), {found.full: found for found in rows}


def test_rows_at_another_size_are_cut_at_the_same_ops_and_name_what_changed_of_which_row(tmp_path):
    jobs, originals = jobs_of("words", tmp_path)
    assert [job.index for job in jobs] == [0, 1, 2]
    record, rows = resized(jobs[1])
    assert (record.size, record.axes) == ("batch=4,sequence=16", {"batch": 2, "sequence": 6})
    [outcome] = record.graphs
    assert (outcome.cause, outcome.num_rows, outcome.num_lost) == (None, len(rows), 0)
    assert {found.original for found in rows} == set(originals)
    for found in rows:
        original = originals[found.original]
        assert found.variant == record.size and found.full not in originals
        assert (found.structure, found.places) == (original.structure, original.places)
        assert (found.kinds, found.dtype) == (original.kinds, original.dtype)
    [ids] = [found for found in rows if "embedding" in found.op_sequence[0]]
    specs = {spec.dtype: spec.shape for spec in graph_of(ids).tensors}
    assert specs == {"int64": (4, 16), "float32": (50, 8)}
    assert decode(ids.tensors, tuple[TensorSpec, ...])[0].max_val is not None


def test_libraries_take_turns_with_a_few_nets_each():
    """So that what is done after some hours says how often nets of each library take a size."""
    nets = [(f"many/{number}", False) for number in range(20)] + [("few/0", False), ("few/0", True)]
    ordered = in_turns(nets)
    assert sorted(ordered) == sorted(nets)
    libraries = [net.partition("/")[0] for net, _ in ordered]
    assert libraries == ["few"] * 2 + ["many"] * 20
    assert [net for net, _ in ordered[2:]] != [f"many/{number}" for number in range(20)], "drawn"
    libraries = [net[0].partition("/")[0] for net in in_turns(nets + [("new/0", False)])]
    assert libraries == ["few"] * 2 + ["many"] * NETS_A_TURN + ["new"] + ["many"] * 12


@pytest.mark.parametrize(
    ("name", "index", "cause", "reason"),
    [
        ("fixed", 0, "refused_by_net", "too many"),
        ("branching", 2, "other_graph", "other ops"),
        ("without_batch", 0, "no_size", ""),
    ],
)
def test_what_is_not_made_has_a_cause(tmp_path, name, index, cause, reason):
    record, rows = resized(jobs_of(name, tmp_path)[0][index])
    [outcome] = record.graphs
    assert (outcome.cause, rows) == (cause, []) and reason in outcome.reason


def test_a_graph_that_takes_too_much_memory_is_not_made(tmp_path):
    jobs, _ = jobs_of("words", tmp_path)
    record, rows = resized(jobs[0], most_bytes=1000)
    assert record.graphs[0].cause == "too_large" and not rows


def test_ranges_that_are_other_ops_there_are_lost_and_not_made(tmp_path):
    [job, *_], _ = jobs_of("words", tmp_path)
    [graph] = job.graphs
    moved = [replace(found, ranges=((0, 2),)) for found in graph.subgraphs]
    record, rows = resized(replace(job, graphs=(replace(graph, subgraphs=tuple(moved)),)))
    assert not rows and record.graphs[0].num_lost == len(moved)


def test_a_net_that_is_not_there_is_a_record(tmp_path):
    [job, *_], _ = jobs_of("words", tmp_path)
    record, _ = resized(replace(job, entry=entry("nowhere")))
    assert record.graphs[0].cause == "refused_by_net" and "nowhere" in record.graphs[0].reason


def test_a_net_whose_library_is_not_here_is_tried_again(tmp_path):
    [job, *_], _ = jobs_of("words", tmp_path)
    record, _ = resized(replace(job, entry=entry("lacking")))
    assert record.graphs[0].cause == "no_library" and "no_such_library" in record.graphs[0].reason
    counts = count_sized([record])
    assert counts is not None and counts.whole.num_tried == 0
    missing = RunFolder(tmp_path, "", object, "sizes.jsonl", SizedRecord, lambda done: done.key, "")
    other, rows = resized(replace(job, index=1))
    list(missing.keep([JobOutcome(replace(record, key=job.key)), JobOutcome(other)], 0))
    part = sized_part(tmp_path, other.key)
    part.parent.mkdir()
    SUBGRAPHS.write(part, rows)
    tried: list[str] = []
    executor = lambda jobs, work, num_workers: iter(tried.extend(job.key for job in jobs) or ())  # noqa: E731
    plan = RunPlan(executor=executor)
    add_sizes(missing, [row_of("words")], 2, JobLimits(), plan, no_progress)
    assert tried == [job.key]
    part.unlink()
    add_sizes(missing, [row_of("words")], 2, JobLimits(), plan, no_progress)
    assert sorted(tried[1:]) == [job.key, other.key], "the rows of one are missing"


def test_a_net_is_made_again_where_more_of_its_graphs_are_wanted(tmp_path):
    words = row_of("words")
    first, second = words, replace(row_of("rms"), sources=(replace(words.sources[0], number=1),))
    for target in (first, second):
        _, rows = mine(MiningJob(target, (), ("single",)))
        part = mined_part(tmp_path, target.full)
        part.parent.mkdir(exist_ok=True)
        SUBGRAPHS.write(part, rows)
    [[key, _]] = size_jobs([first], 1, tmp_path, {}).items()
    assert not size_jobs([first], 1, tmp_path, {key: {first.full}})
    [[again, job]] = size_jobs([first, second], 1, tmp_path, {key: {first.full}}).items()
    assert again == key and {graph.full for graph in job.graphs} == {first.full, second.full}
    mined_part(tmp_path, second.full).unlink()
    assert not size_jobs([first, second], 1, tmp_path, {key: {first.full}}), "it has no rows"


def test_records_are_counted_by_library_and_axes_without_sizes_that_nets_do_not_have(tmp_path):
    records = [resized(job)[0] for name in ("fixed", "without_batch") for job in
               jobs_of(name, tmp_path)[0]]  # fmt: skip
    counts = count_sized(records)
    assert counts is not None and count_sized([]) is None
    assert (counts.num_nets, counts.whole.num_tried, counts.whole.num_made) == (2, 3, 1)
    assert counts.causes == {"no_size": 3, "refused_by_net": 2}
    assert counts.axes["batch"].num_rows == 1 and counts.axes["node"].num_tried == 0


@pytest.mark.parametrize("text", ["3/2", "0/2", "2", "a/b", "1/0", "-1/2"])
def test_a_part_that_there_is_not_is_refused_with_an_example(tmp_path, text):
    words = ["dataset", "build", str(tmp_path), "--out", str(tmp_path / "out"), "--shard", text]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2 and "such as 2/8" in result.output


@pytest.mark.slow
def test_a_build_has_sizes_in_parts_after_kills_and_later_with_the_same_bytes(tmp_path):
    source = captured(tmp_path / "in", [row_of("words"), row_of("fixed"), row_of("rms")])
    sized_too = replace(SETTINGS, num_sizes=2)
    _, records, whole = build_dataset([source], tmp_path / "one", sized_too)
    assert {len(record.graphs) for record in records} == {1} and len(records) == 6
    verification = verify(tmp_path / "one", num_runs=12)
    assert verification.ok and not verification.num_alone and verification.num_run == 12
    with Dataset(tmp_path / "one") as dataset:
        assert dataset.count("variant like '%batch=16%'") > 0
        tables = {table.title for table in stats_tables(stats(dataset))}
    assert {"Other sizes by library", "Other sizes by axes"} <= tables

    # sizes are added to a dataset that was built without, and a kill loses the last record alone
    build_dataset([source], tmp_path / "two", SETTINGS)
    path = tmp_path / "two" / "sizes.jsonl"
    build_dataset([source], tmp_path / "two", sized_too, RunPlan(resume=True))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]) + lines[-2][:30])
    assert len(read_sized_records(tmp_path / "two")) == 4
    assert build_dataset([source], tmp_path / "two", sized_too, RunPlan(resume=True))[2] == whole
    with pytest.raises(InputError, match="--num-sizes 2"):
        build_dataset([source], tmp_path / "two", SETTINGS, RunPlan(resume=True))

    # parts are put together
    folders = [tmp_path / f"part-{number}" for number in (1, 2)]
    for number, folder in enumerate(folders, start=1):
        build_dataset([source], folder, sized_too, RunPlan(shard=RunShard(number, 2)))
    num_mined = [len((folder / "graphs.jsonl").read_bytes().splitlines()) for folder in folders]
    assert sum(num_mined) == 3
    assert build_dataset([source], tmp_path / "all", sized_too, RunPlan(parts=folders))[2] == whole
    with pytest.raises(InputError, match="other settings"):
        other = replace(sized_too, kinds=("classical",))
        build_dataset([source], tmp_path / "no", other, RunPlan(parts=folders))
    assert not (tmp_path / "no").exists()
    for file in read_dataset(tmp_path / "all")[1]:
        assert file.read_bytes() == (tmp_path / "one" / file.name).read_bytes()
