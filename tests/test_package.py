"""The package as it is installed: its metadata, and the names that it offers."""

import re
import tomllib

import passnet
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_package_lists_its_public_names() -> None:
    assert dir(passnet) == sorted(passnet.__all__)
    assert {"optimize", "load", "capture"} <= {*dir(passnet)}


def test_torch_is_bound_to_the_releases_that_are_tested() -> None:
    [torch] = [need for need in PROJECT["dependencies"] if need.startswith("torch")]
    assert torch == "torch>=2.11,<2.14"
    assert re.search(r"^TORCH \?= torch==2\.13\.", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_links_of_the_package_lead_to_one_repository() -> None:
    urls = PROJECT["urls"]
    assert all(url.startswith(urls["Repository"]) for url in urls.values())
