"""The choices that torch's code for CUDA makes: kernels of attention, layouts of convolutions."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from passnet.inductor.attention import attention_on_cuda, layout_of_convolution


def called(dtype, **changes):
    """Names of the library's attention kernels that a call comes to, under fake tensors."""
    from torch.utils._python_dispatch import TorchDispatchMode

    names = []

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(func.overloadpacket.__name__)
            return func(*args, **(kwargs or {}))

    head, rows = changes.pop("head", 64), changes.pop("rows", 16)
    mask = changes.pop("mask", None)
    with FakeTensorMode():
        query, key, value = (torch.empty(2, 4, size, head, dtype=dtype) for size in (rows, 16, 16))
        if mask is not None:
            changes["attn_mask"] = torch.empty(rows, 16, dtype=mask)
        with Names():
            result = attention_on_cuda(query, key, value, **changes)
    assert result.shape == query.shape
    return [name for name in names if "attention" in name] or ["in parts"], names


@pytest.mark.parametrize(
    ("dtype", "changes", "expected"),
    [
        (torch.float16, {}, "_scaled_dot_product_flash_attention"),
        (torch.float16, {"head": 60}, "_scaled_dot_product_flash_attention"),
        (torch.bfloat16, {"mask": torch.bool}, "_scaled_dot_product_efficient_attention"),
        (torch.float32, {}, "_scaled_dot_product_efficient_attention"),
        (torch.float16, {"is_causal": True, "rows": 8}, "_scaled_dot_product_efficient_attention"),
        (torch.float32, {"head": 63}, "in parts"),
        (torch.float64, {}, "in parts"),
    ],
)
def test_the_kernel_depends_on_dtype_mask_and_size(dtype, changes, expected):
    assert called(dtype, **changes)[0] == [expected]


def test_a_mask_of_uneven_rows_is_padded():
    with FakeTensorMode():
        parts = [torch.empty(2, 4, 12, 64) for _ in range(3)]
        assert attention_on_cuda(*parts, attn_mask=torch.empty(12, 12)).shape == (2, 4, 12, 64)


@pytest.mark.parametrize(
    ("dtype", "is_last", "expected"),
    [
        (torch.float32, False, torch.contiguous_format),
        (torch.float32, True, torch.channels_last),
        (torch.float64, True, torch.contiguous_format),
    ],
)
def test_a_convolution_keeps_the_layout_that_an_operand_has(dtype, is_last, expected):
    inputs, weight = torch.empty(2, 3, 8, 8, dtype=dtype), torch.empty(4, 3, 3, 3, dtype=dtype)
    if is_last:
        inputs = inputs.to(memory_format=torch.channels_last)
    assert layout_of_convolution(inputs, weight) == expected
