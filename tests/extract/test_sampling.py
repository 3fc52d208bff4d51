"""A part of a set has something of every kind, each structure once, and fits its size."""

import random

from passnet.extract.sampling import stratified_sample
from tests.extract.test_store import row


def rows():
    return [
        row(f"{lib}{k}", f"{lib}/{k}", structure=f"{lib}{k % 8}")
        for lib in ("a", "b", "c")
        for k in range(8 * (1 + (lib == "a") * 20))
    ]


def size(graphs):
    return sum(len(row.program) + len(row.tensors) for row in graphs)


def test_a_part_fits_and_has_of_all_libraries_alike():
    sample = stratified_sample(rows(), 90)
    assert 0 < size(sample) <= 90
    counts = [sum(row.full.startswith(lib) for row in sample) for lib in "abc"]
    assert max(counts) - min(counts) <= 1


def test_each_structure_is_taken_once():
    sample = stratified_sample(rows(), 10**6)
    assert len(sample) == len({row.structure for row in sample}) == 24


def test_the_order_of_rows_makes_no_difference():
    shuffled = rows()
    random.Random(1).shuffle(shuffled)
    assert stratified_sample(shuffled, 90) == stratified_sample(rows(), 90)
