"""A folder is loaded as it is now, whatever was loaded from its path before."""

import json
import os
from pathlib import Path

from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from passnet.passes.match.pattern import Pass
from tests.judge.inspection_folder import PASS


def write(folder: Path, **modules: str) -> None:
    folder.mkdir(exist_ok=True)
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps(["Fuse"]))


def test_what_came_to_a_folder_is_seen(tmp_path: Path) -> None:
    folder = tmp_path / "passes"
    (folder / "parts").mkdir(parents=True)
    write(folder, Fuse=PASS + "from pass_dir.parts.first import fused\n")
    (folder / "parts" / "first.py").write_text("fused = print\n")
    times = [(path, path.stat().st_mtime_ns) for path in (folder, folder / "parts")]
    [first] = load_passes(inspect_folder(folder))
    assert isinstance(first, Pass)
    imports = "from pass_dir import other\nfrom pass_dir.parts.second import fused\n"
    write(folder, Fuse=PASS + imports, other="")
    (folder / "parts" / "second.py").write_text("fused = print\n")
    for path, modified in times:  # as if it were all within one tick of the clock
        os.utime(path, ns=(modified, modified))
    [second] = load_passes(inspect_folder(folder))
    assert isinstance(second, Pass)
