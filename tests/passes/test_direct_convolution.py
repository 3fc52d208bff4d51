"""Our own convolutions of packed weights, against torch's in float64."""

import ctypes
import platform
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

from passnet.passes.compilation import build

ACTIVATIONS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda y: y,
    torch.relu,
    lambda y: functional.hardtanh(y, -0.5, 0.25),
    functional.hardswish,
    torch.sigmoid,
    functional.silu,
    lambda y: functional.gelu(y, approximate="tanh"),
    torch.tanh,  # this and the next one with AVX-512 alone
    functional.gelu,
]


@dataclass(frozen=True)
class Case:
    """A convolution: the input's sizes, channels out, window and groups."""

    x: tuple[int, int, int, int]
    out: int
    window: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1


CASES = {
    "a product of pixels": Case((2, 24, 5, 7), 48, (1, 1)),
    "some lanes": Case((1, 3, 9, 11), 5, (3, 3), (2, 2), (1, 1)),
    "many channels": Case((1, 7, 6, 6), 117, (3, 3), padding=(1, 1)),
    "one row": Case((1, 4, 1, 9), 16, (1, 3), padding=(0, 1)),
    "padding beyond the image": Case((1, 4, 2, 2), 8, (3, 3), padding=(4, 4)),
    "dilation": Case((1, 8, 9, 9), 20, (3, 3), padding=(2, 3), dilation=(2, 3)),
    "a stride without a window": Case((1, 8, 9, 9), 20, (1, 1), (2, 3)),
    "groups": Case((2, 30, 7, 7), 72, (3, 3), (2, 1), (1, 2), groups=3),
    "one channel a group, several out": Case((1, 8, 6, 6), 24, (3, 3), padding=(1, 1), groups=8),
    "single channels": Case((2, 37, 9, 13), 37, (3, 3), padding=(1, 1), groups=37),
    "single channels, stride 2": Case((1, 48, 12, 17), 48, (5, 5), (2, 2), (2, 2), groups=48),
    "single channels, window of 7": Case((1, 16, 8, 8), 16, (7, 7), padding=(3, 3), groups=16),
    "single channels, no padding": Case((1, 20, 8, 8), 20, (3, 3), (2, 2), groups=20),
    "single channels, a line": Case((2, 40, 1, 30), 40, (1, 32), padding=(0, 16), groups=40),
    "single channels, apart": Case((2, 19, 9, 12), 19, (2, 3), (3, 1), (1, 2), (2, 2), groups=19),
    "single channels, narrow": Case((1, 20, 3, 2), 20, (5, 5), padding=(2, 2), groups=20),
}


def drawn(number: int) -> Case:
    """Draw a convolution."""
    draw = random.Random(number)
    groups = draw.choice([1, 1, 2, 5])
    channels, out = groups * draw.randint(1, 20), groups * draw.randint(1, 60)
    if draw.random() < 0.3:
        groups = out = channels

    def pair(low: int, high: int) -> tuple[int, int]:
        return draw.randint(low, high), draw.randint(low, high)

    window, padding, dilation = pair(1, 5), pair(0, 3), pair(1, 2)
    sizes = [draw.randint(d * (k - 1) + 1, 15) for k, d in zip(window, dilation, strict=True)]
    x = (draw.randint(1, 2), channels, *sizes)
    return Case(x, out, window, pair(1, 3), padding, dilation, groups)  # type: ignore[arg-type]


@pytest.fixture(
    scope="module",
    params=["native", *(pytest.param(f"x86-64{v}", marks=pytest.mark.slow) for v in ("", "-v3"))],
)
def kernels(request: pytest.FixtureRequest) -> Any:
    if request.param != "native" and platform.machine() != "x86_64":
        pytest.skip("the processor is of another kind")
    root = Path(torch.__file__).parent
    flags = (
        *(
            f"-march={request.param}",
            "-std=c++20",
            "-w",
            f"-I{root}/include",
            f"-L{root}/lib",
            "-ltorch_cpu",
            "-lc10",
        ),
        f"-I{root}/include/torch/csrc/api/include",
    )
    source = Path(__file__).with_name("direct_convolution.cpp").read_text(encoding="utf-8")
    library = ctypes.CDLL(str(build(source, flags)))
    library.packed_size.restype = ctypes.c_int64
    return library


def sizes_of(case: Case, result: torch.Tensor) -> Any:
    """The sizes of a convolution as the kernels take them."""
    numbers = (case.x[0], *case.x[2:], *result.shape[2:], *case.window, *case.stride, *case.padding)
    return (ctypes.c_int64 * 16)(*numbers, *case.dilation, case.groups, case.x[1], case.out)


def check(kernels: Any, case: Case, kind: int, has_bias: bool, has_other: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(case.x).contiguous(memory_format=torch.channels_last)
    x[0, 0, 0, 0] = torch.nan if has_other else 1.0
    weight = torch.randn(case.out, case.x[1] // case.groups, *case.window)
    bias = torch.randn(case.out) if has_bias else None
    exact = functional.conv2d(
        *(x.double(), weight.double(), None if bias is None else bias.double()),
        *(case.stride, case.padding, case.dilation, case.groups),
    )
    other = torch.randn(exact.shape).contiguous(memory_format=torch.channels_last)
    right = ACTIVATIONS[kind](exact + other if has_other else exact)
    y = torch.full(exact.shape, torch.inf).contiguous(memory_format=torch.channels_last)
    sizes = sizes_of(case, exact)
    packed = torch.full((kernels.packed_size(sizes),), torch.nan)
    tensors = (x, weight, packed, y, bias, other if has_other else None)
    places = [ctypes.c_void_p(each.data_ptr() if each is not None else None) for each in tensors]
    kernels.convolve(sizes, *places, kind)
    torch.testing.assert_close(y.double(), right, rtol=1e-5, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize("name", CASES)
def test_a_convolution_is_torchs(kernels: Any, name: str) -> None:
    for kind in range(kernels.num_activations()):
        check(kernels, CASES[name], kind, has_bias=kind != 1, has_other=kind != 2)


def test_numbers_at_the_ends_are_activated_as_torch_does(kernels: Any) -> None:
    ends = [0.0, -0.0, 1e-30, 87.0, 88.5, 90.0, 1e30, torch.inf, torch.nan]
    values = torch.tensor([*ends, *(-value for value in ends)])
    numbers = (1, 1, len(values), 1, len(values), 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1)
    sizes = (ctypes.c_int64 * 16)(*numbers)
    one, packed = torch.ones(1), torch.zeros(kernels.packed_size(sizes))
    for kind, activation in enumerate(ACTIVATIONS[: kernels.num_activations()]):
        y = torch.zeros(len(values))
        places = [ctypes.c_void_p(each.data_ptr()) for each in (values, one, packed, y)]
        kernels.convolve(sizes, *places, None, None, kind)
        right = activation(values.double()).float()
        torch.testing.assert_close(y, right, rtol=1e-6, atol=1e-36, equal_nan=True)


def test_drawn_convolutions_are_torchs(kernels: Any) -> None:
    for number in range(300):
        check(
            kernels,
            drawn(number),
            number % kernels.num_activations(),
            number % 7 < 4,
            number % 5 < 2,
        )


def test_products_by_weights_that_are_read_once_are_torchs(kernels: Any) -> None:
    draw = random.Random(0)
    for rows in (*range(1, 20), 29, 64, 65, 145):
        size, count = draw.choice([1, 7, 63, 65, 200, 600]), draw.choice([1, 16, 31, 48, 50, 100])
        x, weight, bias = torch.randn(rows, size), torch.randn(count, size), torch.randn(count)
        other = torch.randn(rows, count) if rows % 2 else None
        numbers = (1, 1, rows, 1, rows, 1, 1, 1, 1, 0, 0, 1, 1, 1, size, count)
        sizes = (ctypes.c_int64 * 16)(*numbers)
        packed = torch.full((kernels.packed_size(sizes),), torch.nan)
        y = torch.full((rows, count), torch.inf)
        tensors = (x, weight, packed, y, bias, other)
        kernels.stream(
            sizes, *(None if t is None else ctypes.c_void_p(t.data_ptr()) for t in tensors)
        )
        right = functional.linear(x.double(), weight.double(), bias.double())
        right = torch.relu(right if other is None else right + other)
        torch.testing.assert_close(y.double(), right, rtol=1e-5, atol=1e-4)


def test_windows_that_are_gathered_are_multiplied_as_torch_does(kernels: Any) -> None:
    cases = [case for case in (*CASES.values(), *map(drawn, range(100))) if case.groups == 1]
    assert len(cases) > 20
    for case in cases:
        x = torch.randn(case.x).contiguous(memory_format=torch.channels_last)
        weight = torch.randn(case.out, case.x[1], *case.window)
        right = functional.conv2d(
            x.double(), weight.double(), None, case.stride, case.padding, case.dilation
        )
        y = torch.full(right.shape, torch.inf).contiguous(memory_format=torch.channels_last)
        sizes = sizes_of(case, right)
        packed = torch.full((kernels.packed_size(sizes),), torch.nan)
        windows = torch.full((right[:, 0].numel() * weight[0].numel(),), torch.nan)
        tensors = (x, weight, packed, windows, y)
        kernels.gather(sizes, *(ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors))
        torch.testing.assert_close(y.double(), right, rtol=1e-5, atol=1e-4)


def test_memory_that_lies_idle_is_given_back(kernels: Any) -> None:
    """Of small blocks and of large ones, also where some of each call are held."""
    before = resident_mib()
    for count, numbers in ((2000, 2**16), (150, 2**20)):  # 500 and 600 MiB
        kernels.hold(ctypes.c_int64(count), ctypes.c_int64(numbers))
        assert resident_mib() - before > 200, "less what lies idle already"
        kernels.drop(ctypes.c_int64(count))
        assert resident_mib() - before < 300
    for number in range(20):  # 300 MiB of large blocks each time, and a small one that stays
        kernels.hold(ctypes.c_int64(1), ctypes.c_int64(2**15))
        kernels.hold(ctypes.c_int64(75), ctypes.c_int64(2**20))
        assert resident_mib() - before < 600, number
        kernels.drop_last(ctypes.c_int64(75))
    kernels.drop(ctypes.c_int64(20))
    assert resident_mib() - before < 300


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
