"""`python -m benchmarks.gpu [STEP...] [--table] [--out FOLDER]`: run what is left of the steps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.gpu.running import Start, Step, read_state, run_step, start_process
from benchmarks.gpu.steps import STEPS
from passnet.pages.tables.tables import Table, print_table


def steps_table(out: Path, steps: Sequence[Step] = STEPS) -> Table:
    """Return a row for each step: how it ended, what it took, and what came of it."""
    table = Table("Steps on a GPU", ("step", "question", "ending", "calls", "seconds", "result"))
    for step in steps:
        folder = out / step.name
        state = read_state(folder)
        known = step.result(folder) if state.num_calls else ""
        table.rows.append((step.name, step.question, state.ending, str(state.num_calls),
                           f"{state.seconds:.0f}", known or "–"))  # fmt: skip
    return table


def run_steps(
    names: Sequence[str], out: Path, steps: Sequence[Step] = STEPS, start: Start = start_process
) -> bool:
    """Run what is left of some steps, or of all; return whether any ran, and print how it ended."""
    wanted = [step for step in steps if not names or step.name in names]
    has_run = False
    for step in wanted:
        if missing := step.needs():
            print(f"{step.name}: nothing was run: {missing}", flush=True)
        elif read_state(out / step.name).is_complete:
            print(f"{step.name}: complete; remove {out / step.name} to run it again", flush=True)
            has_run = True
        else:
            print(f"{step.name}: {step.question} …", flush=True)
            state = run_step(step, out / step.name, start)
            goes_on = "; the next call goes on" if state.ending == "stopped" else ""
            print(f"{step.name}: {state.ending} after {state.seconds:.0f} s{goes_on}", flush=True)
            has_run = True
    return has_run


def main(words: Sequence[str]) -> int:
    """Run the steps of a command line, or print their table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    names = [step.name for step in STEPS]
    parser.add_argument("step", nargs="*", help=f"of {', '.join(names)}; all without one")
    parser.add_argument("--table", action="store_true", help="only print what was found so far")
    parser.add_argument("--out", type=Path, default=Path("runs/gpu"), help="folder of the records")
    options = parser.parse_args(words)
    if unknown := [name for name in options.step if name not in names]:
        parser.error(f"no step {unknown[0]!r}; there are {', '.join(names)}")
    has_run = options.table or run_steps(options.step, options.out)
    print_table(Console(width=150), steps_table(options.out))
    return 0 if has_run else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
