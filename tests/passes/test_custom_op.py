"""Replacements stay what they are where Inductor compiles the rest around them."""

import logging
from pathlib import Path
from typing import Any

import pytest
import torch

from passnet.passes import cpp
from passnet.passes.apply.custom_op import wrap_sites
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.backend import Residual, compile_graph
from passnet.passes.match.guards import note_example_values
from tests.passes.graphs import CLAMP, assert_same, graph_of, pass_of, write_folder

pytestmark = pytest.mark.xdist_group("inductor")  # one process loads it

SCALE = CLAMP.replace("(torch.relu(x + y),)", "x * y").replace("clamp(x + y, min=0)", "mul(x, y)")


def test_a_result_in_a_tuple_of_one_feeds_another_replacement(tmp_path: Path) -> None:
    def net(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + y) * y

    folder = write_folder(tmp_path, Clamp=CLAMP, Scale=SCALE)
    matches: list[int] = []
    options: dict[str, Any] = {
        "passes": folder,
        "residual": "inductor",
        "report": lambda reports: matches.extend(report.num_matches for report in reports),
    }
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    torch._dynamo.reset()
    with torch.no_grad():
        actual = torch.compile(net, backend="passnet", options=options)(x, y)
    assert matches == [1, 1]
    assert torch.equal(actual, net(x, y))


@pytest.mark.slow
def test_an_argument_that_is_written_into_is_written_back_around_the_op() -> None:
    def net(x: torch.Tensor, y: torch.Tensor) -> Any:
        total = torch.relu_(x.add_(y))
        return total, x * 2

    module = graph_of(net)
    pass_ = pass_of(lambda x, y: torch.relu_(x.add_(y)))
    inputs = [torch.randn(4, 5), torch.randn(4, 5)]
    compiled, [report] = compile_graph(module, inputs, [pass_], "inductor")
    assert report.num_matches == 1
    assert_same(net, compiled, inputs)


def test_an_op_may_take_values_in_a_list() -> None:
    def net(x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.cat([x.neg(), y], 0).neg() + 1

    module = graph_of(net)
    joined = pass_of(
        lambda values, n: torch.cat(values, n).neg(),
        lambda values, n: torch.neg(torch.cat(values, n)),
    )
    inputs = [torch.randn(4, 5), torch.randn(4, 5)]
    later = pass_of(lambda x: x.neg())
    compiled, reports = compile_graph(module, inputs, [joined, later], "inductor")
    assert [report.num_matches for report in reports] == [1, 1]
    assert_same(net, compiled, inputs)


LATE = """
#include <cstdint>
extern "C" void rectify(const float* x, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) out[i] = x[i] > 0 ? x[i] : 0;
}
"""


@pytest.mark.parametrize("residual", ["inductor", "inlined"])
@pytest.mark.parametrize("is_noted", [True, False])
def test_replacement_args_may_lay_out_what_no_example_is_known_of(
    residual: Residual, is_noted: bool
) -> None:
    def net(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.neg() + y)

    pass_ = pass_of(
        lambda negative, y: torch.relu(negative + y),
        lambda negative, y: torch.clamp(negative + y, min=0),
        replacement_args=lambda negative, y: (negative.contiguous(), y),
    )
    inputs, module = [torch.randn(4, 5), torch.randn(4, 5)], graph_of(net)
    if is_noted:
        note_example_values(module, inputs)
    compiled, _ = compile_graph(module, inputs, [pass_], residual, is_judged=True)
    assert_same(net, compiled, inputs)


@pytest.mark.parametrize("is_cached", [True, False])
def test_a_kernel_that_is_made_at_the_first_call_is_seen_where_nothing_is_cached(
    is_cached: bool,
) -> None:
    def rectified(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        cpp.kernel(LATE, "rectify")(x, out, x.numel())
        return out

    def net(x: torch.Tensor) -> torch.Tensor:  # torch.relu itself tells no parameters
        return torch.relu(x)

    x = torch.randn(4, 5)
    module = graph_of(net)
    _, [site] = apply_passes(module, [pass_of(net, rectified)], [x])
    wrap_sites(module, [site], [x], sees_through=True, is_cached=is_cached)
    assert isinstance(site.node.target, torch._ops.OpOverload) == is_cached


@pytest.mark.parametrize("residual", ["eager", "inductor", "inlined"])
@pytest.mark.parametrize("is_argument", [True, False])
def test_results_share_no_memory_that_the_original_ops_results_do_not(
    residual: Residual, is_argument: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def copies(x: torch.Tensor) -> Any:
        y = x.clone()
        return y, y.clone()

    def same(x: torch.Tensor) -> Any:
        y = x.clone()
        return (x, y) if is_argument else (y, y)

    def net(x: torch.Tensor) -> Any:
        y = x.clone()
        z = y.clone()
        return x * 2, y.add_(1), z.mul_(3)

    x = torch.randn(4)
    compiled, [report] = compile_graph(graph_of(net), [x], [pass_of(copies, same)], residual)
    expected, before = net(x), x.clone()
    with caplog.at_level(logging.WARNING, "passnet"):
        assert all(map(torch.equal, compiled(x), expected)) and torch.equal(x, before)
    assert report.num_matches == 1
    assert f"memory of {'an argument' if is_argument else 'its result 1'}" in caplog.text


def test_inductor_sees_through_replacements_of_torch_ops_where_it_may() -> None:
    def net(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + y)

    def by_address(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.data_ptr()
        return torch.relu(x + y)

    def of_torch(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.clamp(x + y, min=0)

    inputs = [torch.randn(4, 5), torch.randn(4, 5)]
    for replacement, sees_through, is_op in (
        (of_torch, True, False),
        (of_torch, False, True),
        (by_address, True, True),
        (lambda x, y: of_torch(x, y).T, True, True),  # of another form
    ):
        module = graph_of(net)
        pass_ = pass_of(net, replacement)
        _, [site] = apply_passes(module, [pass_], inputs)
        wrap_sites(module, [site], inputs, sees_through=sees_through)
        assert isinstance(site.node.target, torch._ops.OpOverload) == is_op
