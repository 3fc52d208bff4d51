"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_add_hardswish_mul_rsqrt_sub_view_0 {
static void kernel(float* __restrict__ in_out_ptr0,
     const float* __restrict__ in_ptr0,
     const float* __restrict__ in_ptr1,
     const float* __restrict__ in_ptr2,
     const float* __restrict__ in_ptr3,
     const float* __restrict__ in_ptr4)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(72L); x0+=static_cast<int64_t>(1L))
  {
   for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(196L); x1+=static_cast<int64_t>(16L))
   {
    {
     if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(192L)))
     {
      auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 196L*x0), static_cast<int64_t>(16));
      auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];
      auto tmp5 = in_ptr2[static_cast<int64_t>(x0)];
      auto tmp9 = in_ptr3[static_cast<int64_t>(x0)];
      auto tmp10 = in_ptr4[static_cast<int64_t>(x0)];
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
      auto tmp15 = static_cast<float>(3.0);
      auto tmp16 = at::vec::Vectorized<float>(tmp15);
      auto tmp17 = tmp14 + tmp16;
      auto tmp18 = static_cast<float>(0.0);
      auto tmp19 = at::vec::Vectorized<float>(tmp18);
      auto tmp20 = at::vec::maximum(tmp17, tmp19);
      auto tmp21 = static_cast<float>(6.0);
      auto tmp22 = at::vec::Vectorized<float>(tmp21);
      auto tmp23 = at::vec::minimum(tmp20, tmp22);
      auto tmp24 = tmp14 * tmp23;
      auto tmp25 = tmp24 / tmp22;
      tmp25.store(in_out_ptr0 + static_cast<int64_t>(x1 + 196L*x0));
     }
     if(C10_UNLIKELY(x1 >= static_cast<int64_t>(192L) && x1 < static_cast<int64_t>(196L)))
     {
      auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x1 + 196L*x0), static_cast<int64_t>(4L));
      auto tmp1 = in_ptr1[static_cast<int64_t>(x0)];
      auto tmp5 = in_ptr2[static_cast<int64_t>(x0)];
      auto tmp9 = in_ptr3[static_cast<int64_t>(x0)];
      auto tmp10 = in_ptr4[static_cast<int64_t>(x0)];
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
      auto tmp15 = static_cast<float>(3.0);
      auto tmp16 = at::vec::Vectorized<float>(tmp15);
      auto tmp17 = tmp14 + tmp16;
      auto tmp18 = static_cast<float>(0.0);
      auto tmp19 = at::vec::Vectorized<float>(tmp18);
      auto tmp20 = at::vec::maximum(tmp17, tmp19);
      auto tmp21 = static_cast<float>(6.0);
      auto tmp22 = at::vec::Vectorized<float>(tmp21);
      auto tmp23 = at::vec::minimum(tmp20, tmp22);
      auto tmp24 = tmp14 * tmp23;
      auto tmp25 = tmp24 / tmp22;
      tmp25.store(in_out_ptr0 + static_cast<int64_t>(x1 + 196L*x0), static_cast<int64_t>(4L));
     }
    }
   }
  }
 }
 inductor_cpu_integer_div_error_flag = nullptr;
 inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
}

extern "C" const char* launch(const float* in_0, const float* in_1, const float* in_2, const float* in_3, const float* in_4, float* buf0) {
try {
  cpp_fused_add_hardswish_mul_rsqrt_sub_view_0::kernel((float*)(buf0), (const float*)(in_0), (const float*)(in_2), (const float*)(in_3), (const float*)(in_4), (const float*)(in_1));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
