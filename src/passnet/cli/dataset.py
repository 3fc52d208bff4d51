"""`passnet dataset`: sets of captured graphs, merged and sampled."""

from __future__ import annotations

from pathlib import Path

import click

from passnet.cli.output import print_json
from passnet.errors import InputError


@click.group()
def dataset() -> None:
    """Sets of captured graphs: merge them, take a part of them."""


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


@dataset.command("sample")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder for the part.")
@click.option(
    "--text", "max_mib", default=200.0, show_default=True, help="MiB of text, before compression."
)
def sample_command(folder: Path, out: Path, max_mib: float) -> None:
    """Take a part of a set that has all its libraries, tasks and sizes of graphs."""
    from passnet.extract.sample import stratified
    from passnet.extract.store import GRAPHS, read_manifest, shards_of, write_set
    from passnet.records import make_folder

    rows = [row for shard in shards_of(folder) for row in GRAPHS.read(shard)]
    if not rows:
        raise InputError(f"{folder}: holds no graph")
    make_folder(out)
    part = stratified(rows, int(max_mib * 2**20))
    manifest = write_set(out, part, read_manifest(folder).versions)
    size = sum((out / item.file).stat().st_size for item in manifest.shards)
    text = f"{manifest.num_graphs} of {len(rows)} graphs, {manifest.num_ops} ops"
    click.echo(f"{text}, {size} bytes, in {out}")
