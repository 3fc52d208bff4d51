"""Kernels counted by running every prefix, against those of the plan of one lowering."""

import pytest
import torch

from benchmarks.prefix_counts import launches, prefix_launches
from passnet.errors import InputError
from passnet.inductor.fusion import fusion_plan
from tests.data.mine.test_fusion import POINTWISE, graph

PRODUCT = graph(
    "a = torch.matmul(x, w)\nb = torch.relu(a)\nreturn (b,)",
    x=(16, 32),
    w=(32, 32),
)


@pytest.mark.slow
def test_running_every_prefix_counts_as_the_plan_does():
    assert prefix_launches(PRODUCT) == fusion_plan(PRODUCT).num_kernels() == [1, 2]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("case", [POINTWISE, PRODUCT], ids=["pointwise", "product"])
def test_launches_on_a_gpu_are_those_of_its_plan(case):
    assert prefix_launches(case, device="cuda") == fusion_plan(case, device="cuda").num_kernels()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a CUDA device is there")
def test_launches_on_a_gpu_that_is_not_there_are_an_error():
    with pytest.raises(InputError, match="'cuda' is not on this machine"):
        launches(POINTWISE, device="cuda")
