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
   for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(512L); x1+=static_cast<int64_t>(16L))
   {
    {
     if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L) && x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(512L)))
     {
      alignas(inductor::max(inductor::size_t(16), alignof(float))) float tmp0[16*16];
      transpose_mxn<float,static_cast<int64_t>(16),static_cast<int64_t>(16),false>(in_ptr0 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(196L), tmp0, static_cast<int64_t>(16));
      for (long x0_inner = 0; x0_inner < static_cast<int64_t>(16); x0_inner++)
      {
       auto tmp1 = at::vec::Vectorized<float>::loadu(tmp0 + static_cast<int64_t>(16L*x0_inner), static_cast<int64_t>(16));
       auto tmp2 = in_out_ptr0[static_cast<int64_t>(x0 + x0_inner)];
       auto tmp5 = out_ptr1[static_cast<int64_t>(x0 + x0_inner)];
       auto tmp13 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
       auto tmp15 = at::vec::Vectorized<float>::loadu(in_ptr2 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
       auto tmp3 = at::vec::Vectorized<float>(tmp2);
       auto tmp4 = tmp1 - tmp3;
       auto tmp6 = static_cast<float>(512.0);
       auto tmp7 = tmp5 / tmp6;
       auto tmp8 = static_cast<float>(1e-06);
       auto tmp9 = float(tmp7 + tmp8);
       auto tmp10 = 1 / inductor::sqrt(tmp9);
       auto tmp11 = at::vec::Vectorized<float>(tmp10);
       auto tmp12 = tmp4 * tmp11;
       auto tmp14 = tmp12 * tmp13;
       auto tmp16 = tmp14 + tmp15;
       tmp16.store(out_ptr2 + static_cast<int64_t>(x1 + 512L*x0 + 512L*x0_inner));
      }
     }
     if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L) && x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(512L)))
     {
      alignas(inductor::max(inductor::size_t(16), alignof(float))) float tmp0[16*16];
      transpose_mxn<float,static_cast<int64_t>(16),static_cast<int64_t>(4L),false>(in_ptr0 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(196L), tmp0, static_cast<int64_t>(16));
      for (long x0_inner = 0; x0_inner < static_cast<int64_t>(4L); x0_inner++)
      {
       auto tmp1 = at::vec::Vectorized<float>::loadu(tmp0 + static_cast<int64_t>(16L*x0_inner), static_cast<int64_t>(16));
       auto tmp2 = in_out_ptr0[static_cast<int64_t>(x0 + x0_inner)];
       auto tmp5 = out_ptr1[static_cast<int64_t>(x0 + x0_inner)];
       auto tmp13 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
       auto tmp15 = at::vec::Vectorized<float>::loadu(in_ptr2 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
       auto tmp3 = at::vec::Vectorized<float>(tmp2);
       auto tmp4 = tmp1 - tmp3;
       auto tmp6 = static_cast<float>(512.0);
       auto tmp7 = tmp5 / tmp6;
       auto tmp8 = static_cast<float>(1e-06);
       auto tmp9 = float(tmp7 + tmp8);
       auto tmp10 = 1 / inductor::sqrt(tmp9);
       auto tmp11 = at::vec::Vectorized<float>(tmp10);
       auto tmp12 = tmp4 * tmp11;
       auto tmp14 = tmp12 * tmp13;
       auto tmp16 = tmp14 + tmp15;
       tmp16.store(out_ptr2 + static_cast<int64_t>(x1 + 512L*x0 + 512L*x0_inner));
      }
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
