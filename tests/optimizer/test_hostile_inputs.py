"""What an optimised net returns for hostile inputs is what eager torch returns: values that are not
finite or denormal, sizes of zero, strides with gaps and overlaps, addresses between elements'
usual ones, indices out of range. Nothing of it ends the process.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.agent.authors.compiler import compile_plans, range_source
from passnet.data.capture.capture import capture_values
from passnet.optimizer.backends.backend import build_backend
from passnet.optimizer.backends.graphs import CHOSEN_FOLDER
from passnet.optimizer.backends.registry import BACKENDS
from passnet.optimizer.call.fast_net import FastNet
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.choose.ranges import net_ranges
from passnet.passes.codegen.folder_text import pass_folder
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.files import write_files


class Normed(torch.nn.Module):
    """A product, what is fused after it, and a norm, in sizes that no vector divides."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = torch.nn.Linear(37, 37), torch.nn.LayerNorm(37)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.nn.functional.gelu(self.linear(x)) * 0.5 + y)


class Reduced(torch.nn.Module):
    """Reductions and a masked softmax over two inputs, no weights."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        masked = torch.where(y > 0, x, -1e4)
        return torch.softmax(masked, -1), (x * y).amax(-1) + torch.sigmoid(x).sum(-1)


class LookedUp(torch.nn.Module):
    """Rows of a table, looked up twice, and what is fused with them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(11, 37)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.table(index) * 2.0 + x) + self.table.weight[index]


FLOATS = (torch.randn(5, 37), torch.randn(5, 37))
NETS: dict[str, tuple[Callable[[], torch.nn.Module], tuple[torch.Tensor, ...]]] = {
    "normed": (Normed, FLOATS),
    "reduced": (Reduced, FLOATS),
    "looked_up": (LookedUp, (torch.randn(5, 37), torch.randint(0, 11, (5,)))),
}
WAYS = ("graph", "passes", pytest.param("aot", marks=pytest.mark.slow))


def write_compiled_passes(net: torch.nn.Module, example: tuple[torch.Tensor, ...], to: Path) -> int:
    """Write what `compiler` writes for each range of a net; how many there are."""
    ranges, _ = net_ranges(capture_values(net, *example))
    written = 0
    for number, each in enumerate(ranges):
        plan = compile_plans(each.key.graph)[0]
        lowering = GraphLowering(each.key.graph, "range", first_op=each.key.num_layouts)
        options = (("cpp.threads", 1), *plan.options)
        lowered = [lowering.lowered(span, options) for span in lowering.largest(options)]
        sources = [range_source(found, plan) for found in lowered if found is not None]
        if sources:
            write_files(pass_folder(sources, is_strided=True), to / f"{number:03}")
            written += 1
    return written


@cache
def optimised(name: str, way: str) -> FastNet:
    """A net as `passnet.optimize` returns it, where a way is the fastest."""
    torch.manual_seed(0)
    make, example = NETS[name]
    net = make().eval()
    with TemporaryDirectory() as folder, torch.no_grad():
        if way == "passes":
            assert write_compiled_passes(net, example, Path(folder, CHOSEN_FOLDER))
        entry = build_backend(way, BACKENDS[way], NetCall(net, example, {}), Path(folder, way))
    return FastNet(net, [entry])


SPECIAL = (float("nan"), float("inf"), -float("inf"), 1e-40, -1e-45, -0.0, 1e-30, 1e30)
FORMS = ("as it was", "unaligned", "gaps", "overlapping", "transposed", "no rows", "one row more")


@dataclass(frozen=True)
class Hostile:
    """How one argument differs from the example: values in some places, and where these lie."""

    values: tuple[tuple[int, float], ...]
    form: str

    def made(self, example: torch.Tensor, indices: tuple[int, ...]) -> torch.Tensor:
        tensor = example.clone()
        flat = tensor.reshape(-1)
        for place, value in self.values:
            flat[place % flat.numel()] = (
                value if tensor.is_floating_point() else indices[place % len(indices)]
            )
        return laid_out(tensor, self.form)


def laid_out(tensor: torch.Tensor, form: str) -> torch.Tensor:
    """The same values in another place or another order of memory, or another number of rows."""
    if form == "unaligned":
        return torch.cat([tensor.new_zeros(1), tensor.reshape(-1)])[1:].view(tensor.shape)
    if form == "gaps":
        return torch.stack([tensor, tensor], -1)[..., 0]
    if form == "overlapping":
        return tensor[:1].expand(tensor.shape)
    if form == "transposed":
        return tensor.t().contiguous().t()
    if form == "no rows":
        return tensor[:0]
    return torch.cat([tensor, tensor[:1]]) if form == "one row more" else tensor


ARGUMENT = st.builds(
    Hostile,
    st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(SPECIAL)), max_size=3).map(tuple),
    st.sampled_from(FORMS),
)
ROWS = ("no rows", "one row more")


def outcome(net: Callable[..., object], arguments: tuple[torch.Tensor, ...]) -> object:
    """What a call returns, or the type of what it raises."""
    try:
        with torch.no_grad():
            return net(*arguments)
    except (RuntimeError, IndexError) as error:
        return type(error)


def assert_as_eager(fast: FastNet, arguments: tuple[torch.Tensor, ...]) -> None:
    kept = tuple(argument.clone() for argument in arguments)
    expected, actual = outcome(fast.original_net, arguments), outcome(fast, arguments)
    if isinstance(expected, type) or isinstance(actual, type):
        assert actual is expected
    else:
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5, equal_nan=True)
    torch.testing.assert_close(arguments, kept, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["normed", "reduced"])
@settings(max_examples=40, deadline=None)
@given(st.tuples(ARGUMENT, ARGUMENT), st.booleans())
def test_hostile_values_and_layouts_give_what_eager_torch_gives(
    name: str, way: str, hostile: tuple[Hostile, Hostile], same_rows: bool
) -> None:
    example = NETS[name][1]
    made = [each.made(tensor, ()) for each, tensor in zip(hostile, example, strict=True)]
    if same_rows and hostile[0].form in ROWS:  # else most such calls only raise
        made[1] = laid_out(example[1], hostile[0].form)
    assert_as_eager(optimised(name, way), tuple(made))


INDICES = (0, 10, -1, 11, -12, 2**31, 2**40, -(2**40), 2**63 - 1, -(2**63))


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40, deadline=None)
@given(st.tuples(ARGUMENT, st.tuples(st.integers(0, 4), st.sampled_from(INDICES))))
def test_indices_out_of_range_raise_what_eager_torch_raises(
    way: str, hostile: tuple[Hostile, tuple[int, int]]
) -> None:
    x, index = NETS["looked_up"][1]
    place, value = hostile[1]
    index = index.clone()
    index[place] = value
    assert_as_eager(optimised("looked_up", way), (hostile[0].made(x, ()), index))
