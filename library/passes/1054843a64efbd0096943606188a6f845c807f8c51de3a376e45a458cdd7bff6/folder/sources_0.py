"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_cat_expand_transpose_view_0 {
static void kernel(const float* in_ptr0,
     const float* in_ptr1,
     float* out_ptr0,
     float* out_ptr1)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(192L); x0+=static_cast<int64_t>(16L))
  {
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     tmp0.store(out_ptr0 + static_cast<int64_t>(x0));
    }
   }
  }
 }
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(196L); x0+=static_cast<int64_t>(16L))
  {
   for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(192L); x1+=static_cast<int64_t>(16L))
   {
    {
     if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(192L) && x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(192L)))
     {
      alignas(inductor::max(inductor::size_t(16), alignof(float))) float tmp0[16*16];
      transpose_mxn<float,static_cast<int64_t>(16),static_cast<int64_t>(16),false>(in_ptr1 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(196L), tmp0, static_cast<int64_t>(16));
      for (long x0_inner = 0; x0_inner < static_cast<int64_t>(16); x0_inner++)
      {
       auto tmp1 = at::vec::Vectorized<float>::loadu(tmp0 + static_cast<int64_t>(16L*x0_inner), static_cast<int64_t>(16));
       tmp1.store(out_ptr1 + static_cast<int64_t>(x1 + 192L*x0 + 192L*x0_inner));
      }
     }
     if(C10_UNLIKELY(x0 >= static_cast<int64_t>(192L) && x0 < static_cast<int64_t>(196L) && x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(192L)))
     {
      alignas(inductor::max(inductor::size_t(16), alignof(float))) float tmp0[16*16];
      transpose_mxn<float,static_cast<int64_t>(16),static_cast<int64_t>(4L),false>(in_ptr1 + static_cast<int64_t>(x0 + 196L*x1), static_cast<int64_t>(196L), tmp0, static_cast<int64_t>(16));
      for (long x0_inner = 0; x0_inner < static_cast<int64_t>(4L); x0_inner++)
      {
       auto tmp1 = at::vec::Vectorized<float>::loadu(tmp0 + static_cast<int64_t>(16L*x0_inner), static_cast<int64_t>(16));
       tmp1.store(out_ptr1 + static_cast<int64_t>(x1 + 192L*x0 + 192L*x0_inner));
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

extern "C" const char* launch(const float* in_0, const float* in_1, float* buf2) {
try {
  cpp_fused_cat_expand_transpose_view_0::kernel((const float*)(in_1), (const float*)(in_0), (float*)(buf2), (float*)(buf2 + 192));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
