"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_native_layer_norm_0 {
static void kernel(float* __restrict__ in_out_ptr0,
     const float* __restrict__ in_ptr0,
     const float* __restrict__ in_ptr1,
     const float* __restrict__ in_ptr2,
     float* __restrict__ out_ptr1,
     float* __restrict__ out_ptr2)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 auto out_ptr0 = in_out_ptr0;
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(196L); x0+=static_cast<int64_t>(1L))
  {
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(160L); x1+=static_cast<int64_t>(16L))
    {
     {
      if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(160L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 160L*x0), static_cast<int64_t>(16));
       tmp_acc0_vec = tmp_acc0_vec + tmp0;
      }
     }
    }
    tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec);
    in_out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
   }
  }
 }
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(196L); x0+=static_cast<int64_t>(16L))
  {
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp1 = static_cast<float>(160.0);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 / tmp2;
     tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0));
    }
    if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(4L));
     auto tmp1 = static_cast<float>(160.0);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 / tmp2;
     tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(4L));
    }
   }
  }
 }
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(196L); x0+=static_cast<int64_t>(1L))
  {
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(160L); x1+=static_cast<int64_t>(16L))
    {
     {
      if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(160L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 160L*x0), static_cast<int64_t>(16));
       auto tmp1 = in_out_ptr0[static_cast<int64_t>(x0)];
       auto tmp2 = at::vec::Vectorized<float>(tmp1);
       auto tmp3 = tmp0 - tmp2;
       auto tmp4 = tmp3 * tmp3;
       tmp_acc0_vec = tmp_acc0_vec + tmp4;
      }
     }
    }
    tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec);
    out_ptr1[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
   }
  }
 }
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(196L); x0+=static_cast<int64_t>(1L))
  {
   for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(160L); x1+=static_cast<int64_t>(16L))
   {
    {
     if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(160L)))
     {
      auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 160L*x0), static_cast<int64_t>(16));
      auto tmp1 = in_out_ptr0[static_cast<int64_t>(x0)];
      auto tmp4 = out_ptr1[static_cast<int64_t>(x0)];
      auto tmp12 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
      auto tmp14 = at::vec::Vectorized<float>::loadu(in_ptr2 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
      auto tmp2 = at::vec::Vectorized<float>(tmp1);
      auto tmp3 = tmp0 - tmp2;
      auto tmp5 = static_cast<float>(160.0);
      auto tmp6 = tmp4 / tmp5;
      auto tmp7 = static_cast<float>(1e-06);
      auto tmp8 = float(tmp6 + tmp7);
      auto tmp9 = 1 / inductor::sqrt(tmp8);
      auto tmp10 = at::vec::Vectorized<float>(tmp9);
      auto tmp11 = tmp3 * tmp10;
      auto tmp13 = tmp11 * tmp12;
      auto tmp15 = tmp13 + tmp14;
      tmp15.store(out_ptr2 + static_cast<int64_t>(x1 + 160L*x0));
     }
    }
   }
  }
 }
 inductor_cpu_integer_div_error_flag = nullptr;
 inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
}

extern "C" const char* launch(const float* in_0, const float* in_1, const float* in_2, float* buf3) {
try {
  inductor::Scratch<float> buf0_memory(196);
  float* buf0 = buf0_memory.data;
  inductor::Scratch<float> buf2_memory(196);
  float* buf2 = buf2_memory.data;
  cpp_fused_native_layer_norm_0::kernel((float*)(buf0), (const float*)(in_0), (const float*)(in_1), (const float*)(in_2), (float*)(buf2), (float*)(buf3));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
