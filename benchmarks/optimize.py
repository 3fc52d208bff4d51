"""Whole nets by every way to run them: eager, torch.compile, AOTInductor, frozen, `optimize`.

Run it with `python -m benchmarks.optimize [RECORDS [THREADS [NUM_NETS [BATCH]]]]`. Nets are those
that were drawn from `captures/` by a rule that was written down before the first measurement
(`draw_nets`); captures have grown since, from which it would draw others, so that they are in
`optimize_nets.txt`. BATCH repeats the inputs of those that name such an axis. Each net is optimised
in a process of its own, with freezing, and what `optimize` would have returned without is the
fastest of the same ways with folded weights compared at each call. What is done is kept in the file
RECORDS and not done again; a run that is interrupted prints the tables of what there is.

Building takes most of the time and need not be quiet: the same with `build` before RECORDS does
that alone, into the folder of the name of RECORDS, from where the other goes on; of what cannot be
kept there, as `torch.compile`, the kernels are in Inductor's own cache.
"""

import json
import math
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from passnet.api import optimize_calls
from passnet.core.records.serialise import decode
from passnet.core.terminal.progress import progress
from passnet.data.capture.catalog import build_entry
from passnet.data.capture.net import input_values
from passnet.data.capture.recapture import axis_sizes, resized_value
from passnet.optimizer.record import BackendRecord, OptimizedRecord
from passnet.optimizer.settings import OptimizeSettings
from passnet.pages.tables.tables import Table, markdown, print_table

NETS = Path(__file__).with_name("optimize_nets.txt")
NUM_NETS = 40
LIMIT_S = 2400.0
"""Seconds that a net may take; what takes longer is recorded as that."""

BUDGET_S = 1500.0
"""Seconds after which no further way of a net is built."""

OTHERS = ("openvino_frozen", "onnxruntime_frozen")
BACKENDS = (
    "compile",
    "graph",
    "aot",
    "aot_packed",
    "aot_packed_frozen",
    "aot_frozen",
    "aot_autotune_frozen",
    *OTHERS,
    "compile_autotune",
)
"""Other runtimes than torch, and all ways that are measured."""

RIVALS = ("eager", "compile", "aot")
FROZEN_RIVALS = (*RIVALS, "compile_autotune", "aot_frozen", *OTHERS)


def drawn(count: int = NUM_NETS) -> list[str]:
    """The nets to measure."""
    return NETS.read_text(encoding="utf-8").split()[:count]


class BuiltError(Exception):
    """Ends an optimisation before the first time is taken."""


def build(entry: str, folder: Path, threads: int, batch: int) -> None:
    """Build the ways of one net into its folder, and time none."""

    def told(record: BackendRecord) -> None:
        print(f"{entry}: {record.engine} {record.status} in {record.build_s:.0f} s", flush=True)
        if record.engine == BACKENDS[-1]:
            raise BuiltError

    net = build_entry(entry)
    sizes = {"batch": batch} if batch else {}
    if not sizes.keys() <= axis_sizes(net).keys():
        return
    inputs = input_values(net, partial(resized_value, sizes=sizes))
    settings = OptimizeSettings(freeze=True, budget_s=BUDGET_S, threads=threads, backends=BACKENDS)
    with suppress(BuiltError):
        optimize_calls(net.module, [inputs], settings, folder, True, told)


@dataclass(frozen=True)
class Request:
    """A net to measure, by which backends and authors; a batch of 0 is the net's own."""

    entry: str
    threads: int
    folder: Path
    batch: int = 0
    engines: Sequence[str] = BACKENDS
    authors: Sequence[str] = ()

    def arguments(self) -> list[str]:
        """Return the command line of `passnet`."""
        sizes = ["--size", f"batch={self.batch}"] if self.batch else []
        return ["optimize", self.entry, "--json", "--freeze",
                "--threads", str(self.threads), "--budget", f"{BUDGET_S:g}s", "--seconds", "1",
                "--out", str(self.folder), "--resume", *sizes,
                *(word for engine in self.engines for word in ("--backend", engine)),
                *(word for author in self.authors for word in ("--author", author))]  # fmt: skip


def measure(request: Request, limit_s: float = LIMIT_S) -> dict[str, object]:
    """Return the records of one net, made in a process of its own; or why there are none."""
    entry, batch = request.entry, request.batch
    found: dict[str, object] = {"entry": entry, "threads": request.threads, "batch": batch or None}
    if batch and "batch" not in axis_sizes(build_entry(entry)):
        return {**found, "error": "its inputs name no batch"}
    command = [sys.executable, "-m", "passnet.cli", *request.arguments()]
    try:
        run = subprocess.run(command, capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return {**found, "error": f"not done in {limit_s:g} s"}
    lines = run.stderr.decode(errors="replace").strip().splitlines() or ["no word"]
    start = run.stdout.find(b"{")
    if run.returncode or start < 0:
        return {**found, "error": lines[-1][:300]}
    return {**found, "record": json.loads(run.stdout[start:])}


def table_of(records: Sequence[dict[str, object]]) -> list[Table]:
    """A row for each net, and what they come to; without and with freezing."""
    return [
        _table(records, False, "Whole nets, speedup over eager torch", RIVALS),
        _table(records, True, "The same of weights that will not change", FROZEN_RIVALS),
    ]


def _table(
    records: Sequence[dict[str, object]], is_frozen: bool, title: str, rivals: Sequence[str]
) -> Table:
    table = Table(title, ("net", "eager ms", *rivals[1:], "optimize", "by", "over best"))
    gains: dict[str, list[float]] = defaultdict(list)
    for record in records:
        if "record" not in record:
            table.rows.append((str(record["entry"]), str(record["error"])[:60],
                               *("–" for _ in table.heads[2:])))  # fmt: skip
            continue
        [form] = decode(json.dumps(record["record"]), OptimizedRecord).forms
        usable = {engine.engine: returned_ms(engine, is_frozen) for engine in form.engines}
        fastest = {name: ms for name, ms in usable.items() if ms is not None}
        chosen = min(fastest, key=fastest.__getitem__)
        own = fastest[chosen]
        by_name = {engine.engine: engine for engine in form.engines}
        # as a user of torch would call them; by other runtimes, as the returned net would
        times = {
            name: by_name[name].plain_ms or by_name[name].ms for name in rivals if name in by_name
        }
        best = min(ms for ms in times.values() if ms is not None)
        shares = {name: form.eager_ms / ms if ms else None for name, ms in times.items()}
        for name, share in (*shares.items(), ("optimize", form.eager_ms / own),
                            ("over best", best / own)):  # fmt: skip
            if share is not None:
                gains[name].append(share)
        table.rows.append((
            str(record["entry"]),
            f"{form.eager_ms:.3f}",
            *(_number(shares.get(name)) for name in rivals[1:]),
            f"{form.eager_ms / own:.2f}",
            chosen,
            f"{best / own:.2f}",
        ))  # fmt: skip
    if gains:
        means = {name: math.exp(statistics.fmean(map(math.log, gains[name]))) for name in gains}
        over = gains["over best"]
        shown = [_number(means.get(name)) for name in (*rivals[1:], "optimize")]
        table.rows.append(("geometric mean", "", *shown, "", _number(means["over best"])))
        slower = sum(share < 0.98 for share in over)
        faster = sum(share > 1.05 for share in over)
        note = f"{len(over)} nets; {slower} slower than the best of the others by more than 2 %, "
        return Table(table.title, table.heads, table.rows, f"{note}{faster} faster by 5 %.")
    return table


def returned_ms(engine: BackendRecord, is_frozen: bool) -> float | None:
    """Milliseconds of the returned net if this were the way."""
    if engine.engine == "eager":
        return engine.plain_ms
    if engine.engine.endswith("frozen") and not is_frozen:
        return engine.compared_ms
    return engine.ms


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def folder_of(records: Path, entry: str) -> Path:
    """Where what is built of a net lies."""
    return records.with_suffix("") / entry.replace("/", "-")


def build_all(records: Path, threads: int, count: int, batch: int) -> None:
    """Build all nets that are not yet built, each in a process of its own."""
    for entry in drawn(count):
        folder = folder_of(records, entry)
        if not (folder / "form-0" / BACKENDS[-1] / "engine.json").exists():
            command = [sys.executable, "-m", "benchmarks.optimize", "build-one", entry,
                       str(folder), str(threads), str(batch)]  # fmt: skip
            with suppress(subprocess.TimeoutExpired):
                subprocess.run(command, timeout=LIMIT_S, check=False)


def main(records: Path, threads: int, count: int, batch: int) -> None:
    """Measure what is not yet measured, and print the tables."""
    done: dict[str, dict[str, object]] = {}
    if records.exists():
        for line in records.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            done[record["entry"]] = record
    chosen = drawn(count)
    try:
        with progress("optimising nets", len(chosen)) as step, records.open("a") as file:
            for entry in chosen:
                if entry not in done:
                    request = Request(entry, threads, folder_of(records, entry), batch)
                    done[entry] = measure(request)
                    file.write(json.dumps(done[entry]) + "\n")
                    file.flush()
                step(entry)
    except KeyboardInterrupt:
        pass
    tables = table_of([done[entry] for entry in chosen if entry in done])
    for table in tables:
        print_table(Console(width=150), table)
    records.with_suffix(".md").write_text(markdown(tables), encoding="utf-8")


if __name__ == "__main__":
    what, given = "measure", sys.argv[1:]
    if given and given[0].startswith("build"):
        what, *given = given
    if what == "build-one":
        entry, folder, threads, batch = given
        build(entry, Path(folder), int(threads), int(batch))
    else:
        defaults = ("runs/optimize.jsonl", "1", str(NUM_NETS), "0")
        records, *counts = (*given, *defaults[len(given) :])
        (main if what == "measure" else build_all)(Path(records), *map(int, counts))
