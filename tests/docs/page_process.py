"""A process that runs Python blocks with shared names: `python -m tests.docs.page_process`.

Each line of its input is a block as JSON, and each line of its output says that one has run. What
blocks print goes to the error stream.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


class PageProcess:
    """Runs blocks one after another in a folder, in one process of their own."""

    def __init__(self, folder: Path) -> None:
        self._printed = folder / "printed.txt"
        with self._printed.open("w") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.docs.page_process"], cwd=folder, env=environment(),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=printed, text=True,
            )  # fmt: skip

    def run(self, block: str) -> None:
        """Run a block; it must not raise."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(block) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer == "done\n", f"{block}\n{self._printed.read_text()[-4000:]}"

    def __enter__(self) -> "PageProcess":
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            if process.stdin:
                process.stdin.close()


def run_blocks() -> None:
    """Run the blocks of the input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # of this process and of what blocks start
    names = {"__name__": "__main__"}
    for number, line in enumerate(sys.stdin):
        file = Path(f"block_{number}.py").absolute()  # where inspect and torch read the source
        file.write_text(json.loads(line), encoding="utf-8")
        exec(compile(file.read_text(encoding="utf-8"), file, "exec"), names)
        print("done", file=answers, flush=True)


if __name__ == "__main__":
    run_blocks()
