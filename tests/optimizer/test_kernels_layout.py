"""Libraries as repositories of Hugging Face's `kernels`: what loads, and that nothing runs."""

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from passnet.errors import InputError
from passnet.passes.library.entries import ENTRIES, PassEntry
from passnet.passes.library.kernels_layout import export_kernels
from passnet.passes.library.store import PassLibrary
from passnet.passes.load import loaded_passes
from tests.optimizer.libraries import HERE, folder, outcome, tanh_mul

MARK = "open({path!r}, 'w').close()\n"


@pytest.fixture
def library(tmp_path: Path) -> PassLibrary:
    return PassLibrary(tmp_path / "library")


def add(library: PassLibrary, text: str = "", guard: str | None = None, **fields) -> PassEntry:
    files = folder() if guard is None else folder(guard=guard)
    files["Fuse.py"] = text + files["Fuse.py"]
    return library.add(tanh_mul(), "compiler", HERE, files, outcome(**fields))


def exported(library: PassLibrary, out: Path, name: str = "my-passes") -> Path:
    export_kernels(library, out, library.entries(), name, "Apache-2.0")
    return out


def by_path(repository: Path) -> ModuleType:
    path = repository / "build/torch-cpu/__init__.py"
    spec = importlib.util.spec_from_file_location("_kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def by_kernels(repository: Path) -> ModuleType:
    kernels = pytest.importorskip("kernels", reason="Hugging Face's kernels is not installed")
    return kernels.get_local_kernel(repository, backend="cpu")


@pytest.mark.parametrize("load", [by_path, by_kernels])
def test_a_repository_names_its_passes_and_runs_none_of_them(
    library: PassLibrary, tmp_path: Path, load: Callable[[Path], ModuleType]
) -> None:
    marker = tmp_path / "marker"
    entry = add(library, MARK.format(path=str(marker)))
    module = load(exported(library, tmp_path / "out"))
    [path] = module.passes()
    assert Path(path).parts[-4:] == ("library", ENTRIES, entry.digest, "folder")
    assert sorted(each.name for each in Path(path).iterdir()) == sorted(folder())
    assert not marker.exists()
    assert [each.name for each in loaded_passes(module.passes())] == ["Fuse"]
    assert marker.exists(), "it runs when the user applies it"


def test_a_repository_holds_licence_card_and_records(library: PassLibrary, tmp_path: Path) -> None:
    entry = add(library)
    out = exported(library, tmp_path / "out")
    variant = out / "build/torch-cpu"
    assert PassLibrary(variant / "library").entries() == [entry]
    assert {path.name for path in (variant / "library" / ENTRIES / entry.digest).iterdir()} == {
        "folder", "record.json", "settings.json", "trial.json"}  # fmt: skip
    card = (out / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: kernels\nlicense: apache-2.0\ntags:\n- kernels\n")
    assert f"| `{entry.digest[:12]}` | tanh mul | float32[4, 8], float32[4, 8] | 1.90" in card
    assert "SPDX-License-Identifier: Apache-2.0" in (out / "LICENSE").read_text()
    metadata = json.loads((variant / "metadata.json").read_text())
    assert metadata["license"] == "Apache-2.0" and metadata["backend"] == {"type": "cpu"}
    assert metadata["id"].startswith("_my_passes_cpu_")


def test_each_device_has_a_variant(library: PassLibrary, tmp_path: Path) -> None:
    add(library)
    card = replace(HERE, device="cuda", name="a card")
    library.add(tanh_mul(), "compiler", card, folder(), outcome())
    build = exported(library, tmp_path / "out") / "build"
    assert sorted(path.name for path in build.iterdir()) == ["torch-cpu", "torch-cuda"]
    assert len(PassLibrary(build / "torch-cuda" / "library").entries()) == 1
    rows = [
        line for line in (build.parent / "README.md").read_text().splitlines() if "tanh" in line
    ]
    assert len(rows) == 2
    library.add(tanh_mul(), "llm", replace(HERE, device="../../x"), folder(), outcome())
    with pytest.raises(InputError, match="`kernels` has no device"):
        exported(library, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_only_guarded_passes_that_won_here_are_named(library: PassLibrary, tmp_path: Path) -> None:
    add(library, guard="", speedup_low=1.95)
    add(library, "# slower\n", speedup_low=0.9)
    named = add(library, "# named\n", speedup_low=1.5)
    others = PassLibrary(tmp_path / "others")
    add(others, "# of others\n", speedup_low=1.8)
    library.merge(others.folder)
    [path] = by_path(exported(library, tmp_path / "out")).passes()
    assert Path(path).parent.name == named.digest


def test_bytecode_stays_at_home(library: PassLibrary, tmp_path: Path) -> None:
    entry = add(library)
    cache = library.folder / ENTRIES / entry.digest / "folder" / "__pycache__"
    cache.mkdir()
    (cache / "Fuse.cpython-311.pyc").write_bytes(b"anything")
    assert not list(exported(library, tmp_path / "out").rglob("__pycache__"))


def test_what_was_changed_is_not_exported(library: PassLibrary, tmp_path: Path) -> None:
    entry = add(library, speedup_low=0.9)
    (library.folder / ENTRIES / entry.digest / "folder" / "Fuse.py").write_text("x = 1")
    with pytest.raises(InputError, match="is not what was judged"):
        library.export(tmp_path / "out", [entry])


def test_names_that_kernels_refuses_are_refused(library: PassLibrary, tmp_path: Path) -> None:
    entry = add(library)
    for name in ("My-passes", "my_passes", "a", "1a", "a-", "../a"):
        with pytest.raises(InputError, match="is no value of --name; give lower-case"):
            export_kernels(library, tmp_path / "out", [entry], name, "MIT")
    for license_id in ("", "MIT\nevil: 1", "a b"):
        with pytest.raises(InputError, match="is no value of --license; give an SPDX"):
            export_kernels(library, tmp_path / "out", [entry], "my-passes", license_id)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_in_it_is_left_alone(library: PassLibrary, tmp_path: Path) -> None:
    add(library)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").touch()
    with pytest.raises(InputError, match="already exists"):
        exported(library, tmp_path / "out")
