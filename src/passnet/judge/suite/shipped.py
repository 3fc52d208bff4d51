"""The suites that ship with passnet: where they are, and what their tasks are called."""

from pathlib import Path


def shipped_suites() -> dict[str, Path]:
    """Return name and file of every suite that ships; an earlier version is called NAME@1.0."""
    folder = suites_folder()
    paths = {path.stem: path for path in sorted(folder.glob("*.parquet"))}
    earlier = sorted(folder.glob("*/*.parquet"))
    return paths | {f"{path.stem}@{path.parent.name}": path for path in earlier}


def suites_folder() -> Path:
    """Return the folder of the suites that ship, in the package or in the checkout."""
    package = Path(__file__).parents[2] / "suites"
    return package if package.is_dir() else Path(__file__).parents[4] / "suites"


def task_names(suite: Path) -> list[str]:
    """Return the names of the tasks in a suite's file, in its order, without reading its graphs."""
    import pyarrow.parquet

    [column] = pyarrow.parquet.ParquetFile(suite).read(columns=["task"]).columns
    return list(dict.fromkeys(column.to_pylist()))
