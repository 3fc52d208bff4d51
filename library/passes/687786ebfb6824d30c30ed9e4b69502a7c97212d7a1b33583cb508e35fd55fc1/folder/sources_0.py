"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_mean_native_layer_norm_0 {
static void kernel(float* __restrict__ in_out_ptr0,
     float* __restrict__ in_out_ptr1,
     const float* __restrict__ in_ptr0,
     const float* __restrict__ in_ptr1,
     const float* __restrict__ in_ptr2,
     float* __restrict__ out_ptr1)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 auto out_ptr0 = in_out_ptr0;
 auto out_ptr2 = in_out_ptr1;
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(196L); x0+=static_cast<int64_t>(16L))
  {
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(512L); x1+=static_cast<int64_t>(1L))
    {
     {
      if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(16));
       tmp_acc0_vec = tmp_acc0_vec + tmp0;
      }
      if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(4L));
       tmp_acc0_vec = sum_masked_reduce(tmp_acc0_vec, tmp0, static_cast<int64_t>(4L));
      }
     }
    }
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L)))
    {
     tmp_acc0_vec.store(out_ptr0 + static_cast<int64_t>(x0));
    }
    if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L)))
    {
     tmp_acc0_vec.store(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(4L));
    }
   }
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp1 = static_cast<float>(512.0);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 / tmp2;
     tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0));
    }
    if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(4L));
     auto tmp1 = static_cast<float>(512.0);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 / tmp2;
     tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(4L));
    }
   }
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(512L); x1+=static_cast<int64_t>(1L))
    {
     {
      if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(16));
       auto tmp1 = at::vec::Vectorized<float>::loadu(in_out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
       auto tmp2 = tmp0 - tmp1;
       auto tmp3 = tmp2 * tmp2;
       tmp_acc0_vec = tmp_acc0_vec + tmp3;
      }
      if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(4L));
       auto tmp1 = at::vec::Vectorized<float>::loadu(in_out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(4L));
       auto tmp2 = tmp0 - tmp1;
       auto tmp3 = tmp2 * tmp2;
       tmp_acc0_vec = sum_masked_reduce(tmp_acc0_vec, tmp3, static_cast<int64_t>(4L));
      }
     }
    }
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L)))
    {
     tmp_acc0_vec.store(out_ptr1 + static_cast<int64_t>(x0));
    }
    if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L)))
    {
     tmp_acc0_vec.store(out_ptr1 + static_cast<int64_t>(x0), static_cast<int64_t>(4L));
    }
   }
  }
 }
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(512L); x0+=static_cast<int64_t>(1L))
  {
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(196L); x1+=static_cast<int64_t>(16L))
    {
     {
      if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(192L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 196L*x0), static_cast<int64_t>(16));
       auto tmp1 = at::vec::Vectorized<float>::loadu(in_out_ptr0 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
       auto tmp3 = at::vec::Vectorized<float>::loadu(out_ptr1 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
       auto tmp12 = in_ptr1[static_cast<int64_t>(x0)];
       auto tmp15 = in_ptr2[static_cast<int64_t>(x0)];
       auto tmp2 = tmp0 - tmp1;
       auto tmp4 = static_cast<float>(512.0);
       auto tmp5 = at::vec::Vectorized<float>(tmp4);
       auto tmp6 = tmp3 / tmp5;
       auto tmp7 = static_cast<float>(1e-06);
       auto tmp8 = at::vec::Vectorized<float>(tmp7);
       auto tmp9 = tmp6 + tmp8;
       auto tmp10 = tmp9.rsqrt();
       auto tmp11 = tmp2 * tmp10;
       auto tmp13 = at::vec::Vectorized<float>(tmp12);
       auto tmp14 = tmp11 * tmp13;
       auto tmp16 = at::vec::Vectorized<float>(tmp15);
       auto tmp17 = tmp14 + tmp16;
       tmp_acc0_vec = tmp_acc0_vec + tmp17;
      }
      if(C10_UNLIKELY(x1 >= static_cast<int64_t>(192L) && x1 < static_cast<int64_t>(196L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 196L*x0), static_cast<int64_t>(4L));
       auto tmp1 = at::vec::Vectorized<float>::loadu(in_out_ptr0 + static_cast<int64_t>(x1), static_cast<int64_t>(4L));
       auto tmp3 = at::vec::Vectorized<float>::loadu(out_ptr1 + static_cast<int64_t>(x1), static_cast<int64_t>(4L));
       auto tmp12 = in_ptr1[static_cast<int64_t>(x0)];
       auto tmp15 = in_ptr2[static_cast<int64_t>(x0)];
       auto tmp2 = tmp0 - tmp1;
       auto tmp4 = static_cast<float>(512.0);
       auto tmp5 = at::vec::Vectorized<float>(tmp4);
       auto tmp6 = tmp3 / tmp5;
       auto tmp7 = static_cast<float>(1e-06);
       auto tmp8 = at::vec::Vectorized<float>(tmp7);
       auto tmp9 = tmp6 + tmp8;
       auto tmp10 = tmp9.rsqrt();
       auto tmp11 = tmp2 * tmp10;
       auto tmp13 = at::vec::Vectorized<float>(tmp12);
       auto tmp14 = tmp11 * tmp13;
       auto tmp16 = at::vec::Vectorized<float>(tmp15);
       auto tmp17 = tmp14 + tmp16;
       tmp_acc0_vec = sum_masked_reduce(tmp_acc0_vec, tmp17, static_cast<int64_t>(4L));
      }
     }
    }
    tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec);
    in_out_ptr1[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
   }
  }
 }
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(512L); x0+=static_cast<int64_t>(16L))
  {
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(512L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr2 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp1 = static_cast<float>(196.0);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 / tmp2;
     tmp3.store(in_out_ptr1 + static_cast<int64_t>(x0));
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
  cpp_fused_mean_native_layer_norm_0::kernel((float*)(buf0), (float*)(buf3), (const float*)(in_0), (const float*)(in_1), (const float*)(in_2), (float*)(buf2));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
