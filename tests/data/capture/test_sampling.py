"""A part of a set has something of every kind, each structure once, and fits its size."""

import random
from dataclasses import replace

from passnet.data.capture.sampling import SIZES, draw_nets, stratified_sample
from tests.data.capture.test_store import row


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


def test_nets_are_drawn_by_library_and_size_in_turn_and_none_that_is_too_large():
    short = [row(f"s{lib}{k}", f"{lib}/s{k}") for lib, most in (("a", 30), ("b", 2))
             for k in range(most)]  # fmt: skip
    long = [replace(row(f"l{k}", f"a/l{k}"), op_sequence=("x",) * SIZES[0]) for k in range(3)]
    long = [replace(each, op_sequence=(*each.op_sequence, "x")) for each in long]
    huge = replace(row("h", "a/huge"), op_sequence=("x",) * (SIZES[-1] + 1))
    graphs = [*short, *long, huge]
    known = {source.entry for each in graphs for source in each.sources} - {"a/s0"}
    drawn = draw_nets(graphs, known, 9, 0)
    assert [sum(name.startswith(start) for name in drawn) for start in ("a/s", "a/l", "b/")] == [
        4, 3, 2]  # fmt: skip
    assert drawn == draw_nets(graphs[::-1], known, 9, 0)
    every = draw_nets(graphs, known, 1000, 0)
    assert set(every) == known - {"a/huge"}
    assert len(every) == len(set(every))
