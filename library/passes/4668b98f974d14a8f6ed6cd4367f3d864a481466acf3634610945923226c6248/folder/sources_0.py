"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_gelu_0 {
static void kernel(const float* __restrict__ in_ptr0,
     float* __restrict__ out_ptr0)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(125440L); x0+=static_cast<int64_t>(16L))
  {
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(125440L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp1 = static_cast<float>(0.5);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 * tmp2;
     auto tmp4 = static_cast<float>(0.7071067811865476);
     auto tmp5 = at::vec::Vectorized<float>(tmp4);
     auto tmp6 = tmp0 * tmp5;
     auto tmp7 = tmp6.erf();
     auto tmp8 = static_cast<float>(1.0);
     auto tmp9 = at::vec::Vectorized<float>(tmp8);
     auto tmp10 = tmp7 + tmp9;
     auto tmp11 = tmp3 * tmp10;
     tmp11.store(out_ptr0 + static_cast<int64_t>(x0));
    }
   }
  }
 }
 inductor_cpu_integer_div_error_flag = nullptr;
 inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
}

extern "C" const char* launch(const float* in_0, float* buf0) {
try {
  cpp_fused_gelu_0::kernel((const float*)(in_0), (float*)(buf0));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
