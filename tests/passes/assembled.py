"""Triton kernels of passes compiled for a GPU, on a machine without one, in a process of its own.

`python -m tests.passes.assembled 90` reads jobs as JSON from its input, runs the rewritten graphs
with launches that compile and do no more, and writes which kernels each launched. All of Triton's
compiler takes part, down to the assembler of CUDA; nothing is run.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from passnet.graph.fx.build import build
from passnet.graph.spec import Graph
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes
from tests.passes.interpreted import ROOT, Job, tensors


def run_assembled(jobs: Sequence[Job], capability: int, cache: Path) -> dict[str, list[str]]:
    """The kernels that each job launched, by its name.

    Args:
        jobs: what to run.
        capability: of the GPU to compile for, such as 90.
        cache: where Triton keeps what it compiles.
    """
    environment = {**os.environ, "TRITON_CACHE_DIR": str(cache)}
    environment.pop("TRITON_INTERPRET", None)
    completed = subprocess.run(
        [sys.executable, "-m", "tests.passes.assembled", str(capability)],
        input=msgspec.json.encode(jobs),
        env=environment,
        cwd=ROOT,
        capture_output=True,
        check=False,
        timeout=1800,
    )
    assert completed.returncode == 0, completed.stderr.decode()[-3000:]
    return msgspec.json.decode(completed.stdout, type=dict[str, list[str]])


def main() -> None:
    """Do the jobs of the input."""
    jobs = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Job])
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    launched: list[str] = []
    compile_only(int(sys.argv[1]), launched.append)
    kernels: dict[str, list[str]] = {}
    with torch.no_grad(), output:
        for case in jobs:
            graph = Graph(parse_program(case.text), case.tensors)
            module = build(graph.program)
            inputs = tensors(graph, make_inputs(graph, "fresh", seed=0))
            apply_passes(module, load_passes(inspect_folder(Path(case.folder))), inputs)
            module(*inputs)
            kernels[case.name] = list(launched)
            launched.clear()
        output.write(msgspec.json.encode(kernels))


class _Driver:
    """What Triton's compiler asks of a driver."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: int) -> int:
        return 0


def compile_only(capability: int, note: Callable[[str], None]) -> None:
    """Let every launch of a Triton kernel compile it for a GPU, and note its name instead."""
    from triton.backends.compiler import GPUTarget  # pyrefly: ignore
    from triton.runtime import driver  # pyrefly: ignore
    from triton.runtime.jit import JITFunction  # pyrefly: ignore

    driver.set_active(_Driver(GPUTarget("cuda", capability, 32)))

    def launcher(kernel: Any, grid: Any) -> Callable[..., None]:
        def launch(*args: Any, **kwargs: Any) -> None:
            compiled = kernel.run(*args, grid=grid, warmup=True, **kwargs)
            assert compiled.asm["cubin"], "a kernel that compiled has machine code"
            note(kernel.fn.__name__)

        return launch

    JITFunction.__getitem__ = launcher


if __name__ == "__main__":
    main()
