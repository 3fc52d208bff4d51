// exp, tanh, erf, sin, cos and pow of a register of floats, for `inductor_vector.h`.
//
// The first three are looked up with AVX-512 (`float_pieces.h`), and elsewhere those of `inductor_kernel.h`,
// lane by lane.
#pragma once
#include "float_pieces.h"
#include "inductor_registers.h"

namespace at::vec::pieces {

using Floats = Register<float>;

INLINE Floats magnitude_of(Floats x) {
  return as<Floats>(as<Register<uint32_t>>(x) & 0x7FFFFFFFu);
}

// Makes a whole number of what is below 2^22, with its bits in the lowest places.
constexpr float to_whole = 12582912.0f;

#if PASSNET_VECTOR_BYTES == 64 && defined(__AVX512F__)
using passnet::pieces::erf;
using passnet::pieces::exp;
using passnet::pieces::tanh;
#else
#define FUNCTION(NAME)                                                   \
  INLINE Floats NAME(Floats x) {                                         \
    __at_align__ float lanes[PASSNET_VECTOR_BYTES / sizeof(float)];      \
    std::memcpy(lanes, &x, sizeof(lanes));                               \
    for (float& lane : lanes) lane = inductor::NAME(lane);               \
    return as<Floats>(lanes);                                            \
  }
FUNCTION(exp)
FUNCTION(tanh)
FUNCTION(erf)
#undef FUNCTION
#endif

// Within 1.6 ulp. The nearest multiple of pi / 2 is taken off in four parts, of which the first two
// times it are exact; lanes beyond 8192 are computed one by one.
template <bool IsCosine>
INLINE Floats wave(Floats x) {
  using Ints = Register<int32_t>;
  if (!all_lanes(as<Floats>(as<Ints>(x) & 0x7FFFFFFF) < 8192.0f)) {
    for (size_t i = 0; i < PASSNET_VECTOR_BYTES / sizeof(float); i++)
      x[i] = IsCosine ? std::cos(x[i]) : std::sin(x[i]);
    return x;
  }
  Floats m = x * 0.636619772f + to_whole, n = m - to_whole;
  Floats r = x - n * 1.5703125f - n * 4.837512969970703e-4f;
  r = r - n * 7.54979013e-08f - n * -1.71512451e-15f;
  Floats s = r * r;
  Floats sine = r + r * s * ((-1.95161134e-4f * s + 8.33217986e-3f) * s - 0.166666552f);
  Floats cosine = ((2.44302846e-5f * s - 1.3887299e-3f) * s + 4.16666456e-2f) * s * s - 0.5f * s;
  Ints turns = as<Ints>(m) + IsCosine;
  Ints chosen = as<Ints>((turns & 1) != 0 ? cosine + 1.0f : sine);
  return as<Floats>(chosen ^ ((turns & 2) << 30));
}
INLINE Floats sin(Floats x) { return wave<false>(x); }
INLINE Floats cos(Floats x) { return wave<true>(x); }

// x^y of doubles that were floats, for finite x > 0 and finite y, within 2e-10: 2^(y * log2(x)). The
// logarithm of the mantissa, which lies around 1, is the series of 2 * atanh((m - 1) / (m + 1)).
INLINE Register<double> power(Register<double> x, Register<double> y) {
  using Longs = Register<int64_t>;
  using Doubles = Register<double>;
  Longs bits = as<Longs>(x), e = (bits - 0x3FE6A09E667F3BCD) >> 52;
  Doubles m = as<Doubles>(bits - (e << 52)), s = (m - 1.0) / (m + 1.0), z = s * s;
  Doubles p = z * 0.07692307692307693 + 0.09090909090909091;
  p = p * z + 0.1111111111111111;
  p = p * z + 0.14285714285714285;
  p = p * z + 0.2;
  p = p * z + 0.3333333333333333;
  Doubles exponent = __builtin_convertvector(e, Doubles);
  Doubles t = y * (exponent + (s + s * z * p) * 2.8853900817779268);
  t = t > 200.0 ? Doubles{} + 200.0 : t < -200.0 ? Doubles{} - 200.0 : t;
  Doubles n = t + 6755399441055744.0, f = (t - (n - 6755399441055744.0)) * 0.6931471805599453;
  Doubles q = f * 2.48015873015873e-05 + 1.984126984126984e-04;
  q = q * f + 1.388888888888889e-03;
  q = q * f + 8.333333333333333e-03;
  q = q * f + 4.1666666666666664e-02;
  q = q * f + 0.16666666666666666;
  q = q * f + 0.5;
  q = q * f + 1.0;
  return as<Doubles>(as<Longs>(q * f + 1.0) + (as<Longs>(n) << 52));
}

// Rounded from a double in all but a few of a million cases. Where a lane has no finite number, or
// none above 0, all lanes are computed one by one.
INLINE Floats pow(Floats x, Floats y) {
  constexpr float largest = 3.4028235e38f;
  if (!all_lanes((x > 0.0f) & (x <= largest) & (magnitude_of(y) <= largest))) {
    for (size_t i = 0; i < PASSNET_VECTOR_BYTES / sizeof(float); i++) x[i] = std::pow(x[i], y[i]);
    return x;
  }
  Register<double> bases[2], exponents[2];
  cast_all<double, 2, float, 1>(&x, bases);
  cast_all<double, 2, float, 1>(&y, exponents);
  for (int i = 0; i < 2; i++) bases[i] = power(bases[i], exponents[i]);
  cast_all<float, 1, double, 2>(bases, &x);
  return x;
}

}  // namespace at::vec::pieces
