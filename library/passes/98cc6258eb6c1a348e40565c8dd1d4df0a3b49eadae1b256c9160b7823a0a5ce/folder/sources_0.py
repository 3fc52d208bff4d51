"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused__to_copy_add_arange_bitwise_and_embedding_expand_gather_ge_index_native_layer_norm_new_ones_slice_unsqueeze_0 {
static void kernel(float* __restrict__ in_out_ptr0,
     float* __restrict__ in_out_ptr1,
     const int64_t* __restrict__ in_ptr0,
     const float* __restrict__ in_ptr1,
     const int64_t* __restrict__ in_ptr2,
     const int64_t* __restrict__ in_ptr3,
     const float* __restrict__ in_ptr4,
     const float* __restrict__ in_ptr5,
     const float* __restrict__ in_ptr6,
     const float* __restrict__ in_ptr7,
     const int64_t* __restrict__ in_ptr8,
     float* __restrict__ out_ptr2,
     bool* __restrict__ out_ptr3)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 auto out_ptr1 = in_out_ptr0;
 auto out_ptr0 = in_out_ptr1;
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(32L); x0+=static_cast<int64_t>(1L))
  {
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(768L); x1+=static_cast<int64_t>(16L))
    {
     {
      if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(768L)))
      {
       auto tmp0 = in_ptr0[static_cast<int64_t>(x0)];
       auto tmp5 = in_ptr2[static_cast<int64_t>(x0)];
       auto tmp1 = tmp0;
       auto tmp2 = c10::convert<int64_t>(tmp1);
       TORCH_CHECK((0 <= tmp2) & (tmp2 < 30522L), "index out of bounds: 0 <= tmp2 < 30522L");
       auto tmp4 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x1 + 768L*tmp0), static_cast<int64_t>(16));
       auto tmp6 = tmp5;
       auto tmp7 = c10::convert<int64_t>(tmp6);
       TORCH_CHECK((0 <= tmp7) & (tmp7 < 512L), "index out of bounds: 0 <= tmp7 < 512L");
       auto tmp9 = in_ptr3[static_cast<int64_t>(tmp5)];
       auto tmp10 = tmp9;
       auto tmp11 = c10::convert<int64_t>(tmp10);
       TORCH_CHECK((0 <= tmp11) & (tmp11 < 2L), "index out of bounds: 0 <= tmp11 < 2L");
       auto tmp13 = at::vec::Vectorized<float>::loadu(in_ptr4 + static_cast<int64_t>(x1 + 768L*tmp9), static_cast<int64_t>(16));
       auto tmp14 = tmp4 + tmp13;
       auto tmp15 = at::vec::Vectorized<float>::loadu(in_ptr5 + static_cast<int64_t>(x1 + 768L*tmp5), static_cast<int64_t>(16));
       auto tmp16 = tmp14 + tmp15;
       tmp16.store(in_out_ptr1 + static_cast<int64_t>(x1 + 768L*x0));
       tmp_acc0_vec = tmp_acc0_vec + tmp16;
      }
     }
    }
    tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec);
    in_out_ptr0[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
   }
  }
 }
 {
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(32L); x0+=static_cast<int64_t>(16L))
  {
   {
    if(C10_LIKELY(x0 >= static_cast<int64_t>(0) && x0 < static_cast<int64_t>(32L)))
    {
     auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr1 + static_cast<int64_t>(x0), static_cast<int64_t>(16));
     auto tmp1 = static_cast<float>(768.0);
     auto tmp2 = at::vec::Vectorized<float>(tmp1);
     auto tmp3 = tmp0 / tmp2;
     tmp3.store(in_out_ptr0 + static_cast<int64_t>(x0));
    }
   }
  }
 }
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(32L); x0+=static_cast<int64_t>(1L))
  {
   {
    float tmp_acc0 = 0;
    at::vec::Vectorized<float> tmp_acc0_vec = at::vec::Vectorized<float>(0);
    for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(768L); x1+=static_cast<int64_t>(16L))
    {
     {
      if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(768L)))
      {
       auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x1 + 768L*x0), static_cast<int64_t>(16));
       auto tmp1 = in_out_ptr0[static_cast<int64_t>(x0)];
       auto tmp2 = at::vec::Vectorized<float>(tmp1);
       auto tmp3 = tmp0 - tmp2;
       auto tmp4 = tmp3 * tmp3;
       tmp_acc0_vec = tmp_acc0_vec + tmp4;
      }
     }
    }
    tmp_acc0 = tmp_acc0 + at::vec::vec_reduce_all<float, 1>([](at::vec::Vectorized<float>& x, at::vec::Vectorized<float>& y) { return x + y; }, tmp_acc0_vec);
    out_ptr2[static_cast<int64_t>(x0)] = static_cast<float>(tmp_acc0);
   }
  }
 }
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(32L); x0+=static_cast<int64_t>(1L))
  {
   for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(768L); x1+=static_cast<int64_t>(16L))
   {
    {
     if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(768L)))
     {
      auto tmp0 = at::vec::Vectorized<float>::loadu(out_ptr0 + static_cast<int64_t>(x1 + 768L*x0), static_cast<int64_t>(16));
      auto tmp1 = in_out_ptr0[static_cast<int64_t>(x0)];
      auto tmp4 = out_ptr2[static_cast<int64_t>(x0)];
      auto tmp12 = at::vec::Vectorized<float>::loadu(in_ptr6 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
      auto tmp14 = at::vec::Vectorized<float>::loadu(in_ptr7 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
      auto tmp2 = at::vec::Vectorized<float>(tmp1);
      auto tmp3 = tmp0 - tmp2;
      auto tmp5 = static_cast<float>(768.0);
      auto tmp6 = tmp4 / tmp5;
      auto tmp7 = static_cast<float>(1e-12);
      auto tmp8 = float(tmp6 + tmp7);
      auto tmp9 = 1 / inductor::sqrt(tmp8);
      auto tmp10 = at::vec::Vectorized<float>(tmp9);
      auto tmp11 = tmp3 * tmp10;
      auto tmp13 = tmp11 * tmp12;
      auto tmp15 = tmp13 + tmp14;
      tmp15.store(in_out_ptr1 + static_cast<int64_t>(x1 + 768L*x0));
     }
    }
   }
  }
 }
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(32L); x0+=static_cast<int64_t>(1L))
  {
   for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(32L); x1+=static_cast<int64_t>(16L))
   {
    {
     if(C10_LIKELY(x1 >= static_cast<int64_t>(0) && x1 < static_cast<int64_t>(32L)))
     {
      auto tmp6 = at::vec::VectorizedN<int64_t,2>::loadu(in_ptr8 + static_cast<int64_t>(x1), static_cast<int64_t>(16));
      auto tmp0 = x0;
      auto tmp1 = c10::convert<int64_t>(tmp0);
      auto tmp2 = static_cast<int64_t>(0);
      auto tmp3 = tmp1 >= tmp2;
      auto tmp4 = static_cast<bool>(true);
      auto tmp5 = decltype(tmp4)(tmp4 & tmp3);
      auto tmp7 = at::vec::VecMask<int64_t,2>::from<int64_t,2>(tmp6);
      auto tmp8 = at::vec::VecMask<float,1>::from(tmp5);
      auto tmp9 = tmp8.template cast<int32_t,1>();
      auto tmp10 = tmp7.template cast<int32_t,1>();
      auto tmp11 = tmp9 & tmp10;
      tmp11.store(out_ptr3 + static_cast<int64_t>(x1 + 32L*x0), static_cast<int64_t>(16));
     }
    }
   }
  }
 }
 inductor_cpu_integer_div_error_flag = nullptr;
 inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
}

extern "C" const char* launch(const int64_t* in_0, const int64_t* in_1, const int64_t* in_2, const float* in_3, const float* in_4, const float* in_5, const float* in_6, const float* in_7, const int64_t* in_8, float* buf0, bool* buf5) {
try {
  inductor::Scratch<float> buf1_memory(32);
  float* buf1 = buf1_memory.data;
  inductor::Scratch<float> buf3_memory(32);
  float* buf3 = buf3_memory.data;
  cpp_fused__to_copy_add_arange_bitwise_and_embedding_expand_gather_ge_index_native_layer_norm_new_ones_slice_unsqueeze_0::kernel((float*)(buf1), (float*)(buf0), (const int64_t*)(in_2), (const float*)(in_3), (const int64_t*)(in_0), (const int64_t*)(in_1), (const float*)(in_4), (const float*)(in_5), (const float*)(in_6), (const float*)(in_7), (const int64_t*)(in_8), (float*)(buf3), (bool*)(buf5));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
