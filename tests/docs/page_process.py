"""Runs Python blocks with shared names: `python -m tests.docs.page_process`.

Each line of the input is a block as JSON, and each line of the output says that one has run. What
blocks print goes to the error stream.
"""

import contextlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    answers = sys.stdout
    names = {"__name__": "__main__"}
    for number, line in enumerate(sys.stdin):
        file = Path(f"block_{number}.py").absolute()  # where inspect and torch read the source
        file.write_text(json.loads(line), encoding="utf-8")
        with contextlib.redirect_stdout(sys.stderr):
            exec(compile(file.read_text(encoding="utf-8"), file, "exec"), names)
        print("done", file=answers, flush=True)
