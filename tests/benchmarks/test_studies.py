"""The studies of the site are those of the committed records."""

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.studies import BASELINES, PAGES
from passnet.core.records.serialise import read_json
from passnet.pages.figures.study_page import STUDY_FILE, StudyPage


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_study_is_what_its_records_say(name: str, page: Callable[[], StudyPage]) -> None:
    kept = read_json(Path(BASELINES, "studies", name, STUDY_FILE), StudyPage)
    assert kept == page()
