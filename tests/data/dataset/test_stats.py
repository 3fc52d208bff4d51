"""A dataset in numbers, and the page of them."""

from pathlib import Path

import pytest

from passnet.core.records.serialise import LineWriter
from passnet.data.dataset.build_records import RECORDS_FILE, MinedCounts, MinedRecord
from passnet.data.dataset.query import Dataset
from passnet.data.dataset.stats import LibraryCount, OpCount, Stats, stats
from passnet.errors import InputError
from passnet.pages.tables.dataset import draw_stats, row_tables, stats_page, stats_tables
from tests.data.dataset.rows import ROWS, write


@pytest.fixture
def numbers(tmp_path: Path) -> Stats:
    with Dataset(write(tmp_path / "data")) as dataset:
        return stats(dataset)


def test_the_numbers_are_those_of_the_rows(numbers: Stats):
    assert (numbers.num_rows, numbers.num_literals, numbers.num_structures) == (6, 3, 3)
    assert (numbers.num_op_sequences, numbers.num_ops, numbers.num_distinct_ops) == (3, 11, 3)
    assert (numbers.num_places, numbers.num_repeated) == (27, 2)
    assert numbers.kinds == {"fusible": 3, "classical": 2, "single": 2}
    assert numbers.domains == {"cv": 4, "audio": 1, "nlp": 1}
    assert numbers.dtypes == {"float32": 4, "bfloat16": 1, "none": 1}
    assert numbers.variants == {"": 5, "bfloat16": 1}


def test_ops_sizes_and_places_are_counted(numbers: Stats):
    assert numbers.ops == (
        OpCount("operator.add", 4, 4),
        OpCount("torch.relu", 4, 4),
        OpCount("torch.tanh", 3, 3),
    )
    assert numbers.sizes == ((1, 1, 2), (2, 3, 4))
    assert numbers.multiplicity == ((1, 1, 4), (2, 3, 1), (4, 7, 0), (8, 15, 0), (16, 31, 1))
    assert numbers.libraries == (LibraryCount("lib", 4, 2), LibraryCount("own", 1, 1))


def test_a_dataset_without_rows_has_no_numbers(tmp_path: Path):
    with Dataset(write(tmp_path / "none", [])) as dataset:
        with pytest.raises(InputError, match="none: the dataset has no rows"):
            stats(dataset)
        assert list(dataset.rows()) == []


def test_the_page_and_the_figure_follow_from_the_numbers(numbers: Stats, tmp_path: Path):
    page = stats_page(numbers, "page.svg")
    assert "](page.svg)" in page and "| as captured | 5 | 83.3 |" in page
    assert "| torch.tanh | 3 | 27.3 | 3 |" in page and "| 16 to 31 | 1 | 16.7 |" in page
    for name in ("one.svg", "two.svg"):
        draw_stats(numbers, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert len(stats_tables(numbers)) == 9


def test_what_came_of_mining_is_counted_where_it_is_known(tmp_path: Path):
    folder = write(tmp_path / "data")
    variants = {"float16": 4}
    records = (
        MinedRecord("1", 10, {"single": 8, "fusible": 2}, {"single": 2}, {"why": 2}, variants),
        MinedRecord("2", 30, {"single": 4}, {"classical": 1}, {"why": 1}, {}, {"float16": "mixed"}),
        MinedRecord("3", 5, {}, {}, {}, error="lost"),
    )
    with LineWriter(folder / RECORDS_FILE) as writer:
        for record in records:
            writer.write(record)
    with Dataset(folder) as dataset:
        numbers = stats(dataset)
    assert numbers.mined == MinedCounts(
        3, 45, 1, {"fusible": 2, "single": 12}, {"classical": 1, "single": 2}, {"why": 3},
        {"float16": 1}, {"float16": 1},
    )  # fmt: skip
    page = stats_page(numbers, "page.svg")
    assert "| made in float16 | 1 of 2 (50.0 %) |" in page
    assert "| single | 12 | 2 | 14.3 |" in page and "| classical | 0 | 1 | 100.0 |" in page
    assert "| duplicates (places beyond the first of a row) | 21 |" in page


def test_a_row_is_shown_with_arguments_places_and_nets():
    about, arguments, occurrences, nets = row_tables(ROWS[3])
    assert ("dtype", "float32") in about.rows
    assert arguments.rows == [("a", "float32", "[4]", "0.5", "0.25", "1, 2, 3, 4", "L_a_")]
    assert (
        occurrences.rows == [("2" * 64, "7", "8")]
        and "1 of 1 places in 1 graphs" in occurrences.note
    )
    assert nets.rows == [("lib/one", "not known")]
