"""Kernels that compute the activation after them: values, when they do, and cached graphs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._inductor.utils import run_and_get_code
from torch.nn import functional
from torch.utils._pytree import tree_leaves

from passnet.passes.inductor_pass import passes_in_inductor
from tests.passes.graphs import write_folder

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it

PASS = """
import torch
from passnet.passes import cpp

SOURCE = '''
#include "passnet_kernel.h"
extern "C" void scaled(const float* x, const float* w, float* out, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t i = 0; i < n; i++)
      out[r * n + i] = PASSNET_EPILOGUE(x[r * n + i] * w[i] + w[i]);
}
'''
KERNEL = cpp.kernel(SOURCE, "scaled")

guards = ("x, w: float32, contiguous, cpu", "x: shape (m, n)", "w: shape (n)")


def pattern(x, w):
    return x * w + w


def replacement_args(x, w):
    return x, w


def scaled(x, w):
    out = torch.empty_like(x)
    KERNEL(x, w, out, x.shape[0], x.shape[1])
    return out


def replacement_func():
    return scaled
"""

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "relu, in place": lambda x: functional.relu(x, inplace=True),
    "relu, a method": lambda x: x.relu(),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "gelu": functional.gelu,
    "gelu, tanh": lambda x: functional.gelu(x, approximate="tanh"),
}


def ops_called(folder: Path, net: Callable[..., object]) -> set[str]:
    """Compile a net of two arguments with a pass, compare it, and return the ops of kernels."""
    torch._dynamo.reset()
    x, w = torch.randn(5, 70), torch.randn(70)
    x[0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    with torch.no_grad(), passes_in_inductor(folder) as own:
        found, texts = run_and_get_code(torch.compile(net), x, w)
        assert own.num_matches or not own.reports
        exact = net(x.double(), w.double())  # eager torch's GELU of infinity is NaN in float32
        for value, right in zip(tree_leaves(found), tree_leaves(exact), strict=True):
            torch.testing.assert_close(value, right.float(), rtol=1e-5, atol=2e-6, equal_nan=True)
    words = " ".join(texts).replace("'", " ").split()
    return {word.rpartition("scaled_")[2] for word in words if "passnet_kernel.scaled_" in word}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("passes"), Scaled=PASS)


@pytest.fixture(scope="module")
def plain(folder: Path) -> set[str]:
    """The op of the kernel without an epilogue."""
    return ops_called(folder, lambda x, w: (x * w + w, x))


def ends(activation: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda x, w: activation(x * w + w) * 3


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_a_kernel_computes_the_activation_after_it(
    folder: Path, plain: set[str], name: str
) -> None:
    ops = ops_called(folder, ends(ACTIVATIONS[name]))
    assert len(ops) == 1 and ops != plain, "another op than that without an activation"


def read_twice(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x * w + w
    return torch.relu(y), y


@pytest.mark.parametrize(
    "net", [read_twice, ends(torch.exp), ends(functional.relu6), lambda x, w: x * w + w]
)
def test_what_is_no_activation_of_the_result_alone_stays(
    folder: Path, plain: set[str], net: Callable[..., object]
) -> None:
    assert ops_called(folder, net) == plain


OTHERS = {
    "without the macro": ("PASSNET_EPILOGUE", ""),
    "something is computed of the result": ("    return out", "    return out + 0"),
    "called twice": (
        "    return out",
        "    KERNEL(x, w, out, x.shape[0], x.shape[1])\n    return out",
    ),
    "another result": ("    return out", "    return x * w + w"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_kernels_that_do_not_write_the_result_last_stay(tmp_path: Path, name: str) -> None:
    text = PASS.replace(*OTHERS[name])
    assert text != PASS
    written = write_folder(tmp_path, Scaled=text)
    bare = ops_called(written, lambda x, w: x * w + w)
    assert ops_called(written, ends(torch.relu)) == bare


IN_ANOTHER_PROCESS = """
import sys, torch
from torch._dynamo.utils import counters
from passnet.passes.inductor_pass import passes_in_inductor

def net(x, w):
    return torch.tanh(x * w + w) * 3

x, w = torch.randn(3, 4), torch.randn(4)
with torch.no_grad(), passes_in_inductor(sys.argv[1]) as own:
    torch.testing.assert_close(torch.compile(net)(x, w), net(x, w))
hits = counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"]
print(own.num_matches, hits > 0)
"""


def test_a_cached_graph_finds_the_op_in_another_process(folder: Path, tmp_path: Path) -> None:
    own = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor")}
    caches = tmp_path / "one", tmp_path / "one", tmp_path / "another, which has lost the kernel"
    for cache, expected in zip(caches, ("1 False", "0 True", "0 True"), strict=True):
        done = subprocess.run(
            [sys.executable, "-c", IN_ANOTHER_PROCESS, str(folder)],
            env={**os.environ, **own, "PASSNET_CACHE": str(cache)},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        assert done.stdout.splitlines()[-1] == expected
