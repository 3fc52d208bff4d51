"""`passnet dataset`: merge and sample sets of captured graphs, and make datasets of them.

What is done with a dataset that is there is in `dataset_rows`, `dataset_files`, `dataset_split`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli import dataset_files, dataset_rows, dataset_split
from passnet.cli import options as opt
from passnet.cli.output import print_result
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.executors import Executor
    from passnet.core.jobs.run_plan import RunShard

FAILURES_SHOWN = 20


@click.group()
def dataset() -> None:
    """Merge and sample sets of captured graphs; make, query, verify and split datasets."""


@dataset.command("merge")
@opt.folders
@opt.out("The folder of the merged set")
@opt.json
def merge_command(folders: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Merge the graphs of several runs of `passnet extract` into one set, each graph once."""
    from passnet.core.records.serialise import write_text
    from passnet.data.capture.run import merge_runs, read_all_records
    from passnet.pages.tables.catalog import summary

    manifest = merge_runs(folders, out)
    write_text(out / "summary.md", summary(read_all_records(folders)))
    line = (
        f"{manifest.num_graphs} distinct graphs of {manifest.num_structures} structures, "
        f"{manifest.num_ops} ops, from {manifest.num_sources} places, in {out}"
    )
    print_result(as_json, manifest, [line])


@dataset.command("build")
@opt.folders
@opt.out("The folder of the dataset")
@opt.jobs("Graphs")
@opt.choice("--kind", opt.KINDS, "The kind of subgraphs to cut out (repeatable); all if not given.",
            "kinds", multiple=True)  # fmt: skip
@opt.choice("--dtype", [*opt.DTYPES, "none"], "A dtype to make variants of subgraphs in "
            "(repeatable), or none; all dtypes if not given.", "dtypes", multiple=True)  # fmt: skip
@opt.flag("--sizes", "Add rows at other sizes: capture the nets again at published shapes.")
@opt.count("--num-sizes", "With --sizes, the most other shapes that a net gets; 9 are all.",
           type=click.IntRange(1, 9), default=3)  # fmt: skip
@opt.shard("nets")
@opt.parts("build")
@opt.resume
@opt.executor
@opt.json
def build_command(folders: tuple[Path, ...], out: Path, jobs: int, kinds: tuple[str, ...],
                  dtypes: tuple[str, ...], sizes: bool, num_sizes: int, shard: RunShard,
                  taken: tuple[Path, ...], resume: bool, executor: Executor,
                  as_json: bool) -> None:  # fmt: skip
    """Make a dataset of the subgraphs of the sets of captured graphs in FOLDERS.

    The corpus is folded as a whole; every graph is then cut into patterns that repeat (classical),
    ranges that Inductor would fuse (fusible), and single ops. With --sizes the nets are then
    captured again at other sizes, and cut at the same ops; --resume adds them to a dataset that was
    built without.
    """
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.core.terminal.progress import late_progress
    from passnet.data.dataset.build import BuildSettings, build_dataset
    from passnet.data.dataset.build_records import count_sized
    from passnet.data.mine.dtypes import DTYPES
    from passnet.data.mine.subgraphs import SUBGRAPH_KINDS

    if "none" in dtypes and len(dtypes) > 1:
        raise InputError(f"--dtype {' '.join(dtypes)}: none goes with no other dtype")
    settings = BuildSettings(
        kinds=tuple(kind for kind in SUBGRAPH_KINDS if kind in kinds or not kinds),
        dtypes=tuple(dtype for dtype in DTYPES if dtype in dtypes or not dtypes),
        num_sizes=num_sizes if sizes else 0,
    )
    with late_progress() as start:
        records, sized, manifest = build_dataset(
            folders,
            out,
            settings,
            RunPlan(num_workers=jobs, resume=resume, executor=executor, shard=shard, parts=taken),
            announce=start,
        )
    failed = [record for record in records if record.error]
    refused = sum(sum(record.refused.values()) for record in records)
    counts = ", ".join(f"{count} {kind}" for kind, count in manifest.kinds.items())
    lines = [
        f"FAILED {record.graph[:12]} ({record.num_ops} ops): {record.error}"
        for record in failed[:FAILURES_SHOWN]
    ]
    lines.append(
        f"{manifest.num_subgraphs} distinct subgraphs ({counts}) at {manifest.num_places} "
        f"places of {len(records)} graphs; {manifest.num_op_sequences} op sequences; "
        f"{refused} ranges could not be cut; in {out}"
    )
    if counts_sized := count_sized(sized):
        whole = counts_sized.whole
        causes = ", ".join(f"{count} {cause}" for cause, count in counts_sized.causes.items())
        lines.append(
            f"at other sizes {whole.num_made} of {whole.num_tried} graphs of "
            f"{counts_sized.num_nets} nets, with {whole.num_rows} subgraphs; not made: "
            f"{causes or 'none'}; `passnet dataset stats {out}` has more"
        )
    print_result(as_json, {"graphs": records, "sizes": sized, "dataset": manifest}, lines)


@dataset.command("sample")
@opt.folder
@opt.out("The folder of the sample")
@opt.amount("--text", "The most text of the sample before compression, in MiB.", "max_mib",
            default=200.0)  # fmt: skip
def sample_command(folder: Path, out: Path, max_mib: float) -> None:
    """Take a part of the set in FOLDER that has all its libraries, tasks and sizes of graphs."""
    from passnet.core.records.serialise import make_folder
    from passnet.data.capture.sampling import stratified_sample
    from passnet.data.capture.store import GRAPHS, read_set, write_set

    whole, files = read_set(folder)
    rows = [row for file in files for row in GRAPHS.read(file)]
    if not rows:
        raise InputError(f"{folder}: holds no graph")
    make_folder(out)
    manifest = write_set(out, stratified_sample(rows, int(max_mib * 2**20)), whole.versions)
    size = sum((out / shard.file).stat().st_size for shard in manifest.shards)
    text = f"{manifest.num_graphs} of {len(rows)} graphs, {manifest.num_ops} ops"
    click.echo(f"{text}, {size} bytes, in {out}")


for _module in (dataset_rows, dataset_files, dataset_split):
    for _command in _module.COMMANDS:
        dataset.add_command(_command)
