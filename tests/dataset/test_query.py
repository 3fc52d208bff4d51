"""Questions to a dataset: what they give, and that they reach nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from passnet.dataset.query import BRIEF, Dataset
from passnet.errors import InputError
from tests.dataset.rows import ROWS, in_order, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "data")


def test_a_filter_gives_the_rows_for_which_it_is_true(folder: Path):
    expected = [row for row in in_order(ROWS) if "fusible" in row.kinds and row.domain == "cv"]
    with Dataset(folder) as dataset:
        assert list(dataset.rows("'fusible' in kinds and domain = 'cv'")) == expected
        assert list(dataset.rows("list_contains(kinds, 'fusible') and domain = 'cv'")) == expected
        assert dataset.count("'fusible' in kinds and domain = 'cv'") == len(expected) == 2
        assert list(dataset.rows()) == in_order(ROWS)
        assert dataset.count("num_ops between 2 and 3 and op_sequence[1] = 'torch.tanh'") == 1


def test_columns_and_limit_are_those_asked_for(folder: Path):
    with Dataset(folder) as dataset:
        table = dataset.table("num_ops = 2", ("nets", "full"), 2)
        assert table.column_names == ["nets", "full"] and table.num_rows == 2
        assert dataset.table(columns=BRIEF).column("full").to_pylist() == [
            row.full for row in in_order(ROWS)
        ]
        with pytest.raises(InputError, match="no column 'kind'; there are full, "):
            dataset.table(columns=("kind",))


SECRET = pa.table({"text": ["a variable of this module"]})


@pytest.mark.parametrize(
    "where",
    [
        "num_ops < (select count(*) from read_text('/etc/hostname'))",
        "num_ops < (select count(*) from '/etc/hostname')",
        "num_ops < (select count(*) from glob('/etc/*'))",
        "num_ops < (select count(*) from read_csv('http://localhost/x.csv'))",
        "num_ops < (select count(*) from SECRET)",
        "true); copy (select 1) to '{out}'; --",
        "true; copy (select 1) to '{out}'",
        "true) to '{out}' --",
        "getenv('HOME') = ''",
        "true union select 1",
        "true, true",
        "",
    ],
)
def test_an_expression_reaches_no_file_network_or_variable(folder: Path, where: str):
    out = folder.parent / "out.csv"
    with Dataset(folder) as dataset, pytest.raises(InputError, match=r"data: filter .*columns are"):
        dataset.count(where.format(out=out))
    assert not out.exists() and SECRET.num_rows


@pytest.mark.parametrize(
    "statement",
    [
        "copy (select 1) to '{out}'",
        "attach '{out}'",
        "set enable_external_access = true",
        "set allowed_paths = ['/']",
        "set threads = 1",
        "install httpfs",
        "load httpfs",
        "copy subgraphs to '{file}.other' (format parquet)",
    ],
)
def test_even_a_statement_writes_and_loads_nothing(folder: Path, statement: str):
    names = sorted(folder.iterdir())
    text = statement.format(out=folder.parent / "out", file=folder / "subgraphs-000.parquet")
    with Dataset(folder) as dataset, pytest.raises(InputError, match="cannot be read"):
        dataset.run_sql(text)
    assert sorted(folder.iterdir()) == names and not (folder.parent / "out").exists()


def test_an_unknown_column_is_named_with_those_that_are(folder: Path):
    with Dataset(folder) as dataset:
        with pytest.raises(InputError, match=r'"kind" not found.*columns are "full", literals'):
            dataset.count("kind = 'single'")
        with pytest.raises(InputError, match="Conversion Error"):
            dataset.count("kinds = 'single'")


def edit_manifest(folder: Path, **changes) -> None:
    path = folder / "dataset.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_manifest_of_another_version_is_refused(folder: Path):
    edit_manifest(folder, schema_version=99)
    with pytest.raises(InputError, match=r"dataset.json: schema version 99, this passnet reads 1"):
        Dataset(folder)


def test_a_folder_without_a_dataset_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"cannot read .*dataset.json: No such file"):
        Dataset(tmp_path)


def test_a_file_that_is_missing_or_of_other_rows_is_refused(folder: Path):
    write(folder.parent / "less", ROWS[:2])
    file = folder / "subgraphs-000.parquet"
    (folder.parent / "less" / file.name).replace(file)
    with pytest.raises(InputError, match=r"2 rows, and not the 6 that dataset.json says"):
        Dataset(folder)
    file.unlink()
    with pytest.raises(InputError, match="missing, though dataset.json names it"):
        Dataset(folder)


def test_a_damaged_file_is_refused(folder: Path):
    file = folder / "subgraphs-000.parquet"
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match="not a Parquet file of subgraphs"):
        Dataset(folder)
    file.write_bytes(b"PAR1" + bytes(200) + data[204:])
    with pytest.raises(InputError, match=r"subgraphs-000.parquet: damaged|cannot be read"):
        Dataset(folder).table()


def test_a_path_that_means_several_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match=r"a path with \*, \? or \[ cannot be queried"):
        Dataset(write(tmp_path / "data[1]"))
    with Dataset(write(tmp_path / "it's")) as dataset:
        assert dataset.count() == len(ROWS)


def test_a_question_needs_no_torch():
    script = (
        "import sys, passnet.dataset.query, passnet.dataset.stats, passnet.dataset.splits,"
        " passnet.dataset.export, passnet.dataset.importer, passnet.dataset.verification\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
