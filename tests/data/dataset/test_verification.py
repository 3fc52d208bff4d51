"""A dataset checked: what is right passes, and every kind of wrong is named."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.core.jobs.process import JobLimits
from passnet.data.dataset.store import SubgraphRow, write_dataset
from passnet.data.dataset.verification import row_error, verify
from passnet.errors import InputError
from tests.data.dataset.rows import CHAIN, RELU, ROWS, in_order, row_of_one_place, write
from tests.data.dataset.test_query import edit_manifest
from tests.graph.programs import graph_of, program_of

ROW = ROWS[0]


def test_a_dataset_as_it_was_written_is_right(tmp_path: Path):
    verification = verify(write(tmp_path / "data"))
    assert verification.ok and (verification.num_rows, verification.num_wrong) == (6, 0)


CHANGES: dict[str, tuple[Callable[[SubgraphRow], SubgraphRow], str]] = {
    "another op": (
        lambda row: replace(row, program=row.program.replace("relu", "selu")),
        "wrong fingerprints, op_sequence",
    ),
    "another literal": (
        lambda row: replace(row, program=row.program.replace("x + b", "x + 1")),
        "wrong fingerprints",
    ),
    "another shape": (
        lambda row: replace(row, tensors=row.tensors.replace("[8,3]", "[8,4]")),
        "wrong fingerprints",
    ),
    "another fingerprint": (lambda row: replace(row, structure="0" * 64), "wrong fingerprints"),
    "another op sequence": (
        lambda row: replace(row, op_sequence=row.op_sequence[::-1]),
        "wrong op_sequence",
    ),
    "another number of ops": (lambda row: replace(row, num_ops=3), "wrong num_ops"),
    "another dtype": (lambda row: replace(row, dtype="float16"), "wrong dtype"),
    "a kind that is none": (lambda row: replace(row, kinds=("fast",)), "wrong kinds"),
    "kinds in another order": (lambda row: replace(row, kinds=row.kinds[::-1]), "wrong kinds"),
    "a net twice": (lambda row: replace(row, nets=("a", "a")), "wrong nets"),
    "a variant of nothing": (lambda row: replace(row, variant="float16"), "wrong original"),
    "fewer places than named": (lambda row: replace(row, num_places=1), "wrong places"),
    "a place twice": (lambda row: replace(row, places=(row.places[0],) * 2), "wrong places"),
    "fewer graphs than named": (lambda row: replace(row, num_graphs=1), "wrong places"),
    "a range without ops": (
        lambda row: replace(row, places=(replace(row.places[0], stop=0),)),
        "wrong places",
    ),
    "an op that no graph may call": (
        lambda row: replace(row, program=row.program.replace("torch.relu", "torch.load")),
        "torch.load is not on the list",
    ),
    "a text that is no Python": (lambda row: replace(row, program="("), ":1: not Python"),
    "a text that runs code": (
        lambda row: replace(row, program=row.program.replace("torch.relu(a)", "eval('1')")),
        "only torch functions",
    ),
    "arguments that are no JSON": (lambda row: replace(row, tensors="{"), "not a valid"),
    "arguments of other names": (
        lambda row: replace(row, tensors=row.tensors.replace('"name":"a"', '"name":"c"')),
        "the arguments of forward and their specs differ",
    ),
    "an argument too large": (
        lambda row: replace(row, tensors=row.tensors.replace("[8,3]", "[1099511627777]")),
        "more than 1099511627776 elements",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_that_does_not_follow_from_its_text_is_named(name: str):
    change, text = CHANGES[name]
    assert row_error(ROW) is None
    wrong = row_error(change(ROW))
    assert wrong is not None and wrong.startswith(ROW.full[:16]) and text in wrong


def test_wrong_rows_are_counted_and_the_rest_is_read(tmp_path: Path):
    rows = [*ROWS[1:], replace(ROW, num_ops=9)]
    verification = verify(write(tmp_path / "data", rows))
    assert not verification.ok and (verification.num_rows, verification.num_wrong) == (6, 1)
    assert verification.rows == (f"{ROW.full[:16]}: wrong num_ops",)


def test_a_row_that_stands_twice_is_wrong(tmp_path: Path):
    verification = verify(write(tmp_path / "data", [*ROWS, ROW]))
    assert verification.rows == (f"{ROW.full[:16]}: stands 2 times",)


def test_a_variant_is_one_of_its_original_or_wrong(tmp_path: Path):
    original = ROWS[1]
    other = row_of_one_place(graph_of(CHAIN, (5, 3)), variant="batch=5", original=original.full)
    good = row_of_one_place(graph_of(RELU, (5, 3)), variant="batch=5", original=original.full)
    assert verify(write(tmp_path / "good", [original, good])).ok
    verification = verify(write(tmp_path / "alone", [good]))
    assert verification.ok and verification.num_alone == 1
    wrong = verify(write(tmp_path / "wrong", [original, other]))
    assert wrong.rows == (f"{other.full[:16]}: is no variant of {original.full[:16]}",)
    cast = row_of_one_place(
        graph_of(RELU, (5, 3), "float16"), variant="batch=5", original=original.full
    )
    assert verify(write(tmp_path / "cast", [original, cast])).num_wrong == 1
    assert verify(write(tmp_path / "named", [original, replace(cast, variant="float16")])).ok
    assert row_error(replace(good, variant="large")) == f"{good.full[:16]}: wrong variant"


def test_files_that_are_not_those_of_the_manifest_are_named(tmp_path: Path):
    folder = write(tmp_path / "data")
    fewer = write(tmp_path / "other", ROWS[1:])
    file = folder / "subgraphs-000.parquet"
    whole = file.read_bytes()
    file.write_bytes((fewer / file.name).read_bytes())
    verification = verify(folder)
    assert "not the file that dataset.json describes" in verification.files[0]
    assert "dataset.json: num_subgraphs is 6, the files have 5" in verification.files
    file.write_bytes(whole[:4] + bytes(60) + whole[64:])
    assert any("damaged" in text for text in verify(folder).files)
    file.unlink()
    assert "missing, though dataset.json names it" in verify(folder).files[0]


def test_a_manifest_that_counts_otherwise_is_named(tmp_path: Path):
    folder = write(tmp_path / "data")
    edit_manifest(folder, num_places=1, kinds={"single": 6})
    verification = verify(folder)
    assert (
        len(verification.files) == 2
        and "num_places is 1, the files have 27" in verification.files[0]
    )
    edit_manifest(folder, schema_version=99)
    with pytest.raises(InputError, match="schema version 99"):
        verify(folder)


@pytest.mark.slow
def test_rows_are_run_in_processes_and_those_that_fail_are_named(tmp_path: Path):
    broken = ROWS[1].program.replace("torch.relu(a)", "torch.relu(a, a, a)")
    folder = tmp_path / "data"
    folder.mkdir()
    write_dataset(folder, in_order([*ROWS[:1], replace(ROWS[1], program=broken), *ROWS[2:]]), {})
    verification = verify(folder, num_runs=100, num_processes=2)
    assert (verification.num_run, verification.num_failed, verification.num_wrong) == (6, 1, 1)
    assert verification.runs[0].startswith(ROWS[1].full[:16]) and "relu" in verification.runs[0]
    assert verify(folder, num_runs=2, num_processes=2).num_run == 2


@pytest.mark.slow
def test_a_row_that_does_not_end_in_time_is_not_run_and_not_wrong(tmp_path: Path):
    product = program_of("x = torch.matmul(a, a)", params="a", returns="(x,)")
    long = row_of_one_place(graph_of(product, (4096, 4096)))
    folder = write(tmp_path / "data", [long])
    verification = verify(folder, num_runs=1, limits=JobLimits(0.3, 16384))
    assert verification.ok and verification.num_failed == verification.num_run == 0
    assert verification.not_run == (f"{long.full[:16]}: not done in 0.3 s",)
