// What the C++ that Inductor generates for a CPU names, without a header of torch.
//
// Here is the scalar part; inductor_vector.h has the vectors. A kernel is generated text in which
// `std::` stands as `inductor::`, so that functions of float are those that a compiler vectorises.
// The names are those that the text uses, of torch 2.13 (torch/csrc/inductor/cpp_prefix.h).
#pragma once
#include <omp.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>

#include "passnet_kernel.h"

#define C10_LIKELY(x) __builtin_expect(bool(x), 1)
#define C10_UNLIKELY(x) __builtin_expect(bool(x), 0)

namespace inductor {

// What a kernel cannot go on with: an index out of bounds, a division by zero. The function that
// runs the kernels returns its text; in a loop of several threads it ends the process.
struct Failure {
  const char* text;
};

}  // namespace inductor

#define TORCH_CHECK(condition, ...) \
  if (C10_UNLIKELY(!(condition))) throw inductor::Failure{"" __VA_ARGS__}

namespace at {

struct BFloat16 {
  static constexpr char passnet_letter = 'g';
  uint16_t x;
  BFloat16() = default;
  BFloat16(float value) : x(passnet::bf16_bits(value)) {}
  operator float() const { return passnet::as_float(uint32_t(x) << 16); }
};

// One by one by an instruction, which a compiler does not vectorise. Who writes plain loops for a
// compiler to vectorise defines PASSNET_HALF_IN_LOOPS before: arithmetic on bits is vectorised.
struct Half {
  static constexpr char passnet_letter = 'e';
  uint16_t x;
  Half() = default;
#if defined(__F16C__) && !defined(PASSNET_HALF_IN_LOOPS)
  typedef short Words __attribute__((vector_size(16)));
  typedef float Floats __attribute__((vector_size(16)));
  Half(float value) : x(uint16_t(__builtin_ia32_vcvtps2ph(Floats{value}, 0)[0])) {}
  operator float() const { return __builtin_ia32_vcvtph2ps(Words{short(x)})[0]; }
#else
  Half(float value) : x(passnet::f16_bits(value)) {}
  operator float() const { return passnet::f16_value(x); }
#endif
};

}  // namespace at

namespace inductor {

using namespace std;

inline float exp(float x) { return passnet::exp(x); }

// Within 1.5 ulp: the 1 is taken off the power of two alone.
inline float expm1(float x) {
  passnet::ExpParts parts = passnet::exp_parts(x);
  return std::copysign((parts.rest * parts.half + (parts.half - 0.5f)) * 2.0f, x);
}

// Within 1.2 ulp: as near to eager torch's that both round to the same bfloat16. Below 1 it is a
// polynomial times x, fitted at Chebyshev nodes with weights that make the error relative.
inline float tanh(float x) {
  float a = std::fabs(x), s = a * a;
  float p = 1.203918728e-04f;
  p = p * s - 8.367857663e-04f;
  p = p * s + 3.071458777e-03f;
  p = p * s - 8.589019068e-03f;
  p = p * s + 2.178184688e-02f;
  p = p * s - 5.395236239e-02f;
  p = p * s + 1.333319098e-01f;
  p = p * s - 3.333332837e-01f;
  float small = a + a * s * p, big = 1.0f - 2.0f / (exp(2.0f * a) + 1.0f);
  return std::copysign(a < 1.0f ? small : big, x);
}

// Within 1.5 ulp. Below 1 a polynomial times x, above it 1 - exp of one; both fitted likewise.
inline float erf(float x) {
  float a = std::fabs(x), s = a * a, t = a > 4.0f ? 4.0f : a;
  float p = 7.847259258e-05f;
  p = p * s - 8.008189034e-04f;
  p = p * s + 5.188099109e-03f;
  p = p * s - 2.685369179e-02f;
  p = p * s + 1.128358245e-01f;
  p = p * s - 3.761262596e-01f;
  p = p * s + 1.283791661e-01f;
  float q = -2.178314753e-05f;
  q = q * t + 4.425255174e-04f;
  q = q * t - 4.210719839e-03f;
  q = q * t + 2.522559837e-02f;
  q = q * t - 1.084472686e-01f;
  q = q * t - 6.331920028e-01f;
  q = q * t - 1.129593253e+00f;
  q = q * t + 1.913330634e-04f;
  float small = a + a * p, big = 1.0f - exp(q);
  return std::copysign(a < 1.0f ? small : big, x);
}

// Within 1.5 ulp: of the mantissa a polynomial, fitted likewise, and the exponent times log 2, which
// is in two parts.
inline float log(float x) {
  bool is_tiny = x < 1.17549435e-38f;  // denormal, or no number greater than 0
  int32_t bits = int32_t(passnet::as_bits(is_tiny ? x * 33554432.0f : x));
  int32_t e = (bits - 0x3F3504F3) >> 23;
  float f = passnet::as_float(uint32_t(bits - e * 0x800000)) - 1.0f, n = float(e);
  n = is_tiny ? n - 25.0f : n;
  float p = 6.797289103e-02f;
  p = p * f - 1.170896143e-01f;
  p = p * f + 1.188262627e-01f;
  p = p * f - 1.239910796e-01f;
  p = p * f + 1.421942711e-01f;
  p = p * f - 1.666840166e-01f;
  p = p * f + 2.000214458e-01f;
  p = p * f - 2.500000298e-01f;
  p = p * f + 3.333331347e-01f;
  float value = n * 0.693359375f + (f + (f * f * (f * p - 0.5f) + n * -2.12194440e-4f));
  value = x > 3.4028235e38f ? x : value;
  value = x > 0.0f ? value : -INFINITY;
  return x < 0.0f || x != x ? NAN : value;
}

// The logarithm of the rounded sum, and what the rounding took away.
inline float log1p(float x) {
  float sum = 1.0f + x, lost = x - (sum - 1.0f);
  float value = log(sum) + lost / sum;
  value = sum > 3.4028235e38f ? x : value;
  return x == -1.0f ? -INFINITY : value;
}

// The arc sine of numbers up to 0.5: a polynomial times x, fitted likewise.
inline float small_asin(float x) {
  float s = x * x, p = 3.379811719e-02f;
  p = p * s + 1.708266139e-02f;
  p = p * s + 3.111509606e-02f;
  p = p * s + 4.459812865e-02f;
  p = p * s + 7.500098646e-02f;
  p = p * s + 1.666666567e-01f;
  return x + x * (s * p);
}

// Within 1.5 ulp: above 0.5 by the half of the angle between x and 1. Pi is in two parts.
inline float asin(float x) {
  float a = std::fabs(x), half = small_asin(a > 0.5f ? std::sqrt((1.0f - a) * 0.5f) : a);
  float value = 1.57079637f - (half + half) - 4.37113883e-08f;
  return std::copysign(a > 0.5f ? value : half, x);
}

// Within 1.5 ulp, likewise.
inline float acos(float x) {
  float a = std::fabs(x), half = small_asin(a > 0.5f ? std::sqrt((1.0f - a) * 0.5f) : a);
  float twice = half + half, other = 3.14159274f - (twice + 8.7422777e-08f);
  float value = 1.57079637f - (std::copysign(half, x) + 4.37113883e-08f);
  return a > 0.5f ? (x < 0.0f ? other : twice) : value;
}

// Within 2.5 ulp: of x, or of what is left of the angle without an eighth or a quarter of a turn.
inline float atan(float x) {
  float a = std::fabs(x);
  bool is_far = a > 2.41421356f, is_near = a <= 0.414213562f;
  float rest = is_far ? -1.0f / a : (is_near ? a : (a - 1.0f) / (a + 1.0f));
  float s = rest * rest, p = -6.456294656e-02f;
  p = p * s + 1.074523777e-01f;
  p = p * s - 1.426411867e-01f;
  p = p * s + 1.999954581e-01f;
  p = p * s - 3.333333135e-01f;
  float angle = rest + rest * (s * p);
  float far = 1.57079637f + (angle - 4.37113883e-08f);
  float between = 0.785398185f + (angle - 2.18556941e-08f);
  return std::copysign(is_far ? far : (is_near ? angle : between), x);
}

inline double asin(double x) { return std::asin(x); }
inline double acos(double x) { return std::acos(x); }
inline double atan(double x) { return std::atan(x); }
inline double exp(double x) { return std::exp(x); }
inline double log(double x) { return std::log(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }

// Memory for a value that no other kernel and no caller sees.
template <typename T>
struct Scratch {
  T* data;
  explicit Scratch(int64_t count) {
    data = static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + 64) / 64 * 64));
  }
  ~Scratch() { std::free(data); }
  Scratch(const Scratch&) = delete;
};

}  // namespace inductor

namespace c10 {

template <typename To, typename From>
inline To convert(From value) {
  if constexpr (std::is_same_v<To, uint8_t> && std::is_floating_point_v<From>)
    return static_cast<uint8_t>(static_cast<int64_t>(value));
  else if constexpr (std::is_arithmetic_v<To> && !std::is_arithmetic_v<From>)
    return static_cast<To>(static_cast<float>(value));
  else if constexpr (!std::is_arithmetic_v<To> && !std::is_same_v<To, From>)
    return To(static_cast<float>(value));
  else
    return static_cast<To>(value);
}

template <typename To, typename From>
inline To bit_cast(const From& value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof(To));
  return result;
}

template <typename T>
inline T div_floor_integer(T a, T b) {
  T quotient = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? quotient - 1 : quotient;
}

}  // namespace c10

static std::atomic<int>* inductor_cpu_integer_div_error_flag = nullptr;

inline void inductor_cpu_throw_if_integer_div_error(std::atomic<int>& error) {
  TORCH_CHECK(!error.load(), "division of an integer by zero");
}

template <typename T, typename U>
inline std::common_type_t<T, U> floor_divide_integral(T a, U b) {
  using C = std::common_type_t<T, U>;
  TORCH_CHECK(b != 0, "division of an integer by zero");
  return c10::div_floor_integer<C>(a, b);
}

template <typename T>
inline T remainder_integral(T a, T b) {
  TORCH_CHECK(b != 0, "division of an integer by zero");
  T rest = a % b;
  return rest != 0 && ((rest < 0) != (b < 0)) ? rest + b : rest;
}

template <typename T, typename U>
inline auto mod(T a, U b) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<U>)
    return a % b;
  else
    return std::fmod(a, b);
}

// The comparison first: chosen one in the other, the compiler makes branches of both, which are
// missed at every other number and keep loops from being vectorised.
template <typename T>
inline T max_propagate_nan(T a, T b) {
  T larger = a > b ? a : b;
  return a != a ? a : larger;
}

template <typename T>
inline T min_propagate_nan(T a, T b) {
  T smaller = a < b ? a : b;
  return a != a ? a : smaller;
}

// The place of the smallest or largest value, the first one of equal values.
template <typename T>
struct IndexValue {
  int64_t index{};
  T value;
};

template <typename T>
inline IndexValue<T>& argmin_combine(IndexValue<T>& a, T value, int64_t index) {
  bool is_first = value == a.value || (value != value && a.value != a.value);
  if (is_first ? index < a.index : (value != value || value < a.value)) a = {index, value};
  return a;
}

template <typename T>
inline IndexValue<T>& argmax_combine(IndexValue<T>& a, T value, int64_t index) {
  bool is_first = value == a.value || (value != value && a.value != a.value);
  if (is_first ? index < a.index : (value != value || value > a.value)) a = {index, value};
  return a;
}

// Sums of many values, in chunks, so that rounding errors do not add up. The sum of the chunk at
// hand lies by itself, so that it can stay in a register. Inductor asks for chunks of 4,096; with
// shorter ones a sum is nearer to the truth, and takes a few percent longer at most.
template <typename T, uint64_t Chunk>
struct CascadeSumHelper {
  static constexpr uint64_t CHUNK = Chunk < 256 ? Chunk : 256, MAX_DEPTH = 48;
  T head = T(0);
  uint64_t depth = 0, num_chunks = 0, index = 0;
  T rest[MAX_DEPTH];
  explicit CascadeSumHelper(uint64_t count) {
    for (uint64_t chunks = (count + CHUNK - 1) / CHUNK; chunks > 1; chunks = (chunks + 1) / 2)
      depth++;
    for (uint64_t i = 0; i < depth; i++) rest[i] = T(0);
  }
};

template <typename T, uint64_t Chunk>
inline T cascade_carry(CascadeSumHelper<T, Chunk>* c) {
  if (C10_UNLIKELY(c->depth > 0 && ++c->index == c->CHUNK)) {
    c->num_chunks += 1;
    c->index = 0;
    T carried = c->head;
    c->head = T(0);
    uint64_t j = 0;
    for (uint64_t mask = c->num_chunks; j + 1 < c->depth && (mask & 1) == 0; ++j, mask >>= 1) {
      carried = carried + c->rest[j];
      c->rest[j] = T(0);
    }
    c->rest[j] = c->rest[j] + carried;
  }
  return c->head;
}

template <typename T, uint64_t Chunk>
inline T cascade_sum_combine(const T& data, CascadeSumHelper<T, Chunk>* c) {
  c->head = c->head + data;
  return cascade_carry(c);
}

template <typename T, uint64_t Chunk>
inline T cascade_sum_final(CascadeSumHelper<T, Chunk>* c) {
  T result = c->head;
  for (uint64_t i = 0; i < c->depth; i++) result = result + c->rest[i];
  return result;
}

// Mean and sum of squared differences, one value after the other; all is 0 in `Welford<T>()`.
template <typename T>
struct Welford {
  T mean, m2, weight;
  uint64_t index;
};

template <typename T>
inline T no_difference(const T& value, const T& a, const T& b) {
  return std::isinf(a) && a == b ? T(0) : value;
}

template <typename T>
inline T zero_for_none(const T& value, const T& weight) {
  return value;  // of scalars, neither part is empty
}

template <typename T>
inline Welford<T> welford_combine(const Welford<T>& a, const Welford<T>& b) {
  if (a.index == 0) return b;
  if (b.index == 0) return a;
  T delta = no_difference(T(b.mean - a.mean), a.mean, b.mean);
  T weight = a.weight + b.weight;
  T share = zero_for_none(T(b.weight / weight), weight);
  return {a.mean + delta * share, a.m2 + b.m2 + delta * delta * a.weight * share, weight,
          a.index + b.index};
}

// The type of a single value.
template <typename T>
struct ScalarOf {
  using type = T;
};

// 1, 1/2, 1/3, ...: a product takes less time than a division.
template <typename T, uint64_t Count>
struct Reciprocals {
  T values[Count];
  Reciprocals() {
    for (uint64_t i = 0; i < Count; i++) values[i] = T(1.0 / double(i + 1));
  }
};
template <typename T, uint64_t Count>
inline const Reciprocals<T, Count> reciprocals;

template <typename T, uint64_t Chunk>
struct WelfordHelper {
  Welford<T> parts[48];
  uint64_t depth = 0, num_chunks = 0;
  explicit WelfordHelper(uint64_t count) {
    for (uint64_t chunks = (count + Chunk - 1) / Chunk; chunks > 1; chunks = (chunks + 1) / 2)
      depth++;
    for (uint64_t i = 0; i < depth; i++) parts[i] = Welford<T>();
  }
};

template <typename T>
inline Welford<T> welford_combine(Welford<T>& acc, const T& data) {
  T weight = acc.weight + T(1), delta = data - acc.mean, mean = acc.mean + delta / weight;
  return {mean, acc.m2 + delta * (data - mean), weight, acc.index + 1};
}

template <typename T, uint64_t Chunk>
inline Welford<T> welford_combine(Welford<T>& acc, const T& data, WelfordHelper<T, Chunk>* w) {
  if (w->depth > 0 && acc.index == Chunk) {
    w->parts[0] = welford_combine(w->parts[0], acc);
    w->num_chunks += 1;
    acc = Welford<T>();
    uint64_t mask = w->num_chunks;
    for (uint64_t j = 1; j < w->depth && (mask & 1) == 0; ++j, mask >>= 1) {
      w->parts[j] = welford_combine(w->parts[j], w->parts[j - 1]);
      w->parts[j - 1] = Welford<T>();
    }
  }
  if (C10_UNLIKELY(acc.index >= Chunk)) return welford_combine(acc, data);
  T share = T(reciprocals<typename ScalarOf<T>::type, Chunk>.values[acc.index]);
  T delta = data - acc.mean, mean = acc.mean + delta * share;
  return {mean, acc.m2 + delta * (data - mean), acc.weight + T(1), acc.index + 1};
}

template <typename T, uint64_t Chunk>
inline Welford<T> welford_combine(Welford<T>& acc, WelfordHelper<T, Chunk>* w) {
  for (uint64_t i = 0; i < w->depth; i++) acc = welford_combine(acc, w->parts[i]);
  return acc;
}
