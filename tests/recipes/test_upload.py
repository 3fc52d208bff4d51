"""A release is uploaded to a server that speaks the hub's protocol; a dry run sends nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from passnet.errors import InputError
from recipes.publication import PublicationPlan, publish
from recipes.publication.upload import files_of
from tests.conftest import ROOT
from tests.recipes.hub_server import hub

REPOSITORY = "somebody/graphs"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("published") / "release"
    publish(PublicationPlan("small", "1.2.3", suites=("demo-small",)), out)
    return out


def upload(
    release: Path, endpoint: str, *more: str, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Upload as the page says, with a token that is none."""
    words = [sys.executable, "-m", "recipes.publication.upload", str(release), *more]
    words += ["--repo", REPOSITORY, "--release", "1.2.3", "--endpoint", endpoint]
    machine = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "HF_TOKEN": "hf_none",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "NO_PROXY": "127.0.0.1",
        **variables,
    }
    return subprocess.run(words, env=machine, capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("protocol", ["lfs", "xet"])
def test_a_release_arrives_whole_in_one_commit_with_its_tag_and_only_once(
    release: Path, tmp_path: Path, protocol: str
) -> None:
    pytest.importorskip("hf_xet" if protocol == "xet" else "huggingface_hub")
    machine = {"HF_HUB_DISABLE_XET": str(int(protocol == "lfs")), "HF_HOME": str(tmp_path)}
    with hub(REPOSITORY) as (endpoint, state):
        done = upload(release, endpoint, "--json", **machine)
        assert done.returncode == 0, done.stderr
        assert state.files == contents(release)
        assert [*state.tags] == ["1.2.3"] and state.is_private
        assert state.tokens == {"Bearer hf_none"}
        assert sum("/commit/" in request for request in state.requests) == 1
        assert bool(state.xorbs) == (protocol == "xet")
        assert {each["path"] for each in json.loads(done.stdout)["files"]} == {*state.files}
        before = {*state.files}
        again = upload(release, endpoint, **machine)
        assert again.returncode != 0 and "has a tag 1.2.3 already" in again.stderr
        assert {*state.files} == before and len(state.tags) == 1


def test_a_dry_run_says_what_would_go_where_and_sends_nothing(release: Path) -> None:
    with hub(REPOSITORY) as (endpoint, state):
        done = upload(release, endpoint, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert state.requests == []
    assert f"would go to {endpoint}/datasets/{REPOSITORY}, tag 1.2.3" in done.stdout
    for file in files_of(release):
        assert f"{file.path}  {file.num_bytes:,} bytes  {file.sha256[:12]}" in done.stdout


def test_a_hub_that_cannot_be_reached_is_one_sentence(release: Path) -> None:
    pytest.importorskip("huggingface_hub")
    done = upload(release, "http://127.0.0.1:9")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("passnet: http://127.0.0.1:9: somebody/graphs: ")


def test_a_folder_without_a_card_is_no_release(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no release"):
        files_of(tmp_path)
