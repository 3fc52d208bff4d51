"""Each item of a run is in one of its parts."""

import pytest

from passnet.core.jobs.run_plan import WHOLE, RunShard, shard_of
from passnet.errors import InputError


def test_each_item_is_in_one_part() -> None:
    names = [f"item{number}" for number in range(50)]
    parts = [{name for name in names if RunShard(part, 3).has(name)} for part in (1, 2, 3)]
    assert all(parts) and set.union(*parts) == set(names)
    assert sum(map(len, parts)) == len(names)
    assert all(map(WHOLE.has, names))


def test_a_part_is_named_by_two_numbers() -> None:
    assert shard_of("2/8") == RunShard(2, 8)
    for text in ("3/2", "0/2", "2", "a/b", "1/0", "-1/2", ""):
        with pytest.raises(InputError, match="such as 2/8"):
            shard_of(text)
