"""Kernels that a replacement makes at its first call: inlined, and found by cached graphs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from passnet.core.records.folders import CACHE_VARIABLE
from passnet.passes import cpp
from passnet.passes.inductor_pass import InductorPass
from passnet.passes.kernel_list import known_kernels
from tests.passes.graphs import write_folder
from tests.passes.test_inductor_pass import KERNEL, called, net, rewritten

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it

LATE = """
import functools

import torch

from passnet.passes import cpp

SOURCE = '''
extern "C" void relu_of_sum(const float* x, const float* y, float* out) {
  for (long i = 0; i < SIZE; i++) out[i] = x[i] + y[i] > 0 ? x[i] + y[i] : 0;
}
'''
CALLS = []


@functools.cache
def kernel(source):
    return cpp.kernel(source, "relu_of_sum")


def guard(x, y):
    return (x.dtype, x.stride()) == (y.dtype, y.stride())


def pattern(x, y):
    return torch.relu(x + y)


def replacement_args(x, y):
    return x, y


def fused(x, y):
    CALLS.append(0)
    out = cpp.empty_strided(tuple(x.shape), x.stride(), x.dtype)
    kernel(SOURCE.replace("SIZE", str(x.numel())))(x, y, out)
    return out


def replacement_func():
    return fused
"""
"""A folder like those of the shipped library, with a kernel for each size."""


def listed(cache: Path) -> list[str]:
    [path] = (cache.parent / "kernels").iterdir()
    return path.read_text().splitlines()


def test_a_kernel_of_the_first_call_is_inlined_and_listed(tmp_path: Path, cache: Path) -> None:
    own = InductorPass(write_folder(tmp_path / "passes", Fuse=LATE))
    x, y = torch.randn(4, 3).T, torch.randn(4, 3).T
    before, [token] = own.uuid(), listed(cache)
    module = rewritten(own, x, y)
    assert own.num_matches == 1 and "passnet." not in called(module)[0]
    again, name = listed(cache)
    assert again == token and hasattr(torch.ops.passnet_kernel, name) and own.uuid() == before
    torch.testing.assert_close(module(x, y), net(x, y))
    assert module(x, y).stride() == net(x, y).stride()


def test_a_list_that_cannot_be_written_leaves_an_op(tmp_path: Path, cache: Path) -> None:
    own = InductorPass(write_folder(tmp_path / "passes", Fuse=LATE))
    [path] = (cache.parent / "kernels").iterdir()
    path.unlink()
    path.mkdir(mode=0o755)
    module = rewritten(own, torch.randn(3, 4), torch.randn(3, 4))
    assert called(module)[0].startswith("passnet.Fuse_")


def test_where_loading_makes_kernels_no_list_is_kept(tmp_path: Path, cache: Path) -> None:
    at_load = "\ncpp.kernel(SOURCE.replace('SIZE', '1'), 'relu_of_sum')\n"
    for number, (text, is_op) in enumerate(((KERNEL, False), (LATE + at_load, True))):
        own = InductorPass(write_folder(tmp_path / str(number), Fuse=text))
        module = rewritten(own, torch.randn(3, 4), torch.randn(3, 4))
        assert called(module)[0].startswith("passnet.Fuse_") == is_op
    assert not (cache.parent / "kernels").exists(), "caches of another machine find their graphs"


SCALE = 'extern "C" void NAME(const float* x, float* out) { out[0] = 2 * x[0]; }'


def compiled_kernel(cache: Path, name: str) -> tuple[Path, str]:
    cpp.kernel(SCALE.replace("NAME", name), name)
    [path] = cache.glob("*.so")
    return path, f"{name}_{path.stem.replace('-', '_')}"


def test_torch_finds_the_op_of_a_kernel_in_the_cache_by_its_name(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, name = compiled_kernel(cache, "found")
    known_kernels("digest")  # as making a pass does
    with monkeypatch.context() as without_compiler:
        without_compiler.setenv("CXX", "no compiler")
        assert not hasattr(torch.ops.passnet_kernel, name), "nor an op that does nothing"
    out = torch.zeros(1)
    getattr(torch.ops.passnet_kernel, name).default(torch.ones(1), out)
    assert out.item() == 2
    assert not hasattr(torch.ops.passnet_kernel, name.replace(name[-5:], "00000"))


def test_what_others_may_write_to_is_not_loaded(cache: Path) -> None:
    path, name = compiled_kernel(cache, "writable")
    path.chmod(0o666)
    assert not hasattr(torch.ops.passnet_kernel, name)
    token = known_kernels("digest")
    assert known_kernels("digest") == token
    [kept] = (cache.parent / "kernels").iterdir()
    kept.chmod(0o666)
    assert known_kernels("digest") not in (token, "")


def test_a_list_that_names_a_lost_kernel_gives_way_to_another(cache: Path) -> None:
    path, name = compiled_kernel(cache, "lost")
    token = known_kernels("digest", [name])
    path.unlink()
    assert known_kernels("digest") not in (token, "") and len(listed(cache)) == 1


def test_lists_have_a_token_each(cache: Path) -> None:
    assert known_kernels("one") != known_kernels("two")
    first = known_kernels("one")
    shutil.rmtree(cache.parent / "kernels")
    assert known_kernels("one") != first


COMPILED = """
import subprocess, sys, torch
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code
from passnet.passes.inductor_pass import passes_in_inductor

def net(x, y):  # in which nothing is left for g++ to compile with torch's headers
    return torch.relu(x + y)

def values(rows):
    return torch.randn(4, rows).T, torch.randn(4, rows).T

folder, *words = sys.argv[1:]
with torch.no_grad(), passes_in_inductor(folder) as own:
    if "behind" in words:  # another process compiles after this one has made its pass
        subprocess.run([sys.executable, "-c", OWN, folder], check=True, stdout=sys.stderr)
    calls = own.passes[0].replacement.__globals__["CALLS"]
    compiled = torch.compile(net, dynamic="dynamic" in words)
    for rows in (3, 5, 8) if "dynamic" in words else (3,):
        found, texts = run_and_get_code(compiled, *values(rows))
        num_calls = len(calls)
        for _ in range(2):
            x, y = values(rows)
            found, expected = compiled(x, y), net(x, y)
            torch.testing.assert_close(found, expected)
            assert found.stride() == expected.stride()
hits = counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"]
print(own.num_matches, hits > 0, len(calls) - num_calls)
"""


class Process:
    """New processes that share an Inductor cache, a cache of ours, and a pass folder."""

    def __init__(self, tmp_path: Path, inductor: Path) -> None:
        self.ours = tmp_path / "ours"
        self.passes = write_folder(tmp_path / "passes", Fuse=f"{LATE}# {tmp_path.name}\n")
        folders = {CACHE_VARIABLE: str(self.ours), "TORCHINDUCTOR_CACHE_DIR": str(inductor)}
        self.environment = {**os.environ, **folders}

    def run(self, *words: str) -> str:
        """Return matches, whether the cache had the graph, and calls of the replacement at run."""
        done = subprocess.run(
            [sys.executable, "-c", f"OWN = {COMPILED!r}\n{COMPILED}", str(self.passes), *words],
            env=self.environment, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def inductor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inductor")  # which probes the compiler first


@pytest.fixture
def process(tmp_path: Path, inductor: Path) -> Process:
    return Process(tmp_path, inductor)


COMPILES, FINDS = "1 False 0", "0 True 0"


@pytest.mark.slow
def test_a_warm_cache_calls_the_kernel_in_another_process(process: Process) -> None:
    assert process.run() == COMPILES
    assert process.run() == FINDS
    write_folder(process.passes, Fuse=LATE)
    assert process.run() == COMPILES, "another pass, another graph"


@pytest.mark.slow
def test_a_graph_whose_kernel_is_lost_is_compiled_anew(process: Process) -> None:
    assert process.run() == COMPILES
    shutil.rmtree(process.ours)
    assert process.run() == COMPILES
    for path in (process.ours / "cpp").iterdir():
        path.unlink()
    assert process.run() == COMPILES


@pytest.mark.slow
def test_a_process_finds_kernels_that_another_made_since(process: Process) -> None:
    assert process.run("behind") == FINDS


@pytest.mark.slow
def test_a_kernel_for_each_size_stays_an_op_where_sizes_vary(process: Process) -> None:
    num_matches, _, num_calls = process.run("dynamic").split()
    assert (num_matches, num_calls) == ("1", "2"), "one graph, which calls Python"
