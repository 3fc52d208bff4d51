"""Every reader of strangers' files, fuzzed for a moment; by `make fuzz` for five minutes."""

import pytest

from tests.fuzz.fuzzing import fuzz_reader
from tests.fuzz.readers import READERS


@pytest.mark.parametrize("name", READERS)
def test_whatever_is_read_ends_in_an_error_of_ours_or_is_read(name: str) -> None:
    fuzzing = fuzz_reader(name, 0.3)
    assert fuzzing.num_inputs and not fuzzing.faults, str(fuzzing)
