"""Upload a release to Hugging Face: `python -m recipes.publication.upload --help`."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.output import print_result
from passnet.errors import InputError, PassnetError, boundary
from recipes.publication.card import CARD_FILE

HUB = "https://huggingface.co"


@dataclass(frozen=True, slots=True)
class UploadFile:
    """A file of a release, with its path in the repository."""

    path: str
    num_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class UploadOptions:
    """Options of the command."""

    folder: Path = opt.argument()

    repo: str = opt.field(metavar="OWNER/NAME")
    """Upload to this repository of datasets; it is made, for its owner alone, if need be."""

    release: str
    """Tag the upload with this version, which the repository must not have."""

    endpoint: str = HUB
    """Upload to the hub at this address."""

    dry_run: bool = False
    """Print what would be uploaded where, and send nothing."""

    json: bool = opt.shared("json")


def files_of(folder: Path) -> list[UploadFile]:
    """Return the files of a release.

    Raises:
        InputError: the folder is none that `recipes.publication` wrote.
    """
    if not (folder / CARD_FILE).is_file():
        raise InputError(f"{folder}: no release; python -m recipes.publication writes one")
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        name = path.relative_to(folder).as_posix()
        found.append(UploadFile(name, path.stat().st_size, digest))
    return found


def upload(folder: Path, repo: str, release: str, endpoint: str) -> str:
    """Upload a release in one commit and tag it; return the address of the commit.

    Raises:
        PassnetError: the hub refuses, cannot be reached, or has that tag already.
    """
    from huggingface_hub import CommitOperationAdd, HfApi

    hub = HfApi(endpoint=endpoint)
    with boundary(PassnetError, f"{endpoint}: {repo}"):
        hub.create_repo(repo, repo_type="dataset", private=True, exist_ok=True)
        if release in {tag.name for tag in hub.list_repo_refs(repo, repo_type="dataset").tags}:
            raise InputError(f"has a tag {release} already; raise the version")
        # upload_folder would make several commits of a large folder
        files = [CommitOperationAdd(file.path, folder / file.path) for file in files_of(folder)]
        commit = hub.create_commit(repo, files, repo_type="dataset", commit_message=release)
        hub.create_tag(repo, repo_type="dataset", tag=release, revision=commit.oid)
    return commit.commit_url


def _lines(files: Sequence[UploadFile], where: str, done: str) -> list[str]:
    total = sum(file.num_bytes for file in files)
    listed = [f"{file.path}  {file.num_bytes:,} bytes  {file.sha256[:12]}" for file in files]
    return [*listed, f"{len(files)} files, {total / 1e6:.1f} MB {done} {where}"]


@opt.command("upload")
def upload_command(options: UploadOptions) -> None:
    """Upload the release in FOLDER as one commit of a repository, and tag it with its version.

    The token is the one that `hf auth login` or HF_TOKEN gives. A new repository is private: look
    at it, then make it public.
    """
    files = files_of(options.folder)
    where = f"{options.endpoint}/datasets/{options.repo}, tag {options.release}"
    if options.dry_run:
        lines = _lines(files, where, "would go to")
    else:
        commit = upload(options.folder, options.repo, options.release, options.endpoint)
        lines = [*_lines(files, where, "went to"), commit]
    print_result(options.json, {"repository": where, "files": files}, lines)


if __name__ == "__main__":
    try:
        upload_command()
    except PassnetError as cause:
        sys.exit(f"passnet: {cause}")
