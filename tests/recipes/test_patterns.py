"""What repeats in the captured graphs, and what further graphs make commoner."""

from collections import Counter

from recipes.patterns import changes, num_for_half, num_found, pattern_coverage

BLOCK = ("a", "b", "c", "d")


def test_the_ops_of_a_pattern_count_once_for_each_place():
    covered = pattern_coverage([BLOCK * 3, ("e",), (*BLOCK, "f")])
    assert covered == Counter({BLOCK: 16})
    assert num_for_half(covered, 32) == num_for_half(covered, 100) == 1


def test_places_are_counted_within_graphs_and_may_overlap():
    graphs = [("a", "a", "a"), ("a", "b")]
    assert num_found([("a", "a"), ("a", "b"), ("b", "a"), ("z",)], graphs) == [2, 1, 0, 0]


def test_a_change_is_of_the_share_of_all_ops():
    sequences = [("a",), ("b",), ("z",)]
    assert changes(sequences, [("a", "b")], [("a", "b")]) == ["same", "same", "neither"]
    assert changes(sequences, [("a", "b")], [("z", "b")]) == ["rarer", "same", "commoner"]
