"""Foreign names that are joined to folders stay within them."""

from pathlib import Path

import pytest

from passnet.core.records.folders import below
from passnet.errors import InputError


def test_names_and_paths_within_a_folder_are_joined_to_it() -> None:
    for name in ("a", "a b", "..a", ".a", "a/b.svg", "é"):
        assert below(Path("out"), name) == Path("out") / name


@pytest.mark.parametrize("name", ["", ".", "..", "../a", "/a", "a/../b", "a//b", "a\0", "a\nb"])
def test_names_that_lead_out_of_a_folder_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="is no name of a file or folder within out"):
        below(Path("out"), name)
