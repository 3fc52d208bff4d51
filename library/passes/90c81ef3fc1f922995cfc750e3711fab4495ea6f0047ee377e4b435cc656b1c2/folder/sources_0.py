"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_add_0 {
static void kernel(const float* __restrict__ in_ptr0,
     const float* __restrict__ in_ptr1,
     float* __restrict__ out_ptr0)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(37824L); x0+=static_cast<int64_t>(16L))
  {
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(37824L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp1 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp2 = tmp0 + tmp1;
     tmp2.store(out_ptr0 + static_cast<int64_t>(x0));
    }
   }
  }
 }
 inductor_cpu_integer_div_error_flag = nullptr;
 inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
}

extern "C" const char* launch(const float* in_0, const float* in_1, float* buf0) {
try {
  cpp_fused_add_0::kernel((const float*)(in_0), (const float*)(in_1), (float*)(buf0));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
