"""The growth of the captured graphs: distinct ones by number of nets, and its fit."""

import pytest

from passnet.data.capture.store import GraphSource, write_set
from recipes.growth import growth, power_fit, read_found
from tests.data.capture.test_store import row


def test_a_curve_ends_at_all_distinct_graphs_whatever_the_order():
    nets = [["a"], ["a", "b"], ["b", "c"]]
    assert growth(nets, [3], seed=1).tolist() == [3.0]
    assert 1.0 < growth(nets, [1])[0] < 2.0


def test_a_power_is_found_again():
    counts = [10, 100, 1000]
    assert power_fit(counts, [3 * n**0.5 for n in counts]) == pytest.approx((3.0, 0.5))


def test_a_net_has_the_graphs_that_name_it(tmp_path):
    rows = [row("x", "n/1", "n/2"), row("y", "n/1", structure="t")]
    assert rows[0].sources[0] == GraphSource("n/1", 0)
    write_set(tmp_path, rows, {})
    assert read_found(tmp_path) == {
        "graphs": [["x", "y"], ["x"]],
        "structures": [["s", "t"], ["s"]],
    }
