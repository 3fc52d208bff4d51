"""The tanh form of GELU, spelled out in eight ops by GPT-2, in CUDA C++ that torch compiles.

The first call compiles it with nvcc, which takes about a minute; torch keeps the result.
"""

from functools import lru_cache

import torch

DECLARATION = "torch::Tensor gelu_tanh(torch::Tensor x);"
SOURCE = r"""
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

// What a value becomes when an op writes it as T and the next op reads it back.
template <typename T>
__device__ float rounded(float value) {
  return static_cast<float>(static_cast<T>(value));
}

template <typename T>
__global__ void gelu_tanh_kernel(const T* x, T* out, int64_t size) {
  int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= size) return;
  float v = static_cast<float>(x[i]);
  float cube = rounded<T>(rounded<T>(v * v) * v);
  float inner = rounded<T>(v + rounded<T>(0.044715f * cube));
  float t = rounded<T>(tanhf(rounded<T>(0.7978845608028654f * inner)));
  out[i] = static_cast<T>(rounded<T>(0.5f * v) * rounded<T>(1.0f + t));
}

template <typename T>
void launch(const torch::Tensor& x, torch::Tensor& out) {
  int64_t size = x.numel(), threads = 256;
  if (size == 0) return;
  gelu_tanh_kernel<T><<<(size + threads - 1) / threads, threads, 0,
                        c10::cuda::getCurrentCUDAStream()>>>(x.const_data_ptr<T>(),
                                                             out.mutable_data_ptr<T>(), size);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

torch::Tensor gelu_tanh(torch::Tensor x) {
  const c10::cuda::CUDAGuard guard(x.device());
  auto out = torch::empty_like(x);
  if (x.scalar_type() == torch::kFloat) launch<float>(x, out);
  else if (x.scalar_type() == torch::kHalf) launch<c10::Half>(x, out);
  else if (x.scalar_type() == torch::kBFloat16) launch<c10::BFloat16>(x, out);
  else TORCH_CHECK(false, "gelu_tanh is there for float32, float16 and bfloat16");
  return out;
}
"""


@lru_cache
def compiled():
    from torch.utils.cpp_extension import load_inline

    return load_inline("passnet_gelu_tanh", DECLARATION, SOURCE, functions=["gelu_tanh"])


guards = ("x: float32 or bfloat16 or float16, contiguous",)


def pattern(x):
    half = 0.5 * x
    inner = x + 0.044715 * torch.pow(x, 3.0)
    return half * (1.0 + torch.tanh(0.7978845608028654 * inner))


def replacement_args(x):
    return (x,)


def gelu_tanh(x):
    return compiled().gelu_tanh(x.contiguous())


def replacement_func():
    return gelu_tanh
