"""Products by weights in 8 and 4 bits, against the same rounding in float64."""

import ctypes
import platform
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from passnet.errors import BackendError
from passnet.optimizer.backends.low_bits import low_bit_program
from passnet.passes.apply.packed_op import load_op
from passnet.passes.apply.packed_products import product_form
from passnet.passes.compilation import build

LEVELS = torch.tensor([-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127])
BLOCK = 64


@pytest.fixture(
    scope="module",
    params=["native", *(pytest.param(f"x86-64{v}", marks=pytest.mark.slow) for v in ("", "-v3"))],
)
def kernels(request: pytest.FixtureRequest) -> Any:
    if request.param != "native" and platform.machine() != "x86_64":
        pytest.skip("the processor is of another kind")
    root = Path(torch.__file__).parent
    flags = (f"-march={request.param}", "-std=c++20", "-w", f"-I{root}/include", f"-L{root}/lib",
             "-ltorch_cpu", "-lc10", f"-I{root}/include/torch/csrc/api/include")  # fmt: skip
    source = Path(__file__).with_name("low_bit_products.cpp").read_text(encoding="utf-8")
    return ctypes.CDLL(str(build(source, flags)))


def product(kernels: Any, x: torch.Tensor, weight: torch.Tensor, bits: int) -> torch.Tensor | int:
    """The product, or the number of what is wrong."""
    y = torch.full((len(x), len(weight)), torch.inf)
    sizes = (ctypes.c_int64 * 4)(len(x), *weight.shape, bits)
    places = [ctypes.c_void_p(each.data_ptr()) for each in (weight, x, y)]
    return kernels.product(sizes, *places) or y


def in_blocks(values: torch.Tensor, size: int) -> torch.Tensor:
    padded = nn.functional.pad(values, (0, -values.shape[1] % size))
    return padded.reshape(len(values), -1, size)


def rounded(values: torch.Tensor, bits: int, size: int) -> torch.Tensor:
    """Values to the nearest of what some bits hold, with a scale for so many: of 4 in bfloat16."""
    blocks = in_blocks(values, size)
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    if bits == 4:
        scale = scale.bfloat16().float()
    scaled = blocks * torch.where(scale > 0, 1 / scale, 0)
    if bits == 8:
        whole = scaled.round()
    else:
        whole = LEVELS[(scaled[..., None] - LEVELS).abs().argmin(-1)]
    back = whole.double() * scale.double()
    return back.reshape(len(values), -1)[:, : values.shape[1]]


def expected(x: torch.Tensor, weight: torch.Tensor, bits: int) -> torch.Tensor:
    size = BLOCK if bits == 4 else weight.shape[1]
    return rounded(x, 8, BLOCK) @ rounded(weight, bits, size).T


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 64), (7, 65), (16, 300), (130, 128), (5, 1029)])
def test_a_product_is_that_of_rounded_numbers(
    kernels: Any, sizes: tuple[int, int], bits: int
) -> None:
    torch.manual_seed(0)
    weight = torch.randn(sizes) * torch.rand(sizes[0], 1)
    weight[0, : sizes[1] // 2] = 0
    for rows in (1, 2, 3, 4, 5, 11):
        x = torch.randn(rows, sizes[1]) * torch.logspace(-20, 20, rows)[:, None]
        y = product(kernels, x, weight, bits)
        assert isinstance(y, torch.Tensor)
        right = expected(x, weight, bits)
        size = right.abs().amax(-1, keepdim=True)
        torch.testing.assert_close(y / size, right / size, rtol=1e-5, atol=2e-6, check_dtype=False)


@pytest.mark.parametrize(("bits", "error"), [(8, 0.012), (4, 0.1)])
def test_the_error_is_that_of_so_many_bits(kernels: Any, bits: int, error: float) -> None:
    torch.manual_seed(0)
    x, weight = torch.randn(4, 2048), torch.randn(256, 2048)
    right = x.double() @ weight.double().T
    assert 0.3 * error < (product(kernels, x, weight, bits) - right).norm() / right.norm() < error


@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
def test_what_is_not_finite_is_refused(kernels: Any, value: float) -> None:
    x, weight = torch.ones(2, 70), torch.ones(5, 70)
    x[1, 69] = value
    assert product(kernels, x, weight, 8) == 2
    assert product(kernels, torch.ones(2, 70), torch.full((5, 70), value), 4) == 1


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("rows", [1, 40])
def test_the_op_follows_its_weights_and_keeps_nan(bits: int, rows: int) -> None:
    load_op()
    torch.manual_seed(0)
    weight, bias, x = torch.randn(9, 70), torch.randn(9), torch.randn(rows, 70)
    form = product_form(has_bias=True, bits=bits)

    def check(limit: float) -> None:
        y = torch.ops.passnet_packed.product(x, [weight, bias], None, form)
        right = nn.functional.linear(x, weight, bias)
        assert bool(torch.equal(y.isnan(), right.isnan()))
        assert (y - right).nan_to_num(0).norm() <= limit * right.nan_to_num(0).norm()

    check(0.15)
    with torch.no_grad():
        weight.mul_(-3)
    check(0.15)
    x[0, 3] = torch.nan
    check(0.15)
    x[0, 3] = 1.0
    weight[2, 5] = torch.inf
    y = torch.ops.passnet_packed.product(x, [weight, bias], None, form)
    assert not y[:, 2].isfinite().any()


class Products(nn.Module):
    """Products by a linear layer, by a weight that lies the other way, and by a computed one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 5)
        self.other = nn.Parameter(torch.randn(5, 4))
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.addmm(self.bias, self.linear(x), self.other)
        return nn.functional.linear(y, self.other * 2), y


def test_products_by_weights_of_a_program_are_packed_and_others_are_not() -> None:
    net = Products()
    x = torch.randn(3, 6)
    program = export(net, (x,), dynamic_shapes=({0: Dim("rows", min=2, max=9)},))
    made = low_bit_program(program, 8)
    made.validate()
    names = [str(node.target) for node in made.graph.nodes if node.op == "call_function"]
    assert names.count("passnet_packed.product.default") == 2
    assert "aten.linear.default" in names
    assert "passnet_packed.product.default" not in {str(n.target) for n in program.graph.nodes}
    for rows in (2, 7):
        x = torch.randn(rows, 6)
        torch.testing.assert_close(made.module()(x), net(x), rtol=0.05, atol=0.1)
    with pytest.raises(BackendError, match="no product by weights"):
        low_bit_program(export(nn.ReLU(), (x,)), 8)
