"""x + y and its root-mean-square norm: nine ops, one block of threads a row, two outputs."""

import torch
from pass_dir.nvrtc import kernel

SOURCE = r"""
struct half16 { unsigned short bits; };
struct bf16 { unsigned short bits; };

__device__ float load(const float* p) { return *p; }
__device__ float load(const half16* p) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(p->bits));
  return value;
}
__device__ float load(const bf16* p) { return __uint_as_float(unsigned(p->bits) << 16); }

__device__ void store(float* p, float value) { *p = value; }
__device__ void store(half16* p, float value) {
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(p->bits) : "f"(value));
}
__device__ void store(bf16* p, float value) {  // to nearest, ties to even; NaN stays NaN
  unsigned bits = __float_as_uint(value);
  unsigned up = bits + 0x7FFFu + ((bits >> 16) & 1u);
  p->bits = value == value ? up >> 16 : 0x7FC0;
}

// What a value becomes when an op writes it as T and the next op reads it back.
template <typename T>
__device__ float rounded(float value) {
  T stored;
  store(&stored, value);
  return load(&stored);
}

// The sum over all threads of a block, of which there are whole warps.
__device__ float block_sum(float value) {
  __shared__ float parts[32];
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : 0.0f;
  for (int step = 16; step; step >>= 1) value += __shfl_xor_sync(0xFFFFFFFFu, value, step);
  return value;
}

template <typename T>
__device__ void add_rms_norm(const T* x, const T* y, const T* w, T* sum, T* out, long long n,
                             float eps) {
  long long row = blockIdx.x * n;
  float squares = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) {
    float total = rounded<T>(load(x + row + i) + load(y + row + i));
    store(sum + row + i, total);
    squares += total * total;
  }
  float scale = rsqrtf(block_sum(squares) / n + eps);
  for (long long i = threadIdx.x; i < n; i += blockDim.x)  // each thread reads what it wrote
    store(out + row + i, load(w + i) * rounded<T>(load(sum + row + i) * scale));
}

#define EXPORT(T, NAME)                                                                     \
  extern "C" __global__ void NAME(const T* x, const T* y, const T* w, T* sum, T* out,       \
                                  long long n, float eps) {                                 \
    add_rms_norm<T>(x, y, w, sum, out, n, eps);                                             \
  }
EXPORT(float, add_rms_norm_float32)
EXPORT(half16, add_rms_norm_float16)
EXPORT(bf16, add_rms_norm_bfloat16)
"""
ADD_RMS_NORM = {
    dtype: kernel(SOURCE, f"add_rms_norm_{name}", "pppppnf")
    for dtype, name in (
        (torch.float32, "float32"),
        (torch.float16, "float16"),
        (torch.bfloat16, "bfloat16"),
    )
}


guards = (
    "x, y, weight: float32 or bfloat16 or float16, same dtype, contiguous, not empty",
    "x, y: shape (..., n)",
    "weight: shape (n)",
)


def guard(x, dtype):
    return dtype == x.dtype


def pattern(x, y, weight, eps: float, dtype: torch.dtype):
    total = x + y
    wide = total.to(torch.float32)
    square = wide.pow(2)
    mean = square.mean(-1, keepdim=True)
    scale = torch.rsqrt(mean + eps)
    return total, weight * (wide * scale).to(dtype)


def replacement_args(x, y, weight, eps, dtype):
    return x, y, weight, eps


def add_rms_norm(x, y, weight, eps):
    shape = x.shape if x.numel() >= y.numel() else y.shape
    x, y, weight = x.expand(shape).contiguous(), y.expand(shape).contiguous(), weight.contiguous()
    total, out = torch.empty_like(x), torch.empty_like(x)
    n = weight.numel()
    threads = 1024 if n > 4096 else 256
    ADD_RMS_NORM[x.dtype](
        x.numel() // n, threads, x.data_ptr(), y.data_ptr(), weight.data_ptr(), total.data_ptr(),
        out.data_ptr(), n, eps,
    )  # fmt: skip
    return total, out


def replacement_func():
    return add_rms_norm
