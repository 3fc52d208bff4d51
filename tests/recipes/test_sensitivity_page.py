"""What the score depends on becomes a page of a site."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from passnet.pages.figures.study_page import read_study
from passnet_site.pages.build import build_site, read_parts
from recipes.sensitivity.__main__ import sensitivity_command

DEMO = Path(__file__).parents[2] / "baselines" / "demo"


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("eager", "null"), "The order of 2 candidates is the published one under all"),
        (("eager",), ""),
    ],
)
def test_the_sensitivity_of_a_run_is_a_study(
    names: tuple[str, ...], says: str, tmp_path: Path
) -> None:
    chosen = [word for name in names for word in ("--candidate", name)]
    folder = tmp_path / "rules"
    done = CliRunner().invoke(sensitivity_command, [str(DEMO), *chosen, "--study", str(folder)])
    assert done.exit_code == 0, done.output
    page = read_study(folder).page
    assert page.finding.startswith(says) and bool(page.finding) == bool(says)
    assert page.tables[0].heads[2 : 2 + len(names)] == names
    build_site(read_parts([folder], None, [], None), tmp_path / "site", "Site")
    assert "What the score depends on" in (tmp_path / "site/studies/index.html").read_text()
