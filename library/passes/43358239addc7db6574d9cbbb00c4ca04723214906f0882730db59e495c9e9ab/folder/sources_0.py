"""C++ that Inductor generated, in the vocabulary of passnet."""

SOURCE_0 = r"""
#define PASSNET_VECTOR_BYTES 64
#include "inductor_vector.h"

namespace cpp_fused_max_pool2d_with_indices_0 {
static void kernel(const float* __restrict__ in_ptr0,
     float* __restrict__ out_ptr0)
{
 inductor::atomic<int> inductor_cpu_integer_div_error{0};
 inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
 {
  #pragma GCC ivdep
  for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(64L); x0+=static_cast<int64_t>(1L))
  {
   #pragma GCC ivdep
   for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(56L); x1+=static_cast<int64_t>(1L))
   {
    for(int64_t x2=static_cast<int64_t>(0L); x2<static_cast<int64_t>(56L); x2+=static_cast<int64_t>(16L))
    {
     {
      if(C10_LIKELY(x2 >= static_cast<int64_t>(0) && x2 < static_cast<int64_t>(48L)))
      {
       auto tmp0 = (-1L) + 2L*x1;
       auto tmp1 = c10::convert<int64_t>(tmp0);
       auto tmp2 = static_cast<int64_t>(0);
       auto tmp3 = tmp1 >= tmp2;
       auto tmp4 = static_cast<int64_t>(112);
       auto tmp5 = tmp1 < tmp4;
       auto tmp6 = tmp3 & tmp5;
       auto tmp7 = (-1L) + 2L*x2;
       auto tmp8 = c10::convert<int64_t>(tmp7);
       auto tmp9 = at::vec::VectorizedN<int64_t,2>::arange(tmp8, 2);
       auto tmp10 = at::vec::VectorizedN<int64_t,2>(tmp2);
       auto tmp11 = at::vec::VecMask<int64_t,2>(tmp9 >= tmp10);
       auto tmp12 = at::vec::VectorizedN<int64_t,2>(tmp4);
       auto tmp13 = at::vec::VecMask<int64_t,2>(tmp9 < tmp12);
       auto tmp14 = tmp11 & tmp13;
       auto tmp15 = at::vec::VecMask<float,1>::from(tmp6);
       auto tmp16 = tmp15 & tmp14;
       auto tmp17 = [&]
       {
        auto tmp18 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp16.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-113L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp18;
       }
       ;
       auto tmp21 =
       [&]
       {
        if (tmp16.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp19 = tmp17();
         auto tmp20 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp19)::blendv(tmp20, tmp19, tmp16.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp22 = 2L*x2;
       auto tmp23 = c10::convert<int64_t>(tmp22);
       auto tmp24 = at::vec::VectorizedN<int64_t,2>::arange(tmp23, 2);
       auto tmp25 = at::vec::VecMask<int64_t,2>(tmp24 >= tmp10);
       auto tmp26 = at::vec::VecMask<int64_t,2>(tmp24 < tmp12);
       auto tmp27 = tmp25 & tmp26;
       auto tmp28 = tmp15 & tmp27;
       auto tmp29 = [&]
       {
        auto tmp30 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp28.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-112L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp30;
       }
       ;
       auto tmp33 =
       [&]
       {
        if (tmp28.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp31 = tmp29();
         auto tmp32 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp31)::blendv(tmp32, tmp31, tmp28.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp34 = at::vec::maximum(tmp21, tmp33);
       auto tmp35 = 1L + 2L*x2;
       auto tmp36 = c10::convert<int64_t>(tmp35);
       auto tmp37 = at::vec::VectorizedN<int64_t,2>::arange(tmp36, 2);
       auto tmp38 = at::vec::VecMask<int64_t,2>(tmp37 >= tmp10);
       auto tmp39 = at::vec::VecMask<int64_t,2>(tmp37 < tmp12);
       auto tmp40 = tmp38 & tmp39;
       auto tmp41 = tmp15 & tmp40;
       auto tmp42 = [&]
       {
        auto tmp43 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp41.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-111L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp43;
       }
       ;
       auto tmp46 =
       [&]
       {
        if (tmp41.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp44 = tmp42();
         auto tmp45 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp44)::blendv(tmp45, tmp44, tmp41.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp47 = at::vec::maximum(tmp34, tmp46);
       auto tmp48 = 2L*x1;
       auto tmp49 = c10::convert<int64_t>(tmp48);
       auto tmp50 = tmp49 >= tmp2;
       auto tmp51 = tmp49 < tmp4;
       auto tmp52 = tmp50 & tmp51;
       auto tmp53 = at::vec::VecMask<float,1>::from(tmp52);
       auto tmp54 = tmp53 & tmp14;
       auto tmp55 = [&]
       {
        auto tmp56 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp54.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-1L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp56;
       }
       ;
       auto tmp59 =
       [&]
       {
        if (tmp54.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp57 = tmp55();
         auto tmp58 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp57)::blendv(tmp58, tmp57, tmp54.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp60 = at::vec::maximum(tmp47, tmp59);
       auto tmp61 = tmp53 & tmp27;
       auto tmp62 = [&]
       {
        auto tmp63 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp61.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp63;
       }
       ;
       auto tmp66 =
       [&]
       {
        if (tmp61.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp64 = tmp62();
         auto tmp65 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp64)::blendv(tmp65, tmp64, tmp61.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp67 = at::vec::maximum(tmp60, tmp66);
       auto tmp68 = tmp53 & tmp40;
       auto tmp69 = [&]
       {
        auto tmp70 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp68.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(1L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp70;
       }
       ;
       auto tmp73 =
       [&]
       {
        if (tmp68.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp71 = tmp69();
         auto tmp72 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp71)::blendv(tmp72, tmp71, tmp68.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp74 = at::vec::maximum(tmp67, tmp73);
       auto tmp75 = 1L + 2L*x1;
       auto tmp76 = c10::convert<int64_t>(tmp75);
       auto tmp77 = tmp76 >= tmp2;
       auto tmp78 = tmp76 < tmp4;
       auto tmp79 = tmp77 & tmp78;
       auto tmp80 = at::vec::VecMask<float,1>::from(tmp79);
       auto tmp81 = tmp80 & tmp14;
       auto tmp82 = [&]
       {
        auto tmp83 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp81.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(111L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp83;
       }
       ;
       auto tmp86 =
       [&]
       {
        if (tmp81.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp84 = tmp82();
         auto tmp85 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp84)::blendv(tmp85, tmp84, tmp81.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp87 = at::vec::maximum(tmp74, tmp86);
       auto tmp88 = tmp80 & tmp27;
       auto tmp89 = [&]
       {
        auto tmp90 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp88.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(112L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp90;
       }
       ;
       auto tmp93 =
       [&]
       {
        if (tmp88.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp91 = tmp89();
         auto tmp92 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp91)::blendv(tmp92, tmp91, tmp88.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp94 = at::vec::maximum(tmp87, tmp93);
       auto tmp95 = tmp80 & tmp40;
       auto tmp96 = [&]
       {
        auto tmp97 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(16); x2_inner++)
         {
          if (tmp95.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(113L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(16));
        }
        ()
        ;
        return tmp97;
       }
       ;
       auto tmp100 =
       [&]
       {
        if (tmp95.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp98 = tmp96();
         auto tmp99 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp98)::blendv(tmp99, tmp98, tmp95.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp101 = at::vec::maximum(tmp94, tmp100);
       tmp101.store(out_ptr0 + static_cast<int64_t>(x2 + 56L*x1 + 3136L*x0));
      }
      if(C10_UNLIKELY(x2 >= static_cast<int64_t>(48L) && x2 < static_cast<int64_t>(56L)))
      {
       auto tmp0 = (-1L) + 2L*x1;
       auto tmp1 = c10::convert<int64_t>(tmp0);
       auto tmp2 = static_cast<int64_t>(0);
       auto tmp3 = tmp1 >= tmp2;
       auto tmp4 = static_cast<int64_t>(112);
       auto tmp5 = tmp1 < tmp4;
       auto tmp6 = tmp3 & tmp5;
       auto tmp7 = (-1L) + 2L*x2;
       auto tmp8 = c10::convert<int64_t>(tmp7);
       auto tmp9 = at::vec::VectorizedN<int64_t,2>::arange(tmp8, 2);
       auto tmp10 = at::vec::VectorizedN<int64_t,2>(tmp2);
       auto tmp11 = at::vec::VecMask<int64_t,2>(tmp9 >= tmp10);
       auto tmp12 = at::vec::VectorizedN<int64_t,2>(tmp4);
       auto tmp13 = at::vec::VecMask<int64_t,2>(tmp9 < tmp12);
       auto tmp14 = tmp11 & tmp13;
       auto tmp15 = at::vec::VecMask<float,1>::from(tmp6);
       auto tmp16 = tmp15 & tmp14;
       auto tmp17 = [&]
       {
        auto tmp18 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp16.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-113L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp18;
       }
       ;
       auto tmp21 =
       [&]
       {
        if (tmp16.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp19 = tmp17();
         auto tmp20 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp19)::blendv(tmp20, tmp19, tmp16.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp22 = 2L*x2;
       auto tmp23 = c10::convert<int64_t>(tmp22);
       auto tmp24 = at::vec::VectorizedN<int64_t,2>::arange(tmp23, 2);
       auto tmp25 = at::vec::VecMask<int64_t,2>(tmp24 >= tmp10);
       auto tmp26 = at::vec::VecMask<int64_t,2>(tmp24 < tmp12);
       auto tmp27 = tmp25 & tmp26;
       auto tmp28 = tmp15 & tmp27;
       auto tmp29 = [&]
       {
        auto tmp30 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp28.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-112L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp30;
       }
       ;
       auto tmp33 =
       [&]
       {
        if (tmp28.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp31 = tmp29();
         auto tmp32 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp31)::blendv(tmp32, tmp31, tmp28.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp34 = at::vec::maximum(tmp21, tmp33);
       auto tmp35 = 1L + 2L*x2;
       auto tmp36 = c10::convert<int64_t>(tmp35);
       auto tmp37 = at::vec::VectorizedN<int64_t,2>::arange(tmp36, 2);
       auto tmp38 = at::vec::VecMask<int64_t,2>(tmp37 >= tmp10);
       auto tmp39 = at::vec::VecMask<int64_t,2>(tmp37 < tmp12);
       auto tmp40 = tmp38 & tmp39;
       auto tmp41 = tmp15 & tmp40;
       auto tmp42 = [&]
       {
        auto tmp43 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp41.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-111L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp43;
       }
       ;
       auto tmp46 =
       [&]
       {
        if (tmp41.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp44 = tmp42();
         auto tmp45 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp44)::blendv(tmp45, tmp44, tmp41.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp47 = at::vec::maximum(tmp34, tmp46);
       auto tmp48 = 2L*x1;
       auto tmp49 = c10::convert<int64_t>(tmp48);
       auto tmp50 = tmp49 >= tmp2;
       auto tmp51 = tmp49 < tmp4;
       auto tmp52 = tmp50 & tmp51;
       auto tmp53 = at::vec::VecMask<float,1>::from(tmp52);
       auto tmp54 = tmp53 & tmp14;
       auto tmp55 = [&]
       {
        auto tmp56 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp54.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>((-1L) + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp56;
       }
       ;
       auto tmp59 =
       [&]
       {
        if (tmp54.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp57 = tmp55();
         auto tmp58 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp57)::blendv(tmp58, tmp57, tmp54.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp60 = at::vec::maximum(tmp47, tmp59);
       auto tmp61 = tmp53 & tmp27;
       auto tmp62 = [&]
       {
        auto tmp63 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp61.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp63;
       }
       ;
       auto tmp66 =
       [&]
       {
        if (tmp61.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp64 = tmp62();
         auto tmp65 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp64)::blendv(tmp65, tmp64, tmp61.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp67 = at::vec::maximum(tmp60, tmp66);
       auto tmp68 = tmp53 & tmp40;
       auto tmp69 = [&]
       {
        auto tmp70 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp68.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(1L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp70;
       }
       ;
       auto tmp73 =
       [&]
       {
        if (tmp68.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp71 = tmp69();
         auto tmp72 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp71)::blendv(tmp72, tmp71, tmp68.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp74 = at::vec::maximum(tmp67, tmp73);
       auto tmp75 = 1L + 2L*x1;
       auto tmp76 = c10::convert<int64_t>(tmp75);
       auto tmp77 = tmp76 >= tmp2;
       auto tmp78 = tmp76 < tmp4;
       auto tmp79 = tmp77 & tmp78;
       auto tmp80 = at::vec::VecMask<float,1>::from(tmp79);
       auto tmp81 = tmp80 & tmp14;
       auto tmp82 = [&]
       {
        auto tmp83 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp81.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(111L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp83;
       }
       ;
       auto tmp86 =
       [&]
       {
        if (tmp81.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp84 = tmp82();
         auto tmp85 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp84)::blendv(tmp85, tmp84, tmp81.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp87 = at::vec::maximum(tmp74, tmp86);
       auto tmp88 = tmp80 & tmp27;
       auto tmp89 = [&]
       {
        auto tmp90 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp88.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(112L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp90;
       }
       ;
       auto tmp93 =
       [&]
       {
        if (tmp88.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp91 = tmp89();
         auto tmp92 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp91)::blendv(tmp92, tmp91, tmp88.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp94 = at::vec::maximum(tmp87, tmp93);
       auto tmp95 = tmp80 & tmp40;
       auto tmp96 = [&]
       {
        auto tmp97 =
        [&]
        {
         __at_align__ inductor::array<float, 16> tmpbuf;
         #pragma GCC unroll 16
         for (long x2_inner = 0; x2_inner < static_cast<int64_t>(8L); x2_inner++)
         {
          if (tmp95.is_masked(x2_inner))
          {
           tmpbuf[x2_inner] = in_ptr0[static_cast<int64_t>(113L + 2L*x2 + 2L*x2_inner + 224L*x1 + 12544L*x0)];
          }
         }
         return at::vec::Vectorized<float>::loadu(tmpbuf.data(), static_cast<int64_t>(8L));
        }
        ()
        ;
        return tmp97;
       }
       ;
       auto tmp100 =
       [&]
       {
        if (tmp95.all_zero())
        {
         return at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
        }
        else
        {
         auto tmp98 = tmp96();
         auto tmp99 = at::vec::Vectorized<float>(-inductor::numeric_limits<float>::infinity());
         return decltype(tmp98)::blendv(tmp99, tmp98, tmp95.template cast<float,1>());
        }
       }
       ()
       ;
       auto tmp101 = at::vec::maximum(tmp94, tmp100);
       tmp101.store(out_ptr0 + static_cast<int64_t>(x2 + 56L*x1 + 3136L*x0), static_cast<int64_t>(8L));
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

extern "C" const char* launch(const float* in_0, float* buf0) {
try {
  cpp_fused_max_pool2d_with_indices_0::kernel((const float*)(in_0), (float*)(buf0));
} catch (const inductor::Failure& failure) {
  return failure.text;
}
return nullptr;
}
"""
