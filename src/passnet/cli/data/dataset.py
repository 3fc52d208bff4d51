"""`passnet dataset`: merge and sample sets of captured graphs, and make datasets of them.

`dataset_rows` queries a dataset; `dataset_files` checks and splits one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from passnet.cli.data import dataset_files, dataset_rows
from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_result
from passnet.core.terminal.counts import counted
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.data.dataset.build import BuildSettings
    from passnet.data.dataset.build_records import MinedRecord, SizedRecord
    from passnet.data.dataset.store import DatasetManifest

FAILURES_SHOWN = 20


@click.group(cls=ExtensibleGroup)
def dataset() -> None:
    """Merge and sample sets of captured graphs; make, query, verify and split datasets."""


@dataclass(frozen=True, kw_only=True)
class DatasetMergeOptions:
    """Options of `passnet dataset merge`."""

    folders: tuple[Path, ...] = opt.argument(nargs=-1)

    out: Path
    """Write the merged set to this folder."""

    json: bool = opt.shared("json")


@opt.command("merge", dataset)
def merge_command(options: DatasetMergeOptions) -> None:
    """Merge the graphs of several runs of `passnet extract` into one set, each graph once."""
    from passnet.core.records.serialise import write_text
    from passnet.data.capture.run import merge_runs, read_all_records
    from passnet.pages.tables.catalog import summary

    manifest = merge_runs(options.folders, options.out)
    write_text(options.out / "summary.md", summary(read_all_records(options.folders)))
    line = (
        f"{counted(manifest.num_graphs, 'distinct graph')} of "
        f"{counted(manifest.num_structures, 'structure')}, "
        f"{manifest.num_ops} ops, from {manifest.num_sources} places, in {options.out}"
    )
    print_result(options.json, manifest, [line])


@dataclass(frozen=True, kw_only=True)
class DatasetBuildOptions:
    """Options of `passnet dataset build`."""

    folders: tuple[Path, ...] = opt.argument(nargs=-1)

    out: Path
    """Write the dataset to this folder."""

    kinds: tuple[str, ...] = opt.field((), option="kind", choices=opt.KINDS)
    """Cut out subgraphs of this kind; all by default."""

    dtypes: tuple[str, ...] = opt.field((), option="dtype", choices=(*opt.DTYPES, "none"))
    """Add variants of subgraphs in this dtype, or in none; in all by default."""

    sizes: bool = False
    """Add rows at other sizes: capture the nets again at published shapes."""

    num_sizes: int = opt.field(3, most=9, option="num-sizes")
    """With --sizes, capture a net at up to this many other shapes; 9 are all."""

    plan: RunPlan = opt.plan("num_workers", "shard", "parts", "resume", "executor")

    json: bool = opt.shared("json")


@opt.command("build", dataset)
def build_command(options: DatasetBuildOptions) -> None:
    """Make a dataset of the subgraphs of the sets of captured graphs in FOLDERS.

    The corpus is folded as a whole; every graph is then cut into patterns that repeat (classical),
    ranges that Inductor would fuse (fusible), and single ops. With --sizes the nets are then
    captured again at other sizes, and cut at the same ops; --resume adds them to a dataset that was
    built without. --shard divides the nets.
    """
    from passnet.core.terminal.progress import late_progress
    from passnet.data.dataset.build import build_dataset

    with late_progress() as start:
        records, sized, manifest = build_dataset(
            options.folders, options.out, _build_settings(options), options.plan, start
        )
    facts = {"graphs": records, "sizes": sized, "dataset": manifest}
    print_result(options.json, facts, _build_lines(records, sized, manifest, options.out))


def _build_settings(options: DatasetBuildOptions) -> BuildSettings:
    from passnet.data.dataset.build import BuildSettings
    from passnet.data.mine.dtypes import DTYPES
    from passnet.data.mine.subgraphs import SUBGRAPH_KINDS

    kinds, dtypes = options.kinds, options.dtypes
    if "none" in dtypes and len(dtypes) > 1:
        raise InputError(f"--dtype {' '.join(dtypes)}: none goes with no other dtype")
    source = click.get_current_context().get_parameter_source("num_sizes")
    if source is ParameterSource.COMMANDLINE and not options.sizes:
        raise InputError("--num-sizes goes with --sizes; add it to make other sizes")
    return BuildSettings(
        kinds=tuple(kind for kind in SUBGRAPH_KINDS if kind in kinds or not kinds),
        dtypes=tuple(dtype for dtype in DTYPES if dtype in dtypes or not dtypes),
        num_sizes=options.num_sizes if options.sizes else 0,
    )


def _build_lines(
    records: list[MinedRecord], sized: list[SizedRecord], manifest: DatasetManifest, out: Path
) -> Iterator[str]:
    from passnet.data.dataset.build_records import count_sized

    failed = [record for record in records if record.error]
    for record in failed[:FAILURES_SHOWN]:
        yield f"FAILED {record.graph[:12]} ({record.num_ops} ops): {record.error}"
    refused = sum(sum(record.refused.values()) for record in records)
    counts = ", ".join(f"{count} {kind}" for kind, count in manifest.kinds.items())
    yield (
        f"{manifest.num_subgraphs} distinct subgraphs ({counts}) at {manifest.num_places} "
        f"places of {len(records)} graphs; {manifest.num_op_sequences} op sequences; "
        f"{refused} ranges could not be cut; in {out}"
    )
    if counts_sized := count_sized(sized):
        whole = counts_sized.whole
        causes = ", ".join(f"{count} {cause}" for cause, count in counts_sized.causes.items())
        yield (
            f"at other sizes {whole.num_made} of {whole.num_tried} graphs of "
            f"{counts_sized.num_nets} nets, with {whole.num_rows} subgraphs over all sizes; "
            f"not made: {causes or 'none'}; `passnet dataset stats {out}` has more"
        )


@dataclass(frozen=True, kw_only=True)
class DatasetSampleOptions:
    """Options of `passnet dataset sample`."""

    folder: Path = opt.argument()

    out: Path
    """Write the sample to this folder."""

    text: float = 200.0
    """Take graphs of up to this many MiB of text before compression."""

    json: bool = opt.shared("json")


@opt.command("sample", dataset)
def sample_command(options: DatasetSampleOptions) -> None:
    """Take a part of the set in FOLDER that has all its libraries, tasks and sizes of graphs."""
    from passnet.core.records.serialise import make_folder
    from passnet.data.capture.sampling import stratified_sample
    from passnet.data.capture.store import GRAPHS, read_set, write_set

    out = options.out
    whole, files = read_set(options.folder)
    rows = [row for file in files for row in GRAPHS.read(file)]
    if not rows:
        raise InputError(f"{options.folder}: holds no graph")
    make_folder(out)
    manifest = write_set(out, stratified_sample(rows, int(options.text * 2**20)), whole.versions)
    size = sum((out / shard.file).stat().st_size for shard in manifest.shards)
    text = f"{manifest.num_graphs} of {len(rows)} graphs, {manifest.num_ops} ops"
    print_result(options.json, manifest, [f"{text}, {size} bytes, in {out}"])


for _command in (*dataset_rows.COMMANDS, *dataset_files.COMMANDS):
    dataset.add_command(_command)
