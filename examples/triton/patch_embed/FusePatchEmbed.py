"""The patch embedding of vision transformers as one matrix product.

Where the stride is the kernel's size, every number of the image is read by one patch only, so that
the convolution is the product of the weights [width, k] with the patches [k, patches]. The kernel
gathers the patches as it goes, and is right for any other stride too.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def patch_embed_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, num_patches, patches, columns, channels, height, width,
    embed, k, kernel_y, kernel_x, stride_y, stride_x, embed_block: tl.constexpr,
    patch_block: tl.constexpr, k_block: tl.constexpr,
):  # fmt: skip
    patch = tl.program_id(0) * patch_block + tl.arange(0, patch_block)
    feature = tl.program_id(1) * embed_block + tl.arange(0, embed_block)
    image, within = (patch // patches).to(tl.int64), patch % patches
    top, left = within // columns * stride_y, within % columns * stride_x
    corner = image * channels * height * width + top * width + left
    total = tl.zeros((embed_block, patch_block), dtype=tl.float32)
    for start in range(0, k, k_block):
        at = start + tl.arange(0, k_block)
        channel, area = at // (kernel_y * kernel_x), at % (kernel_y * kernel_x)
        offset = (channel * height + area // kernel_x) * width + area % kernel_x
        weight = tl.load(
            weight_ptr + feature.to(tl.int64)[:, None] * k + at[None, :],
            mask=(feature < embed)[:, None] & (at < k)[None, :], other=0.0,
        )  # fmt: skip
        pixels = tl.load(
            x_ptr + offset[:, None] + corner[None, :],
            mask=(at < k)[:, None] & (patch < num_patches)[None, :], other=0.0,
        )  # fmt: skip
        total = tl.dot(weight, pixels, total, input_precision="ieee")  # no TF32
    bias = tl.load(bias_ptr + feature, mask=feature < embed, other=0.0).to(tl.float32)
    total += bias[:, None]
    target = (image[None, :] * embed + feature[:, None]) * patches + within[None, :]
    inside = (feature < embed)[:, None] & (patch < num_patches)[None, :]
    tl.store(out_ptr + target, total.to(out_ptr.dtype.element_ty), mask=inside)


guards = (
    "x, weight, bias: float32 or bfloat16 or float16, same dtype, contiguous, not empty",
    "x: shape (batch, channels, height, width)",
    "weight: shape (embed, channels, y, x)",
    "bias: shape (embed)",
)


def pattern(x, weight, bias, stride: tuple):
    image = torch.conv2d(x, weight, bias, stride, (0, 0), (1, 1), 1)
    return image.flatten(2).transpose(1, 2)


def replacement_args(x, weight, bias, stride):
    return x, weight, bias, stride


def patch_embed(x, weight, bias, stride):
    x, weight, bias = x.contiguous(), weight.contiguous(), bias.contiguous()
    batch, channels, height, width = x.shape
    embed, _, kernel_y, kernel_x = weight.shape
    stride_y, stride_x = stride
    rows, columns = (height - kernel_y) // stride_y + 1, (width - kernel_x) // stride_x + 1
    patches = rows * columns
    out = torch.empty((batch, embed, patches), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(batch * patches, 64), triton.cdiv(embed, 64))
    patch_embed_kernel[grid](
        x, weight, bias, out, batch * patches, patches, columns, channels, height, width, embed,
        channels * kernel_y * kernel_x, kernel_y, kernel_x, stride_y, stride_x,
        embed_block=64, patch_block=64, k_block=32,
    )  # fmt: skip
    return out.transpose(1, 2)  # the memory order of what eager torch returns


def replacement_func():
    return patch_embed
