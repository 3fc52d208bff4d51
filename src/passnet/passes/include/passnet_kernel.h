// Small helpers for C++ kernels in passes: bfloat16 and float16, rounding between ops, vectorisable
// functions.
//
// Everything is branch-free and inline, so that a loop marked `#pragma omp simd` vectorises.
// Accuracy is given against double precision; eager torch is itself within 1 to 2 ulp.
#pragma once

// The activation that a graph computes of the result, where a kernel stores `PASSNET_EPILOGUE(value)`.
#ifndef PASSNET_EPILOGUE
#define PASSNET_EPILOGUE(value) (value)
#endif

#include <cmath>
#include <cstdint>
#include <cstring>

namespace passnet {

// A bfloat16 number as it lies in memory: the upper half of a float.
struct bf16 {
  static constexpr char passnet_letter = 'g';
  uint16_t bits;
};

// A float16 number as it lies in memory: half precision of IEEE 754.
struct f16 {
  static constexpr char passnet_letter = 'e';
  uint16_t bits;
};

template <typename To, typename From>
static inline To same_bits(const From& value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

static inline float as_float(uint32_t bits) { return same_bits<float>(bits); }
static inline uint32_t as_bits(float value) { return same_bits<uint32_t>(value); }

static inline float load(const float* p) { return *p; }
static inline float load(const bf16* p) { return as_float(uint32_t(p->bits) << 16); }

// Round to nearest, ties to even, as torch does; NaN stays NaN.
static inline uint16_t bf16_bits(float value) {
  uint32_t bits = as_bits(value);
  uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  return value == value ? uint16_t(rounded) : uint16_t(0x7FC0);
}

// Half precision to and from float by arithmetic on bits: a compiler vectorises it for processors
// that convert one number at a time, too. Ties go to even; NaN stays NaN; numbers below 2^-14 have
// units of 2^-24. F is float and U uint32_t, or both are vectors of these.
template <typename F, typename U>
static inline F f16_values(U bits) {
  U sign = (bits & 0x8000u) << 16, rest = (bits & 0x7FFFu) << 13;
  U tiny = same_bits<U>(same_bits<F>(rest + 0x38800000u) - 6.103515625e-05f);
  U large = rest + (rest >= 0x0F800000u ? U{} + 0x70000000u : U{} + 0x38000000u);
  return same_bits<F>(sign | (rest < 0x00800000u ? tiny : large));
}

template <typename U, typename F>
static inline U f16_bits_of(F values) {
  U bits = same_bits<U>(values), sign = (bits >> 16) & 0x8000u, rest = bits & 0x7FFFFFFFu;
  U tiny = same_bits<U>(same_bits<F>(rest) + 0.5f) - 0x3F000000u;
  U large = (rest + 0xFFFu + ((rest >> 13) & 1u) - 0x38000000u) >> 13;
  U half = rest < 0x38800000u ? tiny : large;
  half = rest >= 0x477FF000u ? U{} + 0x7C00u : half;
  half = rest > 0x7F800000u ? U{} + 0x7E00u : half;
  return sign | half;
}

static inline float f16_value(uint16_t bits) { return f16_values<float>(uint32_t(bits)); }
static inline uint16_t f16_bits(float value) { return uint16_t(f16_bits_of<uint32_t>(value)); }

static inline float load(const f16* p) { return f16_value(p->bits); }

static inline void store(float* p, float value) { *p = value; }
static inline void store(bf16* p, float value) { p->bits = bf16_bits(value); }
static inline void store(f16* p, float value) { p->bits = f16_bits(value); }

// What a value becomes when an op writes it as T and the next op reads it back.
template <typename T>
static inline float rounded(float value);
template <>
inline float rounded<float>(float value) {
  return value;
}
template <>
inline float rounded<bf16>(float value) {
  return as_float(uint32_t(bf16_bits(value)) << 16);
}
template <>
inline float rounded<f16>(float value) {
  return f16_value(f16_bits(value));
}

// e^x is 2 * half * (1 + rest) for x in [-87.4, 89]: half a whole power of two, and a polynomial of
// what remains. A half that would be denormal is 0.
struct ExpParts {
  float half, rest;
};
static inline ExpParts exp_parts(float x) {
  float clamped = x < -87.4f ? -87.4f : x;
  clamped = clamped > 89.0f ? 89.0f : clamped;
  float n = std::nearbyint(clamped * 1.44269504f);
  float r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  return {as_float(uint32_t(int32_t(n) + 126) << 23), p * r * r + r};
}

// e^x within 2 ulp for x in [-86.9, 88.7]; 0 below -87, infinity above 88.73, NaN for NaN: what is
// too large becomes infinity where it is doubled.
static inline float exp(float x) {
  ExpParts parts = exp_parts(x);
  return (parts.rest + 1.0f) * parts.half * 2.0f;
}

static inline float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }
static inline float silu(float x) { return x / (1.0f + exp(-x)); }

static inline float relu(float x) { return x < 0 ? 0 : x; }

// Absolute error below 2e-7.
static inline float tanh(float x) {
  float a = x < 0 ? -x : x;
  float e = exp(-2.0f * a);
  float big = (1.0f - e) / (1.0f + e);
  float s = x * x;
  float small = a * (1.0f + s * (-0.333333333f + s * (0.133333333f + s * -0.0539682540f)));
  float value = a < 0.1f ? small : big;
  return x < 0 ? -value : value;
}

// 1 - erf(a) for a >= 0, with an absolute error below 2e-7 (Abramowitz and Stegun 7.1.26).
static inline float erfc_of_positive(float a) {
  float t = 1.0f / (1.0f + 0.3275911f * a);
  float p = 1.061405429f;
  p = p * t - 1.453152027f;
  p = p * t + 1.421413741f;
  p = p * t - 0.284496736f;
  p = p * t + 0.254829592f;
  return p * t * exp(-a * a);
}

// Absolute error below 5e-7, sharpened by a series near 0.
static inline float erf(float x) {
  float a = x < 0 ? -x : x;
  float big = 1.0f - erfc_of_positive(a);
  float s = x * x;
  float small = 1.128379167f * a *
                (1.0f + s * (-0.333333333f + s * (0.1f + s * (-0.0238095238f + s * 0.00462962963f))));
  float value = a < 0.5f ? small : big;
  return x < 0 ? -value : value;
}

// Absolute error below 2e-7 times x.
static inline float gelu(float x) {
  float rest = 0.5f * erfc_of_positive(0.7071067812f * (x < 0 ? -x : x));
  return x < 0 ? x * rest : x - (x < 20.0f ? x : 20.0f) * rest;
}

static inline float gelu_tanh(float x) {  // (1 + tanh(z)) / 2 is sigmoid(2 z)
  return x * sigmoid(1.5957691216f * (x + 0.044715f * x * x * x));
}

}  // namespace passnet
