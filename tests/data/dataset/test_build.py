"""From captured graphs to a dataset: every subgraph once, with its places; resumable."""

import shutil
from dataclasses import replace
from functools import reduce
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from passnet.core.jobs.process import JobOutcome
from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import encode
from passnet.data.capture.store import GraphRow, GraphSource, write_set
from passnet.data.dataset.build import (
    BuildSettings,
    MiningJob,
    build_dataset,
    mine,
)
from passnet.data.dataset.build_records import SizedGraph, SizedRecord, read_mined_records
from passnet.data.dataset.resize import SizeJob
from passnet.data.dataset.store import (
    SUBGRAPHS,
    Occurrence,
    SubgraphRow,
    merge_subgraphs,
    read_dataset,
    union,
)
from passnet.data.mine.dtypes import DTYPES
from passnet.data.mine.folding import FoldingPlan
from passnet.data.mine.subgraphs import SUBGRAPH_KINDS
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.text.render import render_program
from tests.bench.runs import passnet
from tests.data.dataset.rows import ONE, OTHER, TANH, row_of_one_place
from tests.data.mine.test_fusion import graph
from tests.graph.programs import graph_of

BLOCK = "a{k} = torch.matmul({x}, w)\nb{k} = torch.relu(a{k})\nc{k} = b{k} * y\n"


def net(blocks, width=8):
    body, last = "", "x"
    for k in range(blocks):
        body += BLOCK.format(k=k, x=last)
        last = f"c{k}"
    return graph(body + f"return ({last},)", x=(4, width), w=(width, width), y=(4, width))


def row(target, entry):
    prints = fingerprints(target)
    return GraphRow(
        full=prints.full or "",
        literals=prints.literals,
        structure=prints.structure,
        program=render_program(target.program),
        tensors=encode(target.tensors).decode(),
        op_sequence=op_sequence(target.program),
        axes="{}",
        domain="cv",
        task="t",
        sources=(GraphSource(entry, 0),),
    )


TWO = [row(net(3), "lib/one"), row(net(2, 16), "lib/two")]
SETTINGS = BuildSettings(folding=FoldingPlan(None, None, 3, 64, bounded=True))


def captured(folder, rows=TWO):
    folder.mkdir()
    write_set(folder, sorted(rows, key=lambda row: row.full), {})
    return folder


def test_the_same_subgraph_is_one_row_with_all_its_places():
    job = MiningJob(TWO[0], ((0, 3), (3, 6)), SUBGRAPH_KINDS)
    record, rows = mine(job)
    assert record.found == {"classical": 2, "fusible": 3, "single": 9}
    assert not record.refused and record.error is None
    by_ops = {row.op_sequence: row for row in rows if len(row.op_sequence) == 1}
    assert by_ops["torch.matmul",].num_places == 3
    assert [(row.start, row.stop) for row in by_ops["torch.matmul",].places] == [
        (0, 1),
        (3, 4),
        (6, 7),
    ]
    [block] = [row for row in rows if len(row.op_sequence) == 3]
    assert block.kinds == ("classical",) and block.num_places == 2


def test_what_the_cpu_does_not_implement_in_a_dtype_is_no_row():
    pooled = graph(
        "y = torch.relu(x)\nz = torch.nn.functional.avg_pool3d(y, 2)\nreturn (z,)\n",
        x=(1, 4, 4, 4),
    )
    record, rows = mine(
        MiningJob(row(pooled, "lib/net"), ((0, 2),), ("classical", "single"), DTYPES)
    )
    by_dtype = {dtype: sorted(r.op_sequence for r in rows if r.dtype == dtype) for dtype in DTYPES}
    relu, pool = "torch.relu", "torch.nn.functional.avg_pool3d"
    assert by_dtype["float16"] == [(relu,)]
    assert by_dtype["float32"] == [(pool,), (relu,), (relu, pool)]
    assert record.reasons["the CPU does not implement it in float16"] == 2


def test_a_range_of_two_kinds_is_one_place():
    _, rows = mine(MiningJob(TWO[0], ((1, 3),), SUBGRAPH_KINDS))
    [fused] = [row for row in rows if row.op_sequence == ("torch.relu", "operator.mul")]
    assert fused.kinds == ("classical", "fusible")
    assert fused.num_places == 3


def test_a_union_adds_places_and_keeps_the_first():
    def row_of(name, count):
        occurrences = tuple(Occurrence(name, k, k + 1) for k in range(count))
        fields = ("f", "l", "s", ("single",), "", "[]", ("a",), 1, "none", "", "", "cv")
        return SubgraphRow(*fields, (name,), 1, count, occurrences)

    both = union(row_of("b", 7), row_of("a", 3))
    assert (both.num_places, both.num_graphs, both.nets) == (10, 2, ("a", "b"))
    assert len(both.places) == 8 and both.places[0] == Occurrence("a", 0, 1)
    assert both == union(row_of("a", 3), row_of("b", 7))


def test_a_place_of_a_variant_at_several_sizes_counts_once(tmp_path):
    whole = row_of_one_place(graph_of(TANH, (4,)), original=ONE, variant="batch=4")
    one, two = Occurrence(ONE, 0, 1), Occurrence(ONE, 5, 6)
    rows = [
        replace(whole, places=(one,)),
        replace(whole, variant="batch=4,side=8", places=(one, two), num_places=2),
        replace(whole, variant="batch=4,side=9", places=(Occurrence(OTHER, 0, 1),)),
    ]
    for order in permutations(rows):
        paths = [tmp_path / f"{number}.parquet" for number in range(3)]
        for path, found in zip(paths, order, strict=True):
            SUBGRAPHS.write(path, [found])
        merge_subgraphs(paths, tmp_path, {})
        [file] = read_dataset(tmp_path)[1]
        [merged] = SUBGRAPHS.read(file)
        assert (merged.num_graphs, merged.num_places, merged.variant) == (2, 3, "batch=4")
        assert merged.places == (one, two, Occurrence(OTHER, 0, 1))


def test_a_union_names_a_net_of_each_licence():
    nets = [*(f"timm/{number}" for number in range(9)), "ultralytics/yolo"]
    rows = [row_of_one_place(graph_of(TANH, (4,)), nets=(net,)) for net in nets]
    assert "ultralytics/yolo" in reduce(union, rows).nets


def test_every_range_comes_in_the_other_dtypes_too_and_names_its_original():
    record, rows = mine(MiningJob(TWO[0], ((0, 3), (3, 6)), SUBGRAPH_KINDS, DTYPES))
    originals = {row.full for row in rows if not row.variant}
    assert record.variants == {"float16": len(originals), "bfloat16": len(originals)}
    for dtype in record.variants:
        variants = [row for row in rows if row.variant == dtype]
        assert {row.dtype for row in variants} == {dtype}
        assert {row.original for row in variants} == originals
    blocks = [row for row in rows if len(row.op_sequence) == 3]
    assert [row.num_places for row in blocks] == [2, 2, 2]


def test_a_graph_that_cannot_be_in_a_dtype_is_still_mined():
    body = "a = torch.relu(x)\nb = a.to(torch.float32)\nc = torch.matmul(b, a)\nreturn (c,)"
    mixed = row(graph(body, x=(4, 4)), "lib/mixed")
    record, rows = mine(MiningJob(mixed, (), ("single",), ("bfloat16",)))
    assert "bfloat16" in record.unvaried and not record.variants
    assert rows and not any(row.variant for row in rows)


def test_what_was_captured_goes_before_what_was_made():
    fields = ("f", "l", "s", ("single",), "", "[]", ("a",), 1, "float16")
    where = (("n",), 1, 1, (Occurrence("g", 0, 1),))
    captured_row = SubgraphRow(*fields, "", "", "cv", *where)
    variant = SubgraphRow(*fields, "float16", "o", "cv", *where)
    assert union(captured_row, variant) == union(variant, captured_row) == captured_row
    twice = union(variant, replace(variant, original="b"))
    assert (twice.num_places, twice.original) == (2, "b")


def test_a_row_made_in_two_ways_says_of_which_row_it_was_made_in_the_way_that_it_names():
    fields = ("f", "l", "s", ("single",), "", "[]", ("a",), 1, "float16")
    where = (("n",), 1, 1, (Occurrence("g", 0, 1),))
    cast = SubgraphRow(*fields, "float16", "a", "cv", *where)
    sized = SubgraphRow(*fields, "batch=4", "b", "cv", *where)
    for both in (union(cast, sized), union(sized, cast)):
        assert (both.variant, both.original, both.num_places) == ("batch=4", "b", 2)


def test_a_graph_that_cannot_be_mined_is_a_record():
    broken = replace(TWO[0], program=TWO[0].program.replace("torch.relu", "torch.nonsense"))
    record, rows = mine(MiningJob(broken, (), SUBGRAPH_KINDS))
    assert record.error and "nonsense" in record.error and not rows


@pytest.mark.slow
def test_a_build_gives_the_same_bytes_whatever_happened_on_the_way(tmp_path):
    source = captured(tmp_path / "in")
    records, _, whole = build_dataset([source], tmp_path / "one", SETTINGS, RunPlan(num_workers=2))
    assert [record.error for record in records] == [None, None]
    assert whole.kinds.keys() == {"classical", "fusible", "single"}
    assert whole.num_op_sequences >= 4
    with pytest.raises(InputError, match="--resume"):
        build_dataset([source], tmp_path / "one", SETTINGS)
    with pytest.raises(InputError, match="other settings"):
        build_dataset([source], tmp_path / "one", BuildSettings(), RunPlan(resume=True))
    lines = (tmp_path / "one" / "graphs.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "one" / "graphs.jsonl").write_bytes(lines[0] + lines[1][:20])
    assert len(read_mined_records(tmp_path / "one")) == 1
    _, _, again = build_dataset([source], tmp_path / "one", SETTINGS, RunPlan(resume=True))
    assert again == whole
    manifest, files = read_dataset(tmp_path / "one")
    assert manifest == whole
    assert sum(1 for file in files for _ in SUBGRAPHS.read(file)) == whole.num_subgraphs


def mine_here(jobs, work, num_workers):
    """An executor without processes."""
    for job in jobs:
        record, rows = mine(job)
        with TemporaryDirectory() as folder:
            SUBGRAPHS.write(Path(folder, "rows.parquet"), rows)
            yield JobOutcome(record, Path(folder, "rows.parquet").read_bytes())


HERE = RunPlan(executor=mine_here)
SINGLE = BuildSettings(kinds=("single",), dtypes=())


def test_graphs_whose_rows_are_missing_are_mined_again(tmp_path):
    source = captured(tmp_path / "in")
    _, _, whole = build_dataset([source], tmp_path / "one", SINGLE, HERE)
    parts = sorted((tmp_path / "one" / "parts").iterdir())
    parts[0].unlink()
    joining = replace(HERE, parts=(tmp_path / "one",))
    assert build_dataset([source], tmp_path / "joined", SINGLE, joining)[2] == whole
    shutil.rmtree(tmp_path / "one" / "parts")
    assert build_dataset([source], tmp_path / "one", SINGLE, replace(HERE, resume=True))[2] == whole
    assert sorted((tmp_path / "one" / "parts").iterdir()) == parts


def test_sets_that_share_a_graph_are_merged_in_any_order(tmp_path):
    nets = {"one": ("timm/a", "cv"), "two": ("ultralytics/b", "nlp")}
    sets = [
        captured(tmp_path / name, [replace(row(net(1), entry), domain=domain)])
        for name, (entry, domain) in nets.items()
    ]
    _, _, first = build_dataset(sets, tmp_path / "out", SINGLE, HERE)
    _, _, second = build_dataset(sets[::-1], tmp_path / "other", SINGLE, HERE)
    assert first == second
    rows = [found for file in read_dataset(tmp_path / "out")[1] for found in SUBGRAPHS.read(file)]
    assert {(found.nets, found.domain) for found in rows} == {(("timm/a", "ultralytics/b"), "cv")}


def test_a_build_is_not_resumed_with_other_content_of_its_graphs(tmp_path):
    source = captured(tmp_path / "in")
    build_dataset([source], tmp_path / "out", SINGLE, HERE)
    more = replace(TWO[0], sources=(*TWO[0].sources, GraphSource("other/net", 0)))
    write_set(source, [more, TWO[1]], {})
    with pytest.raises(InputError, match="was built of other graphs"):
        build_dataset([source], tmp_path / "out", SINGLE, replace(HERE, resume=True))


def resize_nothing(jobs, work, num_workers):
    """An executor that mines, and makes records of nets at other sizes without rows."""
    yield from mine_here([job for job in jobs if isinstance(job, MiningJob)], work, num_workers)
    for job in jobs:
        if isinstance(job, SizeJob):
            graphs = tuple(SizedGraph(found.full, cause="other_graph") for found in job.graphs)
            yield JobOutcome(SizedRecord(job.key, job.entry, {}, "", graphs))


def test_graphs_to_resize_are_added_to_those_that_were(tmp_path):
    one = row(net(3), "lib/one")
    other = replace(row(net(2), "lib/one"), sources=(GraphSource("lib/one", 1),))
    source = captured(tmp_path / "in", [one, other])
    settings, plan = replace(SINGLE, num_sizes=1), RunPlan(executor=resize_nothing)
    for names, expected in (({one.full}, {one.full}), ({other.full}, {one.full, other.full})):
        _, [record], _ = build_dataset([source], tmp_path / "out", settings, plan, resized=names)
        assert {graph.graph for graph in record.graphs} == expected
        plan = replace(plan, resume=True)


def test_a_set_without_graphs_is_an_error(tmp_path):
    with pytest.raises(InputError, match="holds no graph to mine"):
        build_dataset([captured(tmp_path / "in", [])], tmp_path / "out", SETTINGS)


@pytest.mark.slow
def test_the_command_makes_the_dtypes_that_are_asked_for(tmp_path):
    folder = captured(tmp_path / "captured", TWO[:1])
    refused = passnet("dataset", "build", folder, "--out", tmp_path / "no", "--dtype", "float8")
    assert refused.returncode == 2 and "float16, bfloat16, none" in refused.stderr
    assert not (tmp_path / "no").exists()
    for dtype, expected in (("none", {""}), ("bfloat16", {"", "bfloat16"})):
        out = tmp_path / dtype
        process = passnet("dataset", "build", folder, "--out", out, "--dtype", dtype)
        assert process.returncode == 0, process.stderr
        _, files = read_dataset(out)
        assert {row.variant for file in files for row in SUBGRAPHS.read(file)} == expected
