"""Tools that try and pick as passnet does, on nets that people deploy, one thread of a CPU.

Run it with `python -m benchmarks.peers FOLDER [--peer NAME] [--net NAME]` where the peers are
installed (`pip install olive-ai onnxruntime onnxoptimizer`, `pip install pruna`), each peer perhaps
with a Python of its own. Each net and peer have a process of their own, in which all ways of the
peer are timed in turns with eager torch; its record is a line of FOLDER/records.jsonl. `--table`
prints what there is.
"""

import argparse
import copy
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch.utils._pytree import tree_flatten, tree_leaves

from benchmarks.peers_ways import DISTRIBUTIONS, NET, NETS, PEERS, Case
from passnet.data.capture.mismatched_wheels import import_torchvision
from passnet.judge.timing.rounds import time_calls
from passnet.judge.verdict.precision import relative_error
from passnet.pages.tables.tables import Table, print_table

RECORDS = "records.jsonl"
SECONDS = 4.0
"""Time for the rounds of each way."""
TOLERANCE = 5e-2
"""The relative error up to which a way of lower precision counts."""
FLOAT32 = 1e-4
"""The relative error up to which a way counts as float32."""
NUM_FRESH = 3


def _error(run: Callable[..., Any], case: Case, exact: torch.nn.Module) -> float:
    """Return the largest relative error of an output against float64 on fresh inputs."""
    errors = []
    for seed in range(100, 100 + NUM_FRESH):
        call = case.fresh(seed)
        true = exact(*(x.double() if x.is_floating_point() else x for x in call))
        pairs = zip(tree_leaves(run(*call)), tree_leaves(true), strict=True)
        errors += [relative_error(own.float().numpy(), right.numpy()) for own, right in pairs]
    return max(errors)


def _form(outputs: Any) -> Any:
    """Return structure, shapes and types of outputs."""
    leaves, structure = tree_flatten(outputs)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def _other_size(run: Callable[..., Any], case: Case) -> str:
    """Return what becomes of a call of another size."""
    try:
        outputs = tree_leaves(run(*case.other))
        pairs = zip(outputs, tree_leaves(case.net(*case.other)), strict=True)
        error = max(relative_error(own.float().numpy(), right.numpy()) for own, right in pairs)
    except Exception as cause:  # noqa: BLE001 (of foreign code; the record says why)
        return f"{type(cause).__name__}: {cause}"[:200]
    return "right" if error < TOLERANCE else f"off by {error:.0e}"


def _cpu_s() -> float:
    """Return the processor seconds of this process and of those it waited for."""
    return sum(os.times()[:4])


def measure(peer: str, name: str) -> dict[str, Any]:
    """Build and time one net in all ways of a peer, in this process."""
    import_torchvision()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    case = NETS[name]()
    record: dict[str, Any] = {"net": name, "peer": peer, "ways": {}, "torch": torch.__version__}
    record["version"] = importlib.metadata.version(DISTRIBUTIONS[peer])
    runs: dict[str, Callable[..., Any]] = {"eager": case.net}
    with tempfile.TemporaryDirectory() as made, torch.no_grad():
        os.chdir(made)  # Olive leaves a cache where it runs
        exact = copy.deepcopy(case.net).double()
        right = _form(case.net(*case.args))
        record["ways"]["eager"] = {"error": _error(case.net, case, exact)}
        for way, build in PEERS[peer].items():
            start, start_cpu_s = time.perf_counter(), _cpu_s()
            try:
                result = build(copy.deepcopy(case), Path(made))
                output = result.run(*case.args)
                own = {"build_s": time.perf_counter() - start, "cpu_s": _cpu_s() - start_cpu_s}
                own["error"] = _error(result.run, case, exact)
                own |= {"returns": result.kind, "chosen": result.chosen}
                own["same_outputs"] = _form(output) == right
                runs[way] = result.run
            except (Exception, SystemExit) as cause:  # noqa: BLE001 (as above)
                traceback.print_exc()
                own = {"reason": f"{type(cause).__name__}: {cause}"[:300]}
            record["ways"][way] = own
        ways = {way: (lambda run=run: run(*case.args)) for way, run in runs.items()}
        times = time_calls(ways, SECONDS, always=tuple(ways))
        for way, run in runs.items():
            record["ways"][way] |= {"ms": times.ms(way), "other_size": _other_size(run, case)}
    return record


def tables(records: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Yield a table of the fastest way of each peer in float32, and one up to the tolerance."""
    for title, most in (("float32", FLOAT32), ("lower precision", TOLERANCE)):
        rows: list[tuple[str, ...]] = []
        for record in records:
            eager = record["ways"]["eager"]
            within = {
                name: way
                for name, way in record["ways"].items()
                if way.get("error", 1.0) <= most and name != "eager"
            }
            spent_s = sum(way.get("cpu_s", 0.0) for way in record["ways"].values())
            if not within:
                rows.append((record["net"], record["peer"], *["–"] * 7))
                continue
            name, way = min(within.items(), key=lambda pair: pair[1]["ms"])
            numbers = f"{way['ms']:.3f}", f"{eager['ms'] / way['ms']:.2f}", f"{way['error']:.0e}"
            times = f"{way['cpu_s']:.0f} of {spent_s:.0f}"
            rows.append(
                (record["net"], record["peer"], name, *numbers, times, way["returns"])
                + (way["other_size"],)
            )
        columns = ("net", "peer", "fastest way", "ms", "over eager", "error", "build, CPU s of all")
        yield Table(title, (*columns, "returns", "other size"), rows)


def main(folder: Path, peers: Sequence[str], names: Sequence[str]) -> None:
    """Measure what has no record yet, each net and peer in a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / RECORDS
    done = {(each["net"], each["peer"]) for each in _records(file)}
    for peer in peers:
        if importlib.util.find_spec(peer) is None:
            text = f"{peer} is not installed here: pip install {DISTRIBUTIONS[peer]}, and run again"
            print(text, file=sys.stderr)
            continue
        for name in [name for name in names if (name, peer) not in done]:
            command = [sys.executable, "-m", "benchmarks.peers", "--one", peer, name]
            own = {**os.environ, NET: name, "OLIVE_DISABLE_TELEMETRY": "1"}
            own["PRUNA_METRICS_ENABLED"] = "false"
            made = folder.resolve() / f"{peer}-{name}.json"
            with (folder / f"{peer}-{name}.log").open("w", encoding="utf-8") as log:
                code = subprocess.run(
                    [*command, str(made)], stdout=log, stderr=log, env=own, check=False
                ).returncode
            if code or not made.exists():
                print(f"{peer} on {name} failed; {log.name} says why", file=sys.stderr)
                continue
            with file.open("a", encoding="utf-8") as stream:
                stream.write(made.read_text(encoding="utf-8") + "\n")
            made.unlink()
            print(f"{peer} on {name} is done", flush=True)


def _records(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_bytes().splitlines()]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        text = json.dumps(measure(*sys.argv[2:4]))
        Path(sys.argv[4]).write_text(text, encoding="utf-8")
        sys.exit()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", action="append", choices=PEERS)
    parser.add_argument("--net", action="append", choices=NETS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        main(options.folder, options.peer or [*PEERS], options.net or [*NETS])
    for table in tables(_records(options.folder / RECORDS)):
        print_table(Console(width=200), table)
