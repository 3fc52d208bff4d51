"""passnet: find the graphs where a tensor compiler loses, write passes for them, prove their worth.

The folders are in the way of the data; each imports only from those before it:

    errors     every error type, and how foreign errors become ours
    records    what is written and read: JSON lines, Parquet, dtypes as numpy stores them
    jobs       work on many items: processes with limits, executors, run folders
    graph      graphs as data: parse, print, identify, build and feed them
    passes     pass folders: load, match, rewrite, plug into torch.compile
    extract    from nets to graphs
    mine       from graphs to subgraphs
    dataset    subgraphs as Parquet: build, ask, verify, split, export
    score      ES_t, AS and intervals: pure arithmetic
    suite      benchmarks: tasks selected and admitted
    judge      reference and candidates in processes of their own, compared and timed
    bench      runs of candidates over suites
    report     tables, figures, listings
    agent      authors of passes, llms or programs, and what is learned from them
    service    the judge behind a port, for whoever trains an llm
    train      llms that learn to write passes, with the judge as the reward
    optimizer  whole nets made faster
    profiling  where default compilation loses, on subgraphs and nets
    site       runs as pages
    cli        the commands
"""

import importlib
from typing import TYPE_CHECKING, Any

from passnet.version import __version__

if TYPE_CHECKING:
    from passnet.data.capture.capture import capture
    from passnet.optimizer.optimize import optimize
    from passnet.optimizer.package import load

__all__ = ["__version__", "capture", "load", "optimize"]

_LAZY = {
    "capture": "passnet.data.capture.capture",
    "load": "passnet.optimizer.package",
    "optimize": "passnet.optimizer.optimize",
}


def __getattr__(name: str) -> Any:
    """Import a function on first use, so that `import passnet` does not import torch."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'passnet' has no attribute {name!r}")
