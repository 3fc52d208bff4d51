"""The package as it is installed: its metadata, and the names that it offers."""

import re
import subprocess
import tomllib

import passnet
from recipes.readme_on_index import with_addresses
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


def test_an_index_shows_the_readme_with_addresses() -> None:
    url = PROJECT["urls"]["Repository"]
    shown = with_addresses((ROOT / "README.md").read_text(encoding="utf-8"), url)
    links = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert links and all(link.startswith("https://") for link in links)
    assert f"({url}/blob/main/docs/suites.md#the-suites-that-ship)" in shown
    assert "(https://raw.githubusercontent.com/passnet/passnet/main/docs/images/board.png)" in shown


def test_the_workflow_tests_the_pythons_and_the_torch_releases_that_the_package_names() -> None:
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    named = {each.split()[-1] for each in PROJECT["classifiers"] if "Python :: 3." in each}
    assert {*re.findall(r'"(3\.\d+)"', workflow)} == named
    assert {*re.findall(r'"(2\.\d+)\.\d+"', workflow)} == {"2.11", "2.12", "2.13"}


def test_a_release_has_one_version_and_one_address() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    llm = tomllib.loads((ROOT / "training" / "llm" / "pyproject.toml").read_text())["project"]
    assert f'version: "{passnet.__version__}"' in citation and llm["version"] == passnet.__version__
    url = PROJECT["urls"]["Repository"]
    assert f'url: "{url}"' in citation and llm["urls"]["Repository"] == url
    for path in (ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"):
        assert url in path.read_text()


def test_the_recipe_of_a_release_is_a_script_of_bash() -> None:
    subprocess.run(["bash", "-n", ROOT / "recipes" / "release.sh"], check=True)
    assert (ROOT / "recipes" / "release.sh").stat().st_mode & 0o100
