"""The memory of workers that serve one optimised net: loaded by each, and before a fork.

Run it with `python -m benchmarks.serving [BACKEND ...] [--workers 1 2 4] [--layers 12]`. A BERT of
random weights is optimised for one row of 128 tokens, with weights that will not change.
Memory is the proportional set size of all processes: a page that several share counts once.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from rich.console import Console

import passnet
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.pages.tables.tables import Table, print_table

BACKENDS = ("eager", "aot", "aot_frozen", "onnxruntime_frozen", "openvino_frozen")
NUM_CALLS = 3


def bert(num_layers: int) -> torch.nn.Module:
    """Return a BERT with random weights, the same ones each time."""
    transformers = import_with_torchvision("transformers")
    torch.manual_seed(0)
    return transformers.BertModel(transformers.BertConfig(num_hidden_layers=num_layers)).eval()


def serve(folder: str, num_layers: int, num_forks: int) -> None:
    """Load the net, call it, and wait: in this process, or in children of it."""
    torch.set_num_threads(1)
    net = bert(num_layers)
    fast = passnet.load(folder, net) if folder else net
    ids = torch.arange(128)[None]
    pids = []
    for _ in range(num_forks):
        pid = os.fork()
        if not pid:
            pids = []
            break
        pids.append(pid)
    if not pids:
        with torch.no_grad():
            for _ in range(NUM_CALLS):
                fast(input_ids=ids)
    print(os.getpid(), flush=True)
    signal.pause()


@contextmanager
def workers(folder: str, num_layers: int, count: int, forks: bool) -> Iterator[list[int]]:
    """Run workers, and yield their process ids once all have made their calls."""
    own = [sys.executable, "-m", "benchmarks.serving", "--serve", folder, str(num_layers)]
    commands = [[*own, str(count)]] if forks else [[*own, "0"] for _ in range(count)]
    started = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    pids: list[int] = []
    try:
        for process in started:
            assert process.stdout is not None
            pids += [int(process.stdout.readline()) for _ in range(1 + count * forks)]
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for process in started:
            process.kill()
            process.wait()


def shared_mib(pids: Sequence[int]) -> float:
    """Return the memory of some processes together, in MiB."""
    total = 0
    for pid in pids:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        total += int(text.partition("Pss:")[2].split()[0])
    return total / 1024


def main(backends: Sequence[str], counts: Sequence[int], num_layers: int) -> None:
    """Print the table."""
    table = Table(
        f"Memory of workers of a BERT of {num_layers} layers, in MiB",
        ("backend", "loaded", *(f"{count} workers" for count in counts)),
        note="eager: the net alone. fork: loaded once, in the process that forks them.",
    )
    ids = torch.arange(128)[None]
    for backend in backends:
        with tempfile.TemporaryDirectory() as made:
            folder = "" if backend == "eager" else f"{made}/net"
            if folder:
                named = {"backends": (backend,), "seconds": 0.05, "freeze": True, "threads": 1}
                inputs = [{"input_ids": ids}]
                passnet.optimize(bert(num_layers), inputs=inputs, out=folder, **named)
            for forks in (False, True):
                row = []
                for count in counts:
                    with workers(folder, num_layers, count, forks) as pids:
                        row.append(f"{shared_mib(pids):.0f}")
                table.rows.append((backend, "before a fork" if forks else "by each", *row))
    print_table(Console(width=100), table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
        parser.add_argument("backends", nargs="*", default=BACKENDS)
        parser.add_argument("--workers", type=int, nargs="+", default=(1, 2, 4))
        parser.add_argument("--layers", type=int, default=12)
        options = parser.parse_args()
        main(options.backends, options.workers, options.layers)
