"""passnet: find the graphs where a tensor compiler loses, write passes for them, prove their worth.

`api` has the doors for Python. A folder imports only from those before it:

    errors     every error type, and how foreign errors become ours
    core       records, jobs, hardware: what everything stands on
    graph      graphs as data: parse, print, identify, build and feed them
    inductor   what depends on the insides of torch's compilers
    data       from nets to graphs, subgraphs and datasets
    passes     pass folders: load, match, rewrite, plug in; generators of code; the library
    judge      reference and candidates in sandboxed processes, compared and timed; scores, suites
    bench      runs of candidates over suites, profiles
    agent      authors of passes, LLMs or programs
    train      rewards and the judge as a service, for whoever trains an LLM
    optimizer  whole nets made faster
    pages      tables, figures, reports and sites
    cli        the commands
"""

import importlib
from typing import TYPE_CHECKING, Any

from passnet.version import __version__

if TYPE_CHECKING:
    from passnet.api import (
        capture,
        export_with_passes,
        inductor_pass,
        load,
        onnx_library,
        onnx_rules,
        onnx_with_passes,
        optimize,
        passes_in_inductor,
    )

__all__ = [
    "__version__", "capture", "export_with_passes", "inductor_pass", "load", "onnx_library",
    "onnx_rules", "onnx_with_passes", "optimize", "passes_in_inductor",
]  # fmt: skip


def __dir__() -> list[str]:
    """Return the public names, also of functions that are not imported yet."""
    return [*__all__]


def __getattr__(name: str) -> Any:
    """Import a function on first use, so that `import passnet` does not import torch."""
    if name in __all__:
        return getattr(importlib.import_module("passnet.api"), name)
    raise AttributeError(f"module 'passnet' has no attribute {name!r}")
