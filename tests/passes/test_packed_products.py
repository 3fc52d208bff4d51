"""Weights that are packed once inside Inductor: values, layouts, and weights that change."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._inductor import config

from passnet.errors import InputError, PassError
from passnet.passes.apply.packed_op import FROZEN, load_op
from passnet.passes.apply.packed_products import product_form
from passnet.passes.compilation import build, check_watch
from passnet.passes.inductor_pass import InductorPass, passes_in_inductor

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it


def compiled(
    net: Callable[..., Any], *call: torch.Tensor, dynamic: bool = False
) -> tuple[Any, InductorPass]:
    """A function compiled with packed weights, after its first call."""
    torch._dynamo.reset()
    uncached = config.patch(force_disable_caches=True)  # a graph from the cache is packed already
    with uncached, torch.no_grad(), passes_in_inductor(packed_weights=True) as own:
        fast = torch.compile(net, dynamic=dynamic)
        fast(*call)
    return fast, own


def check(net: Any, *call: torch.Tensor, packed: int) -> Any:
    """Compare a compiled net with eager torch; return it."""
    if isinstance(net, nn.Module):
        net.eval()
    fast, own = compiled(net, *call)
    assert own.num_packed == packed
    compare(net, fast, *call)
    return fast


@torch.no_grad()
def compare(net: Any, fast: Any, *call: torch.Tensor) -> None:
    leaves = torch.utils._pytree.tree_leaves
    for value, expected in zip(leaves(fast(*call)), leaves(net(*call)), strict=True):
        torch.testing.assert_close(
            value, expected, rtol=1e-4, atol=float(expected.abs().max()) / 1e5
        )
        pairs = zip(value.shape, value.stride(), expected.stride(), strict=True)
        assert all(own == right for size, own, right in pairs if size > 1)


def settle_norm(norm: nn.BatchNorm2d) -> nn.BatchNorm2d:
    """A norm with statistics that are no identity."""
    with torch.no_grad():
        for tensor in (norm.weight, norm.running_var):
            tensor.uniform_(0.5, 2.0)
        for tensor in (norm.bias, norm.running_mean):
            tensor.normal_()
    return norm


class Block(nn.Module):
    """A residual block, as most image nets have it."""

    def __init__(self, channels: int, in_place: bool) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 1)
        self.norms = nn.ModuleList(settle_norm(nn.BatchNorm2d(channels)) for _ in range(2))
        self.in_place = in_place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.relu(self.norms[0](self.first(x)), inplace=self.in_place)
        y = self.norms[1](self.second(y))
        if self.in_place:
            y += x
        else:
            y = x + y
        return nn.functional.relu(y, inplace=self.in_place)


@pytest.mark.parametrize("in_place", [True, False])
def test_a_residual_block(in_place: bool) -> None:
    net = nn.Sequential(Block(16, in_place), Block(16, in_place))
    check(net, torch.randn(2, 16, 9, 11), packed=4)


ACTIVATIONS = (
    *(nn.ReLU(), nn.ReLU6(), nn.SiLU(), nn.GELU(), nn.GELU("tanh"), nn.Hardswish(), nn.Sigmoid()),
    *(nn.Tanh(), nn.LeakyReLU(0.2), nn.Hardtanh(-0.3, 0.4)),
)


@pytest.mark.slow
def test_activations() -> None:
    convs = [nn.Conv2d(3, 8, 3, stride=2) for _ in ACTIVATIONS]
    linears = [nn.Linear(72, 5) for _ in ACTIVATIONS]

    def net(x: torch.Tensor) -> list[torch.Tensor]:
        layers = zip(ACTIVATIONS, convs, linears, strict=True)
        return [act(linear(act(conv(x)).flatten(1))) for act, conv, linear in layers]

    check(net, torch.randn(2, 3, 7, 7), packed=2 * len(ACTIVATIONS))


CONVOLUTIONS = {
    "depthwise": (nn.Conv2d(70, 70, 5, padding=2, groups=70), (2, 70, 9, 8)),
    "depthwise, dilated": (nn.Conv2d(16, 16, 3, 2, 1, 2, groups=16, bias=False), (1, 16, 9, 9)),
    "two channels each": (nn.Conv2d(6, 12, 3, groups=6), (1, 6, 8, 8)),
    "groups": (nn.Conv2d(8, 12, 3, groups=4), (2, 8, 6, 6)),
    "pointwise": (nn.Conv2d(24, 40, 1), (1, 24, 5, 7)),
    "pointwise, strided": (nn.Conv2d(24, 40, 1, stride=2), (2, 24, 5, 7)),
    "one channel": (nn.Conv2d(1, 4, (1, 3), padding="valid"), (1, 1, 4, 9)),
    "a line": (nn.Conv1d(24, 40, 5, 2, 1), (2, 24, 31)),
    "a line, single channels": (nn.Conv1d(48, 48, 8, padding="same", groups=48), (1, 48, 20)),
    "same size": (nn.Conv2d(6, 9, (4, 3), padding="same", dilation=(1, 2)), (1, 6, 9, 10)),
    "a line, pointwise": (nn.Conv1d(7, 20, 1), (3, 7, 1)),
    "a line of one channel": (nn.Conv1d(1, 1, 3), (1, 1, 3)),
    "patches": (nn.Conv2d(3, 20, (4, 5), stride=(4, 5)), (2, 3, 14, 15)),
    "patches of one channel": (nn.Conv2d(1, 8, 4, stride=4, bias=False), (1, 1, 9, 8)),
    "three dimensions": (nn.Conv3d(4, 6, 3, padding=(0, 1, 1)), (1, 4, 5, 6, 6)),
}  # fmt: skip


@pytest.mark.slow
def test_convolutions() -> None:
    last = {3: torch.contiguous_format, 4: torch.channels_last, 5: torch.channels_last_3d}
    convs = [conv for conv, _ in CONVOLUTIONS.values()] * 2
    xs = [torch.randn(shape) for _, shape in CONVOLUTIONS.values()]
    xs += [x.to(memory_format=last[x.dim()]) for x in xs]

    def convolve(*xs: torch.Tensor) -> list[torch.Tensor]:
        return [torch.relu(conv(x)) for conv, x in zip(convs, xs, strict=True)]

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        check(convolve, *xs, packed=len(xs))
    finally:
        torch.set_num_threads(before)


TORCH, MKL, MKL_ROWS, MKL_PATCHES, ONEDNN, ONEDNN_APART, DIRECT, STREAMED, GATHERED, *WINOGRAD = (
    range(11)
)
"""`Way` of packed_products.cpp, which measures what is fastest if none is asked for."""

WAYS = {
    "0 1": ((37, 50), (20, 50), (TORCH, MKL, MKL_ROWS, ONEDNN, ONEDNN_APART, DIRECT, STREAMED)),
    "2 1 1 0 0 1 1 1": ((2, 12, 5, 7), (33, 12, 1, 1), (MKL, MKL_ROWS, ONEDNN, DIRECT, STREAMED)),
    "2 4 5 0 0 1 1 1": ((2, 3, 14, 15), (20, 3, 4, 5), (MKL_PATCHES, ONEDNN, DIRECT, GATHERED)),
    "2 2 2 0 0 1 1 1": ((1, 1, 9, 8), (20, 1, 2, 2), (MKL_PATCHES, ONEDNN, DIRECT, GATHERED)),
    "2 1 1 1 1 1 1 1": ((2, 19, 18, 33), (70, 19, 3, 3), (ONEDNN, DIRECT, GATHERED, *WINOGRAD)),
    "2 1 1 2 0 1 1 1": ((3, 16, 5, 7), (16, 16, 3, 3), (ONEDNN, DIRECT, GATHERED, *WINOGRAD)),
    "2 1 1 1 0 1 1 3": ((1, 27, 13, 9), (60, 9, 3, 3), (ONEDNN, DIRECT, *WINOGRAD)),
    "2 1 1 1 1 1 1 37": ((2, 37, 9, 13), (37, 1, 3, 3), (ONEDNN, DIRECT)),
    "2 1 2 0 1 1 1 20": ((2, 20, 9, 13), (20, 1, 2, 3), (ONEDNN, DIRECT)),
    "2 2 1 0 0 1 1 1": ((2, 20, 9, 13), (8, 20, 1, 1), (ONEDNN, DIRECT)),
    "3 1 1 1 1 1 1 1 1 1 1": ((2, 9, 4, 6, 11), (20, 9, 3, 3, 3), (ONEDNN, *WINOGRAD)),
    "3 2 1 1 0 0 1 1 1 1 2": ((1, 20, 5, 7, 9), (18, 10, 2, 3, 3), (ONEDNN, *WINOGRAD)),
}
"""Words of a product or convolution, sizes of its argument and weights, and ways."""


def of_more_channels(x: torch.Tensor) -> torch.Tensor:
    """The same images as some channels of others, whose further ones hold what is not finite."""
    around = x.new_full((len(x), 3, *x.shape[2:]), torch.nan)
    last = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
    more = torch.cat([around, x, around[:, :2]], 1).to(memory_format=last)
    return more[:, 3:-2]


@pytest.mark.parametrize("words", WAYS)
@pytest.mark.parametrize("activation", [nn.GELU(), nn.SiLU(), nn.Identity()], ids=str)
@torch.no_grad()
def test_each_way_computes_the_same(words: str, activation: nn.Module) -> None:
    load_op()
    sizes, of_weight, ways = WAYS[words]
    torch.manual_seed(0)
    weights, x = [torch.randn(of_weight), torch.randn(of_weight[0])], torch.randn(sizes)
    name = {"GELU": "gelu", "SiLU": "swish", "Identity": "none"}[type(activation).__name__]
    if words == "0 1":
        inputs, right, other = [x], nn.functional.linear(x, *weights), None
    else:
        dims, *numbers = (int(word) for word in words.split())
        stride, padding = numbers[:dims], numbers[dims : 2 * dims]
        last = torch.channels_last if dims == 2 else torch.channels_last_3d
        inputs = [x, x.to(memory_format=last), of_more_channels(x)]
        convolve = nn.functional.conv2d if dims == 2 else nn.functional.conv3d
        right = convolve(x, *weights, stride, padding, groups=numbers[-1])
        right += (other := torch.randn_like(right))
    for way in ways:
        most = 1e-5 * (float(right.std()) if way in WINOGRAD else 1)
        form = f"{words} 1 0 0.0 {name} none 32 way {way}"
        for each in inputs:
            y = torch.ops.passnet_packed.product(each, weights, other, form)
            torch.testing.assert_close(y, activation(right), rtol=1e-5, atol=most, msg=str(way))


@pytest.mark.parametrize("way", WINOGRAD)
@torch.no_grad()
def test_what_is_not_finite_spoils_no_tile(way: int) -> None:
    load_op()
    weights, other = [torch.randn(20, 9, 3, 3), torch.randn(20)], torch.randn(2, 20, 12, 17)
    form = f"2 1 1 1 1 1 1 1 1 0 0.0 relu none 32 way {way}"
    for value in (torch.inf, -torch.inf, torch.nan, 3e38):
        for place in ((0, 0), (5, 7), (11, 16)):
            x = torch.randn(2, 9, 12, 17)
            x[1, 4, *place] = value
            y = torch.ops.passnet_packed.product(x, weights, other, form)
            right = torch.relu(nn.functional.conv2d(x, *weights, padding=1) + other)
            torch.testing.assert_close(y, right, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("activation", ["relu", "hardtanh"])
@pytest.mark.parametrize("words", WAYS)
@torch.no_grad()
def test_each_way_keeps_nan(words: str, activation: str) -> None:
    load_op()
    sizes, of_weight, ways = WAYS[words]
    weights, x = [torch.ones(of_weight), torch.zeros(of_weight[0])], torch.ones(sizes)
    x[(0,) * x.ndim] = torch.nan
    numbers = "0 6" if activation == "hardtanh" else ""
    for way in ways:
        form = f"{words} 1 0 0.0 {activation} none 32 {numbers} way {way}"
        found = [torch.ops.passnet_packed.product(x, weights, None, form)]
        if words != "0 1":
            other = torch.zeros_like(found[0])
            found.append(torch.ops.passnet_packed.product(x, weights, other, form))
        assert all(bool(y.isnan().any()) for y in found), way


@pytest.mark.parametrize("way", WINOGRAD)
@torch.no_grad()
def test_a_large_number_spoils_no_other_pixels(way: int) -> None:
    load_op()
    weights, form = [torch.randn(32, 32, 3, 3) / 17], "2 1 1 1 1 1 1 1 0 0 0.0 none none 32"
    far = torch.ones(24, 24, dtype=torch.bool)
    far[7:10, 7:10] = False
    for value in (500.0, -9999.0, 1e6, 1e20):
        x = torch.randn(1, 32, 24, 24)
        x[:, 0, 8, 8] = value
        right = nn.functional.conv2d(x.double(), weights[0].double(), padding=1)
        for each in (x, of_more_channels(x)):
            y = torch.ops.passnet_packed.product(each, weights, None, f"{form} way {way}")
            assert float((y - right)[..., far].abs().max()) < 1e-4, value


@torch.no_grad()
def test_weights_of_another_layout_in_the_same_memory() -> None:
    load_op()
    memory, x = torch.randn(8 * 4 * 9), torch.randn(1, 4, 6, 6)
    form = "2 1 1 0 0 1 1 1 0 0 0.0 none none 32"
    plain = memory.view(8, 4, 3, 3)
    for weight in (plain, memory.view(8, 3, 3, 4).permute(0, 3, 1, 2), plain):
        y = torch.ops.passnet_packed.product(x, [weight], None, form)
        torch.testing.assert_close(y, nn.functional.conv2d(x, weight), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_frozen_weights_are_packed_once_for_each_that_lie_in_their_memory() -> None:
    load_op()
    values, x = np.random.default_rng(0).standard_normal((64, 96), dtype=np.float32), torch.ones(96)
    form = f"{product_form(has_bias=False, bits=32)} {FROZEN}"
    for _ in range(2):
        weight = torch.from_numpy(values)
        right = nn.functional.linear(x, weight)
        torch.testing.assert_close(torch.ops.passnet_packed.product(x, [weight], None, form), right)
        values *= 2  # against the promise, so that it is seen that nobody looks
        same = torch.ops.passnet_packed.product(x, [weight], None, form)
        torch.testing.assert_close(same, right)
        del weight  # a package that is dropped, whose memory another one takes


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "sizes"),
    [
        ((1, 5), (1, 5), (0, 0), (2, 1, 5, 9)),
        ((1, 5), (1, 3), (0, 2), (2, 1, 13, 2)),
        ((5, 7), (1, 2), (0, 0), (1, 1, 15, 8)),
        ((1, 5, 5), (3, 1, 2), (0, 0, 0), (1, 1, 13, 13, 6)),
    ],
)
@torch.no_grad()
def test_one_channel_is_not_misread(kernel: Any, stride: Any, padding: Any, sizes: Any) -> None:
    load_op()
    dims = len(kernel)
    convolution = {2: nn.Conv2d, 3: nn.Conv3d}[dims](1, 16, kernel, stride, padding).eval()
    words = (dims, *stride, *padding, *dims * (1,), 1, 1, 0, 0.0, "relu", "none", 32)
    form = " ".join(map(str, words))
    weights = [*convolution.parameters()]
    for number in range(8):  # of the last ones no way is chosen
        x = torch.randn(number + 1, *sizes[1:])
        y = torch.ops.passnet_packed.product(x, weights, None, form)
        torch.testing.assert_close(y, convolution(x).relu(), rtol=1e-4, atol=1e-4)


def test_writes_between_and_into_given_tensors() -> None:
    convolution, linear = nn.Conv2d(8, 8, 1), nn.Linear(8, 8)

    def summand(x: torch.Tensor) -> torch.Tensor:
        rest = x * 2
        y = convolution(x) + rest
        rest.add_(100)
        return torch.relu(y) + rest.mean()

    def given(x: torch.Tensor) -> torch.Tensor:
        y = torch.zeros(2, 5, 5, 8)
        torch.sigmoid(linear(x.permute(0, 2, 3, 1)), out=y)
        return y * 1

    check(summand, torch.randn(2, 8, 5, 5), packed=1)
    check(given, torch.randn(2, 8, 5, 5), packed=1)


@torch.no_grad()
def test_patches_of_as_many_pixels_in_another_shape() -> None:
    load_op()
    form = f"2 4 4 0 0 1 1 1 1 0 0.0 relu none 32 way {MKL_PATCHES}"
    weights = [torch.randn(8, 3, 4, 4), torch.randn(8)]
    for sizes in ((1, 3, 8, 9), (1, 3, 6, 12)):
        x = torch.randn(sizes)
        y = torch.ops.passnet_packed.product(x, weights, None, form)
        right = nn.functional.conv2d(x, *weights, stride=4).relu()
        torch.testing.assert_close(y, right, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_what_is_read_between_stays() -> None:
    conv, norm = nn.Conv2d(4, 4, 1), settle_norm(nn.BatchNorm2d(4)).eval()

    def several(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = conv(x)
        z = norm(y)
        return y.sum((2, 3)), z * 2, torch.relu(z)

    check(several, torch.randn(1, 4, 5, 5), packed=1)


@pytest.mark.slow
def test_values_with_gaps_and_repeats() -> None:
    conv, linear = nn.Conv2d(4, 4, 3), nn.Linear(6, 3)

    def strided(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return conv(x[:, :, ::2, 1:]), conv(y.expand(2, 4, 6, 6)), linear(x[..., :6]).sum(1)

    check(strided, torch.randn(2, 4, 9, 8), torch.randn(2, 1, 6, 6), packed=3)


@pytest.mark.slow
def test_what_is_written_between_is_read_before() -> None:
    conv = nn.Conv2d(4, 4, 1)

    def written(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = x * 2
        y = conv(x)
        x.relu_()
        return torch.relu(y + x), x

    check(written, torch.randn(1, 4, 5, 5), packed=1)


@pytest.mark.slow
def test_views_of_results() -> None:
    conv, last = nn.Conv2d(4, 6, 1), nn.Linear(25, 3)

    def viewed(x: torch.Tensor) -> torch.Tensor:
        return last(conv(x).view(x.shape[0], 6, 25))

    check(viewed, torch.randn(2, 4, 5, 5), packed=2)


def test_views_that_are_written_keep_their_layout() -> None:
    conv = nn.Conv2d(4, 6, 1)

    def written(x: torch.Tensor) -> torch.Tensor:
        y = conv(x)
        y.view(x.shape[0], -1)[:, 0] = 7
        return y

    check(written, torch.randn(2, 4, 5, 5), packed=0)


def test_an_image_whose_channels_are_put_last() -> None:
    for channels in (1, 3, 4, 5):
        check(nn.Conv2d(channels, 20, 3, padding=1), torch.randn(3, channels, 75, 80), packed=1)


def test_outputs_keep_their_strides() -> None:
    conv = nn.Conv2d(4, 6, 3)

    def several(x: torch.Tensor) -> dict[str, Any]:
        y = conv(x)
        return {"y": y, "both": [torch.tanh(y), y.mean(1)], "turned": y.transpose(1, 3) + 1}

    fast, _ = compiled(several, x := torch.randn(2, 4, 6, 6))
    with torch.no_grad():
        torch.testing.assert_close(fast(x), several(x))
    check(lambda x: (conv(x), torch.tanh(conv(x)), conv(x).transpose(1, 3) + 1), x, packed=3)


WRITES: dict[str, Callable[[torch.Tensor], Any]] = {
    "in place": lambda weight: weight.mul_(2),
    "data": lambda weight: weight.data.add_(0.5),
    "one value": lambda weight: weight.view(-1)[-1:].fill_(9.0),
    "numpy": lambda weight: np.negative(weight.detach().numpy(), out=weight.detach().numpy()),
    "copy": lambda weight: weight.copy_(torch.randn_like(weight)),
}


@torch.no_grad()
def test_weights_that_are_written_are_packed_again() -> None:
    def layers(size: int) -> nn.Module:  # those of 4 are summed, those of 160 are watched
        norm = settle_norm(nn.BatchNorm2d(size))
        last = nn.Linear(size * 4, size)
        return nn.Sequential(
            nn.Conv2d(3, size, 3), norm, nn.Flatten(), last, nn.Unflatten(1, (1, 1, -1))
        )

    nets = nn.ModuleList(layers(size) for size in (4, 160)).eval()

    def both(x: torch.Tensor) -> list[torch.Tensor]:
        return [net(x) for net in nets]

    x = torch.randn(1, 3, 4, 4)
    fast = check(both, x, packed=4)
    for name, tensor in [*nets.named_parameters(), *nets.named_buffers()]:
        for write, change in WRITES.items():
            if tensor.is_floating_point():
                before = [value.clone() for value in fast(x)]
                change(tensor) if "var" not in name else tensor.mul_(1.5)
                compare(both, fast, x)
                alike = [torch.equal(*pair) for pair in zip(before, fast(x), strict=True)]
                assert alike.count(False) == 1, f"{name}, {write}"


@torch.no_grad()
def test_weights_under_a_weight_norm() -> None:
    normed = nn.utils.parametrizations.weight_norm
    net = nn.Sequential(
        normed(nn.Conv1d(32, 64, 8, padding=4, groups=4), dim=2),
        nn.GELU(),
        normed(nn.Conv1d(64, 16, 3, padding=2, dilation=2)),
        nn.Tanh(),
        normed(nn.Linear(21, 50)),
        normed(nn.Linear(50, 9), dim=None),  # of one number for all, as torch computes it
        nn.utils.spectral_norm(nn.Linear(9, 9)),
    ).eval()
    x = torch.randn(2, 32, 20)
    fast = check(net, x, packed=3)
    for tensor in net.parameters():
        before = fast(x).clone()
        tensor.mul_(1 + torch.rand_like(tensor))
        compare(net, fast, x)
        assert not torch.equal(before, fast(x))


@pytest.mark.slow
@torch.no_grad()
def test_weights_that_are_replaced() -> None:
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    x = torch.randn(8, 64)
    fast = check(net, x, packed=1)
    net[0].weight = nn.Parameter(torch.randn(64, 64))
    compare(net, fast, x)
    net.load_state_dict({name: value * 2 for name, value in net.state_dict().items()})
    compare(net, fast, x)


@torch.no_grad()
@torch.no_grad()
def test_memory_of_a_result_is_kept_for_others_once_nothing_holds_it() -> None:
    net = nn.Conv2d(3, 16, 3).eval()  # results are large, and as the op made them
    xs = [torch.randn(1, 3, 50, 50).to(memory_format=torch.channels_last) for _ in range(3)]
    fast, _ = compiled(net, xs[0])
    held = [fast(x) for x in xs]
    row = fast(xs[0])[0, 0, 0]
    grown = fast(xs[1]).resize_(2, 16, 48, 48)
    places = {each.data_ptr() for each in held}
    assert len(places) == 3
    expected = [net(x) for x in xs]
    torch.testing.assert_close(held, expected)
    torch.testing.assert_close(row, expected[0][0, 0, 0])
    torch.testing.assert_close(grown[0].sum(), expected[1].sum())
    held.clear()
    assert fast(xs[2]).data_ptr() in places


def test_sizes_may_vary() -> None:
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
    net = nn.Sequential(net, nn.Flatten(), nn.Linear(8, 4), nn.GELU()).eval()
    fast, own = compiled(net, torch.randn(2, 3, 8, 8), dynamic=True)
    assert own.num_packed == 2
    for batch in (3, 5, 7, 9, 11, 13, 2):
        for size in (8, 13):
            compare(net, fast, torch.randn(batch, 3, size, size))


@torch.no_grad()
def test_nothing_in_a_batch() -> None:
    load_op()
    weights = [torch.randn(4, 3, 3, 3), torch.randn(4)]
    op, form = torch.ops.passnet_packed.product.default, "2 1 1 0 0 1 1 1 1 0 0.0 relu none 32"
    assert op(torch.randn(0, 3, 5, 5), weights, None, form).shape == (0, 4, 3, 3)
    weights = [torch.randn(4, 3)]
    assert op(torch.randn(2, 0, 3), weights, None, "0 1 0 0 0.0 gelu none 32").shape == (2, 0, 4)


@pytest.mark.slow
def test_a_bias_that_the_net_computes_is_added() -> None:
    linear = nn.Linear(8, 8)

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(nn.functional.linear(x, linear.weight, linear.bias * 2))

    check(scaled, torch.randn(2, 3, 8), packed=1)


def test_what_is_left_alone() -> None:
    linear, x = nn.Linear(8, 8), torch.randn(2, 8)
    scale = torch.randn(8, 8)
    check(lambda x: nn.functional.linear(x, scale * 2), x, packed=0)
    check(lambda x, w: nn.functional.linear(x, w), x, scale, packed=0)
    buffer = nn.Linear(8, 8)
    buffer.weight = nn.Parameter(torch.ones(8, 8), requires_grad=False)

    def write(x: torch.Tensor) -> torch.Tensor:
        buffer.weight.add_(1)
        return buffer(x)

    fast, own = compiled(write, x)
    assert own.num_packed == 0
    with torch.no_grad():
        torch.testing.assert_close(fast(x), x @ torch.full((8, 8), 3.0) + buffer.bias)
    check(nn.Linear(8, 8).double(), x.double(), packed=0)

    def under_autocast(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return linear(x)

    assert compiled(under_autocast, x)[1].num_packed == 0
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled(linear, x)[1].num_packed == 0
    torch._dynamo.reset()
    with passes_in_inductor(packed_weights=True) as own:
        torch.compile(linear)(x).sum().backward()
    assert own.num_packed == 0 and linear.weight.grad is not None


@pytest.mark.slow
def test_an_op_that_makes_tensors_of_its_own_settles() -> None:
    first, second = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)

    def net(x: torch.Tensor) -> torch.Tensor:
        return second(nn.functional.interpolate(first(x), size=(12, 12), mode="nearest"))

    check(net, torch.randn(1, 4, 6, 6), packed=2)


@pytest.mark.slow
def test_copies_that_become_views_are_not_written_into() -> None:
    conv = nn.Conv2d(4, 6, 3)

    def written(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = conv(x)
        same = y.contiguous()
        y += 1
        return same, y.reshape(y.shape[0], -1)

    check(written, torch.randn(2, 4, 6, 6), packed=0)


@pytest.mark.parametrize(("bits", "error"), [(8, 0.02), (4, 0.2)])
def test_weights_of_products_may_have_fewer_bits(bits: int, error: float) -> None:
    torch.manual_seed(0)
    first = nn.utils.parametrizations.weight_norm(nn.Linear(200, 300))
    net = nn.Sequential(first, nn.GELU(), nn.Linear(300, 40)).eval()
    x = torch.randn(3, 200)
    torch._dynamo.reset()
    uncached = config.patch(force_disable_caches=True)
    packing = passes_in_inductor(packed_weights=True, weight_bits=bits)
    with uncached, torch.no_grad(), packing as own:
        fast = torch.compile(net)
        for scale in (1, -2):
            first.parametrizations["weight"].original1.mul_(scale)
            right, y = net(x), fast(x)
            assert 0.001 < (y - right).norm() / right.norm() < error
        x[1, 7] = torch.inf
        assert torch.equal(fast(x).isfinite(), net(x).isfinite())
    assert own.num_packed == 2


def test_something_must_be_asked_for() -> None:
    for bits, is_packed in ((5, True), (8, False)):
        with pytest.raises(InputError, match="weight_bits are 8 or 4"):
            InductorPass(packed_weights=is_packed, weight_bits=bits)
    with pytest.raises(InputError, match="packed_weights"):
        InductorPass()


def test_a_second_watch_in_one_process_is_refused() -> None:
    load_op()
    own = 'extern "C" const void* passnet_watch() { static int watch; return &watch; }'
    with pytest.raises(PassError, match="its own watch"):
        check_watch(build(own))
