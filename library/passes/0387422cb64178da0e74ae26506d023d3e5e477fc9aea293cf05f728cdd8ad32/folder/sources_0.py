"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_add_mean_mul_relu_rsqrt_sub_view_0 {
static void kernel(float* __restrict__ in_out_ptr0,
     const float* __restrict__ in_ptr0,
     const float* __restrict__ in_ptr1,
     const float* __restrict__ in_ptr2,
     const float* __restrict__ in_ptr3,
     const float* __restrict__ in_ptr4,
     const float* __restrict__ in_ptr5)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 auto out_ptr0 = in_out_ptr0;
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(512L); x0+=static_cast<int64_t>(1L))
  {
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(49L); x1+=static_cast<int64_t>(16L))
    {
     {
      if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(48L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 49L*x0), static_cast<int64_t>(16));
       auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];
       auto tmp5 = in_ptr2[static_cast<int64_t>(x0)];
       auto tmp9 = in_ptr3[static_cast<int64_t>(x0)];
       auto tmp10 = in_ptr4[static_cast<int64_t>(x0)];
       auto tmp15 = at::vec::Vectorized<float>::loadu(in_ptr5 + static_cast<int64_t>(x1 + 49L*x0), static_cast<int64_t>(16));
       auto tmp2 = static_cast<float>(1e-05);
       auto tmp3 = float(tmp1 + tmp2);
       auto tmp4 = 1 / inductor::sqrt(tmp3);
       auto tmp6 = float(tmp4 * tmp5);
       auto tmp7 = at::vec::Vectorized<float>(tmp6);
       auto tmp8 = tmp0 * tmp7;
       auto tmp11 = float(tmp10 * tmp6);
       auto tmp12 = float(tmp9 - tmp11);
       auto tmp13 = at::vec::Vectorized<float>(tmp12);
       auto tmp14 = tmp8 + tmp13;
       auto tmp16 = tmp14 + tmp15;
       auto tmp17 = at::vec::clamp_min(tmp16, decltype(tmp16)(0));
       tmp_acc0_vec = tmp_acc0_vec + tmp17;
      }
      if(C10_UNLIKELY(x1 >= static_cast<int64_t>(48L) && x1 < static_cast<int64_t>(49L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 49L*x0), static_cast<int64_t>(1L));
       auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];
       auto tmp5 = in_ptr2[static_cast<int64_t>(x0)];
       auto tmp9 = in_ptr3[static_cast<int64_t>(x0)];
       auto tmp10 = in_ptr4[static_cast<int64_t>(x0)];
       auto tmp15 = at::vec::Vectorized<float>::loadu(in_ptr5 + static_cast<int64_t>(x1 + 49L*x0), static_cast<int64_t>(1L));
       auto tmp2 = static_cast<float>(1e-05);
       auto tmp3 = float(tmp1 + tmp2);
       auto tmp4 = 1 / inductor::sqrt(tmp3);
       auto tmp6 = float(tmp4 * tmp5);
       auto tmp7 = at::vec::Vectorized<float>(tmp6);
       auto tmp8 = tmp0 * tmp7;
       auto tmp11 = float(tmp10 * tmp6);
       auto tmp12 = float(tmp9 - tmp11);
       auto tmp13 = at::vec::Vectorized<float>(tmp12);
       auto tmp14 = tmp8 + tmp13;
       auto tmp16 = tmp14 + tmp15;
       auto tmp17 = at::vec::clamp_min(tmp16, decltype(tmp16)(0));
       tmp_acc0_vec = sum_masked_reduce(tmp_acc0_vec, tmp17, static_cast<int64_t>(1L));
      }
     }
    }
    tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec);
    in_out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
   }
  }
 }
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(512L); x0+=static_cast<int64_t>(16L))
  {
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(512L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp1 = static_cast<float>(49.0);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 / tmp2;
     tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0));
    }
   }
  }
 }
 inductor_cpu_integer_div_error_flag = nullptr;
 inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
}

extern "C" const char* launch(const float* in_0, const float* in_1, const float* in_2, const float* in_3, const float* in_4, const float* in_5, float* buf0) {
try {
  cpp_fused_add_mean_mul_relu_rsqrt_sub_view_0::kernel((float*)(buf0), (const float*)(in_0), (const float*)(in_2), (const float*)(in_3), (const float*)(in_4), (const float*)(in_1), (const float*)(in_5));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
