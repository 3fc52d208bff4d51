"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_add_mul_rsqrt_sub_view_0 {
static void kernel(const float* __restrict__ in_ptr0,
     const float* __restrict__ in_ptr1,
     const float* __restrict__ in_ptr2,
     const float* __restrict__ in_ptr3,
     const float* __restrict__ in_ptr4,
     float* __restrict__ out_ptr0)
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
      tmp14.store(out_ptr0 + static_cast<int64_t>(x1 + 196L*x0));
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
      tmp14.store(out_ptr0 + static_cast<int64_t>(x1 + 196L*x0), static_cast<int64_t>(4L));
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
  cpp_fused_add_mul_rsqrt_sub_view_0::kernel((const float*)(in_0), (const float*)(in_2), (const float*)(in_3), (const float*)(in_4), (const float*)(in_1), (float*)(buf0));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
