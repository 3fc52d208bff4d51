"""Items of actors that are lost are worked on again, and each has one result."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from passnet.core.jobs.actors import ActorDevice, run_actors
from passnet.errors import InputError, MeasureError
from tests.bench.ray_actors import cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed"),
]

ONE = ActorDevice()


@pytest.fixture(scope="module", autouse=True)
def a_cluster() -> Iterator[None]:
    with cluster():
        yield


def squares(folder: Path, num_deaths: int) -> Callable[[int], int]:
    """What squares, and is killed so often over 3."""

    def square(number: int) -> int:
        deaths = len(list(folder.iterdir()))
        if number == 3 and deaths < num_deaths:
            (folder / str(deaths)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 99:
            raise InputError("99 is too much")
        return number * number

    return square


def test_what_a_lost_actor_worked_on_is_done_again(tmp_path: Path) -> None:
    results = list(run_actors(range(6), partial(squares, tmp_path, 2), 2, ONE))
    assert sorted(results) == [0, 1, 4, 9, 16, 25]


def test_an_item_that_costs_every_actor_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(MeasureError, match="3 workers were lost, one after another"):
        list(run_actors([3], partial(squares, tmp_path, 9), 1, ONE))
    assert len(list(tmp_path.iterdir())) == 3


def test_an_error_of_the_work_is_raised_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        list(run_actors([1, 99], partial(squares, tmp_path, 0), 1, ONE))
    assert str(caught.value) == "99 is too much"


def test_a_device_that_no_machine_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no machine of the Ray cluster has 1 processor and a GPU"):
        list(run_actors([1], partial(squares, tmp_path, 0), 1, ActorDevice(1, 1)))


def test_no_items_need_no_actor(tmp_path: Path) -> None:
    assert list(run_actors([], partial(squares, tmp_path, 0), 2, ONE)) == []
