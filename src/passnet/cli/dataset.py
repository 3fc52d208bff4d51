"""`passnet dataset`: sets of captured graphs, merged and sampled, and datasets made of them.

What is done with a dataset that is there is in `dataset_rows`, `dataset_files`, `dataset_split`.
"""

from __future__ import annotations

from pathlib import Path

import click

from passnet.cli.dataset_files import export_command, import_command, verify_command
from passnet.cli.dataset_rows import query_command, show_command, stats_command
from passnet.cli.dataset_split import leaks_command, split_command
from passnet.cli.options import jobs_option
from passnet.cli.output import print_json
from passnet.errors import InputError


@click.group()
def dataset() -> None:
    """Sets of captured graphs: merge them, take a part of them, make a dataset of subgraphs."""


@dataset.command("merge")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the set.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest as JSON instead.")
def merge_command(folders: tuple[Path, ...], out: Path, as_json: bool) -> None:
    """Merge the graphs of several runs of `passnet extract` into one set, each graph once."""
    from passnet.extract.run import merge_runs, read_all_records
    from passnet.report.catalog import summary

    manifest = merge_runs(folders, out)
    (out / "summary.md").write_text(summary(read_all_records(folders)), encoding="utf-8")
    if as_json:
        print_json(manifest)
    else:
        click.echo(
            f"{manifest.num_graphs} distinct graphs of {manifest.num_structures} structures, "
            f"{manifest.num_ops} ops, from {manifest.num_sources} places, in {out}"
        )


@dataset.command("build")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for it.")
@jobs_option
@click.option(
    "--kind", "kinds", multiple=True, help="classical, fusible or single (repeatable; else all)."
)
@click.option(
    "--dtype",
    "dtypes",
    multiple=True,
    help="float32, float16 or bfloat16, to make subgraphs in besides that of their net; or none "
    "(repeatable; else all).",
)
@click.option("--resume", is_flag=True, help="Go on with what the folder holds.")
@click.option("--executor", "place", default="local", show_default=True, help="local or ray.")
@click.option("--json", "as_json", is_flag=True, help="Print records as JSON instead.")
def build_command(
    folders: tuple[Path, ...],
    out: Path,
    jobs: int,
    kinds: tuple[str, ...],
    dtypes: tuple[str, ...],
    resume: bool,
    place: str,
    as_json: bool,
) -> None:
    """Make a dataset of the subgraphs of sets of captured graphs.

    The corpus is folded as a whole; every graph is then cut into patterns that repeat (classical),
    ranges that Inductor would fuse (fusible), and single ops.
    """
    from contextlib import ExitStack

    from passnet.dataset.build import BuildSettings, build_dataset
    from passnet.jobs.executors import executor
    from passnet.mine.dtypes import DTYPES
    from passnet.mine.subgraphs import KINDS
    from passnet.report.progress import progress

    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise InputError(f"no kind {unknown[0]!r} of subgraphs; there are {', '.join(KINDS)}")
    unknown = [dtype for dtype in dtypes if dtype not in (*DTYPES, "none")]
    if unknown or ("none" in dtypes and len(dtypes) > 1):
        raise InputError(
            f"--dtype {' '.join(dtypes)}: there are {', '.join(DTYPES)}, or none and no other"
        )
    settings = BuildSettings(
        kinds=tuple(kind for kind in KINDS if kind in kinds or not kinds),
        dtypes=tuple(dtype for dtype in DTYPES if dtype in dtypes or not dtypes),
    )
    with ExitStack() as stack:
        records, manifest = build_dataset(
            folders,
            out,
            settings,
            jobs,
            resume,
            executor(place),
            lambda count: stack.enter_context(progress("mining graphs", count)),
        )
    if as_json:
        print_json({"graphs": records, "dataset": manifest})
        return
    failed = [item for item in records if item.error]
    for item in failed[:20]:
        click.echo(f"FAILED {item.graph[:12]} ({item.num_ops} ops): {item.error}")
    refused = sum(sum(item.refused.values()) for item in records)
    kinds_text = ", ".join(f"{count} {kind}" for kind, count in manifest.kinds.items())
    click.echo(
        f"{manifest.num_subgraphs} distinct subgraphs ({kinds_text}) at {manifest.num_places} "
        f"places of {len(records)} graphs; {manifest.num_op_sequences} op sequences; "
        f"{refused} ranges could not be cut; in {out}"
    )


@dataset.command("sample")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the part.")
@click.option(
    "--text", "max_mib", default=200.0, show_default=True, help="MiB of text, before compression."
)
def sample_command(folder: Path, out: Path, max_mib: float) -> None:
    """Take a part of a set that has all its libraries, tasks and sizes of graphs."""
    from passnet.extract.sampling import stratified_sample
    from passnet.extract.store import GRAPHS, read_set, write_set
    from passnet.records.serialise import make_folder

    whole, files = read_set(folder)
    rows = [row for file in files for row in GRAPHS.read(file)]
    if not rows:
        raise InputError(f"{folder}: holds no graph")
    make_folder(out)
    part = stratified_sample(rows, int(max_mib * 2**20))
    manifest = write_set(out, part, whole.versions)
    size = sum((out / item.file).stat().st_size for item in manifest.shards)
    text = f"{manifest.num_graphs} of {len(rows)} graphs, {manifest.num_ops} ops"
    click.echo(f"{text}, {size} bytes, in {out}")


for _command in (
    query_command,
    stats_command,
    show_command,
    verify_command,
    export_command,
    import_command,
    split_command,
    leaks_command,
):
    dataset.add_command(_command)
