"""The pass folder that docs/passes.md teaches."""

import json
from pathlib import Path

from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "passes.md"


def write_passes_of_the_page(folder: Path) -> None:
    """Write the pass folder as the page says, its pass being the first Python block."""
    name = blocks(PAGE, "python")[0].splitlines()[0].removeprefix("# ")
    folder.mkdir()
    (folder / name).write_text(blocks(PAGE, "python")[0], encoding="utf-8")
    passes = [Path(name).stem]
    (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps(passes))
