"""Questions to a dataset: what they give, and that they reach nothing else."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from passnet.core.jobs.process import JobLimits
from passnet.data.capture.store import read_set
from passnet.data.dataset.licences import UNKNOWN, licences_of
from passnet.data.dataset.query import BRIEF, Dataset
from passnet.data.dataset.store import SUBGRAPHS, read_dataset, read_manifest
from passnet.data.dataset.verification import verify
from passnet.errors import InputError
from tests.data.dataset.rows import ROWS, in_order, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "data")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """One dataset for many questions, which have one parent process."""
    with Dataset(write(tmp_path_factory.mktemp("asked") / "data")) as dataset:
        yield dataset


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


def test_rows_name_the_licences_of_the_libraries_they_come_from(tmp_path: Path):
    nets = [("timm/a", "ultralytics/b"), ("timm/a",), ("own/a",), ()]
    rows = [replace(row, nets=names) for row, names in zip(ROWS, nets, strict=False)]
    with Dataset(write(tmp_path / "data", rows)) as dataset:
        table = dataset.table(columns=("nets", "licences"))
        for found in table.to_pylist():
            assert found["licences"] == licences_of(found["nets"])
        assert licences_of(nets[0]) == ["AGPL-3.0", "Apache-2.0"] and licences_of(()) == [UNKNOWN]

        def nets_under(licences: list[str], where: str | None = None) -> set[tuple[str, ...]]:
            return {row.nets for row in dataset.rows(where, licences=licences)}

        assert nets_under(["Apache-2.0"]) == {nets[1]}
        assert nets_under(["Apache-2.0", "AGPL-3.0"]) == {*nets[:2]}
        assert nets_under(["Apache-2.0"], "true or true -- a remark") == {nets[1]}
        assert nets_under([UNKNOWN], "true") == {*nets[2:]}
        assert len(nets_under([])) == 4
        for where in ("true) or (true", "true or true) --"):
            with pytest.raises(InputError, match="columns are"):
                nets_under(["Apache-2.0"], where)
        assert not nets_under(["it's none"])


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
def test_an_expression_reaches_no_file_network_or_variable(asked: Dataset, where: str):
    out = asked.folder.parent / "out.csv"
    with pytest.raises(InputError, match=r"data: filter .*columns are"):
        asked.count(where.format(out=out))
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
def test_even_a_statement_writes_and_loads_nothing(asked: Dataset, statement: str):
    folder = asked.folder
    names = sorted(folder.iterdir())
    text = statement.format(out=folder.parent / "out", file=folder / "subgraphs-000.parquet")
    with pytest.raises(InputError, match="cannot be read"):
        asked.run_sql(text)
    assert sorted(folder.iterdir()) == names and not (folder.parent / "out").exists()


FOR_EVER = "(WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t)"


@pytest.mark.parametrize(
    "where",
    [
        f"{FOR_EVER} > 0",
        "levenshtein(repeat(program, 9999), repeat(program, 9998)) > 0",  # heeds no interruption
    ],
)
def test_a_question_that_goes_on_for_ever_ends_in_its_time(folder: Path, where: str):
    start = time.monotonic()
    with Dataset(folder, JobLimits(1.0, 2048)) as dataset:
        with pytest.raises(InputError, match=r"not answered in 1 s; ask for less, or allow more"):
            dataset.count(where)
        assert time.monotonic() - start < 60
        assert dataset.count() == len(ROWS)  # the next question is answered


@pytest.mark.parametrize(
    "where",
    [
        "len(range(num_ops * 1000000000)) > 0",  # beyond what DuckDB counts as its memory
        "length(repeat('a', 4000000000)) > num_ops",
        "(select len(list(x)) from range(1, 10000000000) t(x)) > 0",
    ],
)
def test_a_question_takes_no_more_than_its_memory(folder: Path, where: str):
    with (
        Dataset(folder, JobLimits(60.0, 300)) as dataset,
        pytest.raises(InputError, match=r"takes more than 300 MiB; ask for less, or allow more"),
    ):
        dataset.count(where)


@pytest.mark.slow
def test_a_long_text_that_many_rows_share_fills_no_memory(tmp_path: Path):
    text = "a" * 2**20
    rows = [replace(ROWS[0], full=f"{number:064}", program=text) for number in range(600)]
    folder = write(tmp_path / "data", rows)
    assert (folder / "subgraphs-000.parquet").stat().st_size < 200_000
    with Dataset(folder, JobLimits(60.0, 500)) as dataset:
        assert dataset.count() == len(rows)
        with pytest.raises(InputError, match=r"cannot be read: takes more than 500 MiB"):
            dataset.table()
    SUBGRAPHS.write(tmp_path / "one.parquet", rows)
    with pytest.raises(InputError, match=r"unpacks to .* bytes, more than 536870912 allowed"):
        list(SUBGRAPHS.read(tmp_path / "one.parquet"))


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


@pytest.mark.parametrize("way", ["absolute", "up", "link", "folder"])
def test_a_manifest_points_at_nothing_outside_of_its_folder(folder: Path, way: str):
    file = folder / "subgraphs-000.parquet"
    outside = folder.parent / "outside.parquet"
    file.replace(outside)
    if way == "link":
        file.symlink_to(outside)
    names = {
        "absolute": str(outside),
        "up": "../outside.parquet",
        "link": file.name,
        "folder": "..",
    }
    manifest = json.loads((folder / "dataset.json").read_text())
    manifest["shards"][0]["file"] = names[way]
    edit_manifest(folder, **manifest)
    refused = "outside of its folder" if way == "link" else "is no file name in its folder"
    with pytest.raises(InputError, match=refused):
        Dataset(folder)
    with pytest.raises(InputError, match=refused):
        read_dataset(folder)
    assert any(refused in text for text in verify(folder).files)


@pytest.mark.parametrize("number", [-1, 2**63 - 1])
def test_a_manifest_with_an_odd_number_of_rows_is_wrong_and_no_traceback(folder: Path, number: int):
    edit_manifest(folder, num_subgraphs=number)
    assert not verify(folder, num_runs=0).ok
    with pytest.raises(InputError, match="num_subgraphs"):
        raise InputError("; ".join(verify(folder).files))


def test_a_folder_without_a_dataset_is_refused(tmp_path: Path):
    with pytest.raises(InputError, match="no finished dataset; passnet dataset build makes one"):
        Dataset(tmp_path)
    with pytest.raises(InputError, match=r"missing: no such folder$"):
        Dataset(tmp_path / "missing")


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
        "import sys\nfrom passnet.data.dataset import query, splits, stats\n"
        "from passnet_exchange import export, importer\n"
        "from passnet.data.dataset import verification\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_folder_without_a_finished_dataset_says_what_makes_one(tmp_path: Path):
    with pytest.raises(InputError, match=f"^{tmp_path}: no finished dataset; .* --resume"):
        read_manifest(tmp_path)
    with pytest.raises(InputError, match=f"^{tmp_path}: holds no captured graphs"):
        read_set(tmp_path)
