"""The baselines of a suite: every candidate that passnet brings, judged together, with records.

Run it with `python -m recipes.baselines SUITE FOLDER [--cores N] [--parts N] [--candidate NAME]`.
It takes hours, up to a minute a graph on a core, and can be resumed. Each core takes parts of the
tasks by turns:

1. `search` writes passes for the tasks of each part; its first correct state is kept as the output
   of `compiler`: folders `search` and `compiler`, when all are done;
2. all candidates, or those that are named, are judged on them;
3. graphs that were unstable, as the machine was too busy, are judged once more.

Then the parts are put together in FOLDER/run, with the trials that a library would choose, and the
rows of the table for a page are printed. Nothing else may run on the machine meanwhile.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

from benchmarks.choice import chosen_rows, winning_graphs
from benchmarks.search_start import main as write_starts
from passnet.bench.run_record import RUN_FILE, BenchRunInfo
from passnet.bench.scores import Row, read_rows, score_rows
from passnet.core.jobs.run_plan import RunShard
from passnet.core.records.serialise import encode, has_lines, read_json, write_json, write_text
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.suite.suite import load_suite

AUTHORS = ("compiler", "search")
CANDIDATES = (
    *("eager", "null", "inductor", "inductor@guarded", "inductor-precise", "aoti"),
    *(f"{author}{call}" for author in AUTHORS for call in ("", "@guarded", "@direct")),
)
CHOSEN = "search@guarded"
"""The candidate that a library of passes is made of."""

WRITING = ("--call", "guarded", "--rules", "open", "--turns", "5", "--seconds", "0.1")
JUDGING = ("--threads", "1", "--seconds", "0.15")

CHOICE_FILE = "choice.jsonl"
NOTABLE = 1.05
"""A graph is called faster or slower if all of its interval is further from 1 than this."""


def main(
    suite: str, folder: Path, num_cores: int, num_parts: int, names: Sequence[str] = CANDIDATES
) -> None:
    """Make the baselines of some candidates, and print their table."""
    folder.mkdir(parents=True, exist_ok=True)
    cores = sorted(os.sched_getaffinity(0))[:num_cores]
    start = time.monotonic()
    tasks = [task.name for task in load_suite(suite).tasks]
    shards = [RunShard(number, num_parts) for number in range(1, num_parts + 1)]
    shards = [shard for shard in shards if any(map(shard.has, tasks))]
    folders = {shard: folder / f"written-{shard.number}" for shard in shards}
    on_all(cores, folder, "agent", "run", suite, folders, ("--author", "search", *WRITING))
    _gather(folder, folders.values())
    print(f"written in {_took(start, cores)}", flush=True)
    start = time.monotonic()
    judged = {shard: folder / f"judged-{shard.number}" for shard in shards}
    candidates = [word for name in names for word in ("--candidate", name)]
    options = (*JUDGING, *candidates)
    on_all(cores, folder, "bench", "run", suite, judged, options)
    on_all(cores, folder, "bench", "run", suite, judged, (*options, "--retry"))
    print(f"judged in {_took(start, cores)}", flush=True)
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    parts = [word for part in judged.values() for word in ("--with", part.name)]
    run_passnet(folder, "bench", "run", "--suite", suite, "--out", run.name, "--resume", *options,
             *parts, log=folder / "run.log")  # fmt: skip
    info = read_json(run / RUN_FILE, BenchRunInfo)
    named = [
        replace(candidate, root=candidate.root and Path(candidate.root).name)
        for candidate in info.candidates
    ]
    write_json(run / RUN_FILE, replace(info, candidates=tuple(named)))
    library_rows = chosen_rows(read_rows(run), CHOSEN, winning_graphs(folders.values()))
    write_text(run / CHOICE_FILE, "".join(f"{encode(row).decode()}\n" for row in library_rows))
    print("\n".join(table_rows(rows_with_choice(run))))


def rows_with_choice(run: Path) -> list[Row]:
    """Return the trials of a run, then the trials of a library's choices, if any."""
    choice = run / CHOICE_FILE
    return [*read_rows(run), *(read_rows(choice) if has_lines(choice) else [])]


def table_rows(rows: Sequence[Row]) -> Iterator[str]:
    """Return the lines of a page's table: a candidate, its AS with the interval over tasks and
    repeats, AS64, and the shares of graphs that are correct, faster and slower.

    Correct is a share of the measured graphs. Faster and slower are shares of all graphs, and count
    correct graphs only.
    """
    scores = {scored.candidate: scored for scored in score_rows(rows)}
    for name in dict.fromkeys(row.candidate for row in rows):
        title = "what a library would choose" if name == "choice" else f"`{name}`"
        if name not in scores:
            yield f"| {title} | not measured, as all its trials are unstable |{' – |' * 5}"
            continue
        scored, own = scores[name], [row for row in rows if row.candidate == name]
        right = [row for row in own if row.smallest_t is not None and row.smallest_t <= CORRECT_AT]
        faster = sum((row.speedup_low or 0.0) > NOTABLE for row in right) / len(own)
        slower = sum((row.speedup_high or 1.0) < 1 / NOTABLE for row in right) / len(own)
        interval = scored.intervals["both"]
        cells = (
            title,
            f"{scored.suite.score:.3f}",
            f"{interval.low:.3f} – {interval.high:.3f}",
            f"{scored.suite.score_float64:.3f}",
            *(f"{100 * x:.1f}" for x in (scored.suite.columns.subgraph_correct, faster, slower)),
        )
        yield f"| {' | '.join(cells)} |"


def on_all(
    cores: Sequence[int], folder: Path, group: str, command: str, suite: str,
    outs: Mapping[RunShard, Path], options: Sequence[str],
) -> None:  # fmt: skip
    """Run a command of passnet on all parts of the tasks, on each core one at a time.

    Raises:
        SystemExit: on one it failed; the others have ended too.
    """
    free: SimpleQueue[int] = SimpleQueue()
    for core in cores:
        free.put(core)

    def on_one(shard: RunShard) -> None:
        out = outs[shard]
        run_passnet(folder, group, command, "--suite", suite, "--out", out.name, "--resume",
                 "--shard", f"{shard.number}/{shard.total}", *options,
                 log=folder / f"{out.name}.log")  # fmt: skip

    def pin() -> None:
        os.sched_setaffinity(0, {free.get()})  # of this thread, and of what it starts

    with ThreadPoolExecutor(len(cores), initializer=pin) as pool:
        list(pool.map(on_one, outs))


def run_passnet(folder: Path, *words: str, log: Path) -> None:
    """Run a command of passnet in a folder, and add its output to a file.

    Raises:
        SystemExit: it failed.
    """
    # of two runs in one folder for temporary files one would remove the other's
    temporary = folder.resolve() / f"tmp-{min(os.sched_getaffinity(0))}"
    temporary.mkdir(exist_ok=True)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "passnet.cli", *words]
    with log.open("a", encoding="utf-8") as stream:
        process = subprocess.run(
            command, cwd=folder, env=env, stdout=stream, stderr=stream, check=False
        )
    if process.returncode:
        sys.exit(
            f"passnet {' '.join(words[:2])} failed; {log} says why. Then begin again as before."
        )


def _gather(folder: Path, folders: Collection[Path]) -> None:
    """Collect the folders `search` and `compiler` from the parts of all cores."""
    for author in AUTHORS:
        shutil.rmtree(folder / author, ignore_errors=True)
    write_starts(str(folder / "compiler"), *map(str, folders))
    for part in folders:
        shutil.copytree(part / "passes", folder / "search", dirs_exist_ok=True)


def _took(start: float, cores: Collection[int]) -> str:
    return f"{(time.monotonic() - start) / 60:.0f} minutes on {len(cores)} cores"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--parts", type=int, default=6, help="the same when it goes on")
    parser.add_argument("--candidate", action="append", choices=CANDIDATES)
    options = parser.parse_args()
    name = str(Path(options.suite).resolve()) if Path(options.suite).is_file() else options.suite
    names = options.candidate or CANDIDATES
    main(name, options.folder, options.cores, options.parts, names)
