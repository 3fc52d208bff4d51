"""Calls with indices in range may be run by what raises no error for others."""

import json
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from passnet.optimizer.backends.backend import build_backend
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.agreement import EagerComparison
from passnet.optimizer.compare.fresh_values import ANY_NUMBER, index_bounds
from passnet.optimizer.compare.outputs import Agreement

IDS = torch.tensor([[3, 5, 11, 7]])


class TokenNet(torch.nn.Module):
    """Words, their kinds, and a mask, as a language model takes them."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds = torch.nn.Embedding(40, 8), torch.nn.Embedding(2, 8)
        self.rest = torch.nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor, kinds: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.rest(self.words(ids) + self.kinds(kinds))
        return hidden * mask[..., None].to(hidden.dtype)


def token_call(**others: torch.Tensor) -> NetCall:
    tensors = {"ids": IDS, "kinds": torch.zeros_like(IDS), "mask": torch.ones_like(IDS)} | others
    return NetCall(TokenNet().eval(), tuple(tensors.values()), {})


def agreement(call: NetCall, wrong_above: int = 40) -> Agreement:
    """Of a way that wraps an index around instead of raising an error."""

    def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        ids, kinds, mask = tensors
        with torch.no_grad():
            outputs = call.net(ids % 40, kinds % 2, mask)
        return [outputs * (1 + (ids >= wrong_above).any())]

    return EagerComparison(call).agreement(call.built("folded", run, is_frozen=True))


def test_bounds_are_the_rows_of_the_tables_that_an_argument_indexes() -> None:
    assert agreement(token_call()).index_bounds == ((0, 39), (0, 1), (0, ANY_NUMBER))


def test_what_is_wrong_up_to_the_bounds_alone_is_right_within_narrower_ones() -> None:
    """39 is in no example, and drawn in every set within the widest bounds."""
    found = agreement(token_call(), wrong_above=39)
    assert found.wrong is None and found.index_bounds == ((3, 11), (0, 0), (1, 1))


def test_what_may_end_the_process_is_asked_for_indices_in_range_alone() -> None:
    call = token_call()

    def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        ids, kinds, _ = tensors
        assert ids.min() >= 0 and ids.max() < 40 and kinds.min() >= 0 and kinds.max() < 2
        with torch.no_grad():
            return [call.net(*tensors)]

    entry = replace(call.built("compiled", run), ends_process=True)
    found = EagerComparison(call).agreement(entry)
    assert found.wrong is None and found.index_bounds == ((0, 39), (0, 1), (0, ANY_NUMBER))
    found = EagerComparison(call, finite=True).agreement(entry)
    assert found.wrong is None and not found.index_bounds


def test_what_may_end_the_process_for_floats_is_wrong_or_bounded() -> None:
    for refused, is_bounded in (("nan", True), ("1024", False)):

        def function(x: torch.Tensor, refused: str = refused) -> torch.Tensor:
            bad = x.isfinite().logical_not() if refused == "nan" else x.abs() > 500
            if bad.any():
                raise IndexError
            return x + 1

        call = NetCall(function, (torch.ones(8),), {})
        run = lambda tensors: [tensors[0] + 1]  # noqa: E731
        entry = replace(call.built("compiled", run), ends_process=True)
        found = EagerComparison(call).agreement(entry)
        assert (found.bound is not None) == is_bounded
        assert (found.wrong is None) == is_bounded


IN_TWO_THREADS = """
import sys, torch, passnet
net = torch.nn.Sequential(torch.nn.Embedding(40, 64), torch.nn.ReLU()).eval()
ids = torch.randint(40, (8, 256))
fast = passnet.optimize(
    net, ids, threads=2, backends=("compile", "aot", "graph"), seconds=0.02, out=sys.argv[1]
)
torch.set_num_threads(2)
assert torch.equal(fast(ids), net(ids))
for index in (-1, 40):
    try:
        fast(torch.where(ids == ids[0, 0], index, ids))
    except IndexError:
        print("raised")
"""


@pytest.mark.xdist_group("inductor")
def test_an_index_out_of_range_ends_no_process_of_several_threads(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IN_TWO_THREADS, str(tmp_path / "net")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["raised"] * 2
    engines = json.loads((tmp_path / "net" / "optimized.json").read_text())["forms"][0]["engines"]
    bounds = {engine["engine"]: engine["index_bounds"] for engine in engines}
    assert bounds["compile"] == bounds["aot"] == [[0, 39]]
    assert not bounds["graph"]


def test_what_raises_the_same_errors_needs_no_bounds() -> None:
    call = token_call()

    def run(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        with torch.no_grad():
            return [call.net(*tensors)]

    entry = call.built("folded", run, is_frozen=True)
    found = EagerComparison(call).agreement(entry)
    assert found.wrong is None and not found.index_bounds


def test_a_net_that_refuses_the_bounds_together_keeps_those_of_its_example() -> None:
    class Sum(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(40, 8)

        def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
            return self.words(ids + offsets)

    call = NetCall(Sum().eval(), (IDS, IDS * 0), {})
    comparison = EagerComparison(call)
    bounds = index_bounds(call, lambda tensors: comparison.try_eager(tensors) is not None)
    assert bounds == ((3, 11), (0, 0))


def test_whole_numbers_that_cannot_be_looked_at_have_no_bounds() -> None:
    strided = torch.cat([IDS, IDS]).t()[:, :1].t()[:, ::2]
    call = token_call(ids=strided, kinds=strided * 0, mask=strided * 0 + 1)
    found = agreement(call)
    assert found.wrong is not None and not found.index_bounds


def test_a_whole_number_that_is_a_size_takes_no_memory() -> None:
    def counts(ids: torch.Tensor) -> torch.Tensor:
        return torch.bincount(ids, minlength=8)[:8] * 2

    call = NetCall(counts, (torch.randint(0, 8, (64,)),), {})
    same = EagerComparison(call).agreement(call.built("same", lambda tensors: [counts(*tensors)]))
    assert same.wrong is None
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8 * 2**20  # in KiB


def test_numbers_beyond_those_that_the_net_takes_are_tried(tmp_path: Path) -> None:
    class Checked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words = torch.nn.Embedding(64, 4)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            if not torch.compiler.is_compiling() and ids.max() >= 60:
                raise ValueError("that is no word")
            return self.words(ids)

    call = NetCall(Checked().eval(), (torch.arange(40),), {})
    built = build_backend("graph", BACKENDS["graph"], call, tmp_path)
    found = EagerComparison(call).agreement(built)
    assert found.wrong is None and found.index_bounds == ((0, 59),)


@pytest.mark.slow
@pytest.mark.xdist_group("inductor")
def test_no_package_is_called_where_it_would_print_pages(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call = NetCall(torch.nn.Embedding(40, 8).eval(), (torch.tensor([3, 4]),), {})
    built = build_backend("aot", BACKENDS["aot"], call, tmp_path / "aot")
    found = EagerComparison(call).agreement(built)
    assert found.wrong is None and found.index_bounds == ((0, 39),)
    assert capfd.readouterr() == ("", "")
