"""Library kernels for attention and convolution on CUDA, and the layouts of their results.

Torch's own choice is out of reach of a build for CPUs.

Source: torch 2.13, aten/src/ATen/native/transformers/attention.cpp, cuda/sdp_utils.cpp and
native/ConvUtils.h.
"""

import math
from typing import TypeAlias

import torch

Parts: TypeAlias = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
HALF = (torch.float16, torch.bfloat16)
MAX_FLASH_HEAD = 256
FLASH_ALIGNMENT = 8
MASK_ALIGNMENT = 8


def attention_on_cuda(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """Compute `scaled_dot_product_attention` by its parts on GPUs of capability 8.0 or later.

    cuDNN's kernel is one call too, and stands where flash or memory-efficient attention does.
    """
    aten = torch.ops.aten
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        zero = torch.scalar_tensor(0.0, dtype=query.dtype, device=attn_mask.device)
        attn_mask = torch.where(attn_mask.logical_not(), -math.inf, zero)
    parts = (query, key, value)
    if attn_mask is None and _fits_flash(parts, is_causal, enable_gqa):
        return _flash(parts, dropout_p, is_causal, scale)
    if not enable_gqa and _fits_efficient(parts):
        bias = None if attn_mask is None else _bias(attn_mask, query, key)
        return aten._scaled_dot_product_efficient_attention(
            *parts, bias, False, dropout_p, is_causal, scale=scale
        )[0]
    return aten._scaled_dot_product_attention_math(
        *parts, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )[0]


def _flash(parts: Parts, dropout_p: float, is_causal: bool, scale: float | None) -> torch.Tensor:
    head = parts[0].size(-1)
    missing = -head % FLASH_ALIGNMENT
    padded = [torch.nn.functional.pad(part, [0, missing]) if missing else part for part in parts]
    factor = 1 / math.sqrt(head) if scale is None else scale
    out = torch.ops.aten._scaled_dot_product_flash_attention(
        *padded, dropout_p, is_causal, False, scale=factor
    )[0]
    return out[..., :head] if missing else out


def _fits_flash(parts: Parts, is_causal: bool, enable_gqa: bool) -> bool:
    """Return whether halves have heads of one size, and are square if causal."""
    query, key, _ = parts
    heads = {part.size(-1) for part in parts}
    return (
        query.dtype in HALF
        and len(heads) == 1
        and heads.pop() <= MAX_FLASH_HEAD
        and _is_plain(parts, enable_gqa)
        and not (is_causal and query.size(-2) != key.size(-2))
    )


def _fits_efficient(parts: Parts) -> bool:
    """Return whether floats or halves have heads that fill whole 16-byte words."""
    query, key, value = parts
    heads = (query.size(-1), value.size(-1))
    alignment = 16 // query.element_size()
    return (
        query.dtype in (*HALF, torch.float32)
        and query.size(-1) == key.size(-1)
        and all(size > 0 and size % alignment == 0 for size in heads)
        and _is_plain(parts, False)
    )


def _is_plain(parts: Parts, enable_gqa: bool) -> bool:
    """Return whether the three are 4-dimensional, not empty, of one batch, and match in heads."""
    if any(part.dim() != 4 or 0 in part.shape or part.stride(-1) != 1 for part in parts):
        return False
    query, key, value = parts
    if len({part.size(0) for part in parts}) != 1 or key.size(1) != value.size(1):
        return False
    return query.size(1) == key.size(1) or (enable_gqa and query.size(1) % key.size(1) == 0)


def _bias(mask: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Return a mask with rows padded as the kernel reads them, for every batch and head."""
    is_aligned = mask.stride(-1) == 1 and all(
        mask.stride(axis) % MASK_ALIGNMENT == 0 for axis in range(mask.dim() - 1)
    )
    if not is_aligned:
        size = mask.size(-1)
        padded = torch.nn.functional.pad(mask, [0, MASK_ALIGNMENT - size % MASK_ALIGNMENT])
        mask = padded[..., :size]
    return mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))


def layout_of_convolution(inputs: torch.Tensor, weight: torch.Tensor) -> torch.memory_format:
    """Return the layout of cuDNN's result: channels last if an operand is channels last."""
    from torch._prims_common import suggest_memory_format

    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(weight.dim())
    is_double = torch.float64 in (inputs.dtype, weight.dtype)
    if last is None or is_double:
        return torch.contiguous_format
    is_last = last in (suggest_memory_format(inputs), suggest_memory_format(weight))
    return last if is_last else torch.contiguous_format
