"""The site of the documentation: its links, its pages, and what its reference names; quick."""

import pkgutil
import re

import passnet
from recipes.docs_links import outside_links
from tests.docs.pages import ROOT

API = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_the_reference_has_every_public_function() -> None:
    listed = re.findall(r"^ {8}- (\w+)$", API, re.MULTILINE)
    assert {*listed} == {*passnet.__all__} - {"__version__"}


def test_what_the_reference_names_exists_and_has_a_docstring() -> None:
    for path in re.findall(r"^::: (\S+)$", API, re.MULTILINE):
        assert pkgutil.resolve_name(path).__doc__, path


def test_the_navigation_has_every_page() -> None:
    named = re.findall(r"([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_links_out_of_the_folder_lead_to_the_repository() -> None:
    text = "[a](../suites/CHANGELOG.md#11) [b](passes.md) ![c](images/c.png)"
    linked = "[a](https://host/blob/main/suites/CHANGELOG.md#11) [b](passes.md) ![c](images/c.png)"
    assert outside_links(text, "https://host") == linked
