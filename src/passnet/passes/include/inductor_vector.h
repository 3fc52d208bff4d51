// Vectors and masks under the names of at::vec, for the C++ that Inductor generates for a CPU.
//
// A vector is one or more registers. Bfloat16 and float16 are converted, never computed with. A
// function that has no form in registers is computed lane by lane.
#pragma once
#include "inductor_pieces.h"

namespace at::vec {

template <typename T, int N>
struct VectorizedN;
template <typename T>
using Vectorized = VectorizedN<T, 1>;

// Lanes that are all ones or all zeros.
template <typename T, int N>
struct VecMask {
  using lane = int_of<T>;
  static constexpr int width = PASSNET_VECTOR_BYTES / sizeof(T);
  static constexpr int size() { return N * width; }
  Register<lane> v[N];

  template <typename U>
  static INLINE VecMask from(const U* p, int64_t count = size()) {
    __at_align__ lane bits[size()] = {};
    for (int i = 0; i < count && i < size(); i++) bits[i] = -lane(p[i] != U(0));
    VecMask r;
    std::memcpy(r.v, bits, sizeof(bits));
    return r;
  }
  template <typename U, int M>
  static INLINE VecMask from(const VectorizedN<U, M>& x) {
    return (x != VectorizedN<U, M>(U(0))).template cast<T, N>();
  }
  template <typename U, std::enable_if_t<std::is_arithmetic_v<U>, int> = 0>
  static INLINE VecMask from(U value) {
    VecMask r;
    for (int i = 0; i < N; i++) r.v[i] = Register<lane>{} - lane(value != U(0));
    return r;
  }
  static INLINE VecMask first(int64_t count) {
    VecMask r;
    for (int i = 0; i < N; i++)
      for (int j = 0; j < width; j++) r.v[i][j] = -lane(i * width + j < count);
    return r;
  }
  static INLINE VecMask blendv(const VecMask& a, const VecMask& b, const VecMask& mask) {
    return (a & ~mask) | (b & mask);
  }
  static INLINE VecMask set(const VecMask& a, const VecMask& b, int64_t count = size()) {
    return blendv(a, b, first(count));
  }
  template <typename U, int M>
  INLINE VecMask<U, M> cast() const {
    VecMask<U, M> r;
    cast_all<int_of<U>, M, lane, N>(v, r.v);
    return r;
  }
  template <typename U, int M>
  INLINE VectorizedN<U, M> to() const {
    VectorizedN<U, M> zero(U(0)), one(U(1));
    return VectorizedN<U, M>::blendv(zero, one, cast<U, M>());
  }
  template <typename U, int M>
  INLINE VectorizedN<U, M> loadu(const U* p) const {
    if (all_masked()) return VectorizedN<U, M>::loadu(p, size());
    VectorizedN<U, M> r;
#ifdef PASSNET_MASKED
    VecMask<U, M> mask = cast<U, M>();
    using L = typename LaneOf<U>::type;
    for (int i = 0; i < M; i++)
      r.v[i] = load_lanes<L>(p + i * r.width, bits_of<int_of<U>>(mask.v[i]));
#else
    __at_align__ lane bits[size()];
    __at_align__ U buffer[size()];
    std::memcpy(bits, v, sizeof(bits));
    for (int i = 0; i < size(); i++) buffer[i] = bits[i] ? p[i] : U(0);
    r = VectorizedN<U, M>::loadu(buffer, size());
#endif
    return r;
  }
  template <typename U>
  INLINE void store(U* p, int64_t count = size()) const {
    __at_align__ lane bits[size()];
    std::memcpy(bits, v, sizeof(bits));
    for (int i = 0; i < count && i < size(); i++) p[i] = U(bits[i] != 0);
  }
  INLINE bool is_masked(int64_t i) const { return v[i / width][i % width] != 0; }
  INLINE bool all_masked() const {
    Register<lane> all = v[0];
    for (int i = 1; i < N; i++) all &= v[i];
    return no_bits(~all);
  }
  INLINE bool all_zero() const {
    Register<lane> any = v[0];
    for (int i = 1; i < N; i++) any |= v[i];
    return no_bits(any);
  }
  INLINE VecMask operator~() const {
    VecMask r;
    for (int i = 0; i < N; i++) r.v[i] = ~v[i];
    return r;
  }
};

#define MASK_OPERATOR(OP)                                                         \
  template <typename T, int N, typename U, int M>                                 \
  INLINE VecMask<T, N> operator OP(const VecMask<T, N>& a, const VecMask<U, M>& other) { \
    VecMask<T, N> b = other.template cast<T, N>(), r;                             \
    for (int i = 0; i < N; i++) r.v[i] = a.v[i] OP b.v[i];                        \
    return r;                                                                     \
  }
MASK_OPERATOR(&)
MASK_OPERATOR(|)
MASK_OPERATOR(^)
#undef MASK_OPERATOR
template <typename T, int N, typename U, int M>
INLINE VecMask<T, N> operator!=(const VecMask<T, N>& a, const VecMask<U, M>& b) {
  return a ^ b;
}
template <typename T, int N, typename U, int M>
INLINE VecMask<T, N> operator==(const VecMask<T, N>& a, const VecMask<U, M>& b) {
  return ~(a ^ b);
}

// Values of bfloat16 that are still floats: they are packed where they are stored.
template <int N, int M>
struct Rounded {
  VectorizedN<float, M> wide;
  INLINE operator VectorizedN<BFloat16, N>() const {
    VectorizedN<BFloat16, N> r;
    cast_all<BFloat16, N, float, M>(wide.v, r.v);
    return r;
  }
  INLINE void store(void* p, int64_t count = VectorizedN<BFloat16, N>::size()) const {
    VectorizedN<BFloat16, N>(*this).store(p, count);
  }
  INLINE Rounded neg() const { return {wide.neg()}; }
  INLINE Rounded abs() const { return {wide.abs()}; }
};

template <typename D, int DN, typename S, int SN>
INLINE auto convert(const VectorizedN<S, SN>& a) {
  if constexpr (std::is_same_v<S, float> && std::is_same_v<D, BFloat16>) {
    Rounded<DN, SN> r;
    for (int i = 0; i < SN; i++) r.wide.v[i] = nearest(a.v[i]);
    return r;
  } else {
    VectorizedN<D, DN> r;
    cast_all<D, DN, S, SN>(a.v, r.v);
    return r;
  }
}
template <typename D, int DN, typename S, int SN, int M>
INLINE auto convert(const Rounded<SN, M>& a) {
  if constexpr (std::is_same_v<D, float> && DN == M)
    return a.wide;
  else
    return convert<D, DN, S, SN>(VectorizedN<S, SN>(a));
}
template <typename D, typename S>
INLINE auto convert(const VectorizedN<S, 1>& a) {
  return convert<D, 1, S, 1>(a);
}
template <typename D, int M>
INLINE auto convert(const Rounded<1, M>& a) {
  return convert<D, 1, BFloat16, 1, M>(a);
}

template <typename T, int N>
struct VectorizedN {
  using lane = typename LaneOf<T>::type;
  using Mask = VecMask<T, N>;
  static constexpr int width = PASSNET_VECTOR_BYTES / sizeof(T);
  static constexpr int size() { return N * width; }
  // Computed with as float where the type is a low one.
  static constexpr int M = N * sizeof(float) / sizeof(T);
  using Wide = VectorizedN<float, M>;
  Register<lane> v[N];

  VectorizedN() = default;
  explicit INLINE VectorizedN(T value) {
    lane bits = as<lane>(value);
    for (int i = 0; i < N; i++) v[i] = bits - Register<lane>{};
  }
  static INLINE VectorizedN loadu(const void* p, int64_t count = size()) {
    VectorizedN r;
    const T* data = static_cast<const T*>(p);
    for (int i = 0; i < N; i++) r.v[i] = load_register<lane>(data + i * width, count - i * width);
    return r;
  }
  INLINE void store(void* p, int64_t count = size()) const {
    T* data = static_cast<T*>(p);
    for (int i = 0; i < N; i++) store_register<lane>(v[i], data + i * width, count - i * width);
  }
  static INLINE VectorizedN blendv(const VectorizedN& a, const VectorizedN& b, const Mask& mask) {
    VectorizedN r;
    for (int i = 0; i < N; i++) r.v[i] = mask.v[i] ? b.v[i] : a.v[i];
    return r;
  }
  static INLINE VectorizedN set(const VectorizedN& a, const VectorizedN& b,
                                int64_t count = size()) {
    return blendv(a, b, Mask::first(count));
  }
  template <typename S>
  static INLINE VectorizedN arange(T base, S step) {
    VectorizedN r;
    constexpr auto lanes = std::make_index_sequence<width>();
    if constexpr (is_low<T>)
      for (int i = 0; i < size(); i++) r.v[i / width][i % width] = as<lane>(T(base + i * step));
    else
      for (int i = 0; i < N; i++)
        r.v[i] = (numbered<T>(lanes) + T(i * width)) * T(step) + base;
    return r;
  }
  template <typename F>
  INLINE VectorizedN map(const F& f) const {
    if constexpr (is_low<T>) {
      return convert<T, N, float, M>(convert<float, M, T, N>(*this).map(f));
    } else {
      VectorizedN r;
      for (int i = 0; i < N; i++) {
        __at_align__ T from[width], to[width];
        std::memcpy(from, &v[i], sizeof(from));
        for (int j = 0; j < width; j++) to[j] = f(from[j]);
        std::memcpy(&r.v[i], to, sizeof(to));
      }
      return r;
    }
  }
  template <typename F>
  INLINE VectorizedN map(const VectorizedN& other, const F& f) const {
    VectorizedN r;
    for (int i = 0; i < N; i++) {
      __at_align__ T a[width], b[width], to[width];
      std::memcpy(a, &v[i], sizeof(a));
      std::memcpy(b, &other.v[i], sizeof(b));
      for (int j = 0; j < width; j++) to[j] = f(a[j], b[j]);
      std::memcpy(&r.v[i], to, sizeof(to));
    }
    return r;
  }
  INLINE VectorizedN neg() const {
    VectorizedN r;
    if constexpr (is_low<T>)
      for (int i = 0; i < N; i++) r.v[i] = v[i] ^ uint16_t(0x8000);
    else
      for (int i = 0; i < N; i++) r.v[i] = -v[i];
    return r;
  }
  INLINE VectorizedN abs() const {
    VectorizedN r;
    if constexpr (is_low<T>)
      for (int i = 0; i < N; i++) r.v[i] = v[i] & uint16_t(0x7FFF);
    else
      return map([](T x) { return std::is_unsigned_v<T> ? x : T(std::abs(x)); });
    return r;
  }
  INLINE VectorizedN reciprocal() const { return VectorizedN(T(1)) / *this; }
  INLINE VectorizedN rsqrt() const { return sqrt().reciprocal(); }
  INLINE Mask isnan() const { return *this != *this; }
#define FUNCTION(NAME)                                                                  \
  INLINE VectorizedN NAME() const {                                                     \
    if constexpr (is_low<T>) {                                                          \
      return convert<T, N, float, M>(convert<float, M, T, N>(*this).NAME());            \
    } else if constexpr (std::is_same_v<T, float>) {                                    \
      VectorizedN r;                                                                    \
      for (int i = 0; i < N; i++) r.v[i] = pieces::NAME(v[i]);                          \
      return r;                                                                         \
    } else {                                                                            \
      return map([](auto x) { return inductor::NAME(x); });                             \
    }                                                                                   \
  }
  FUNCTION(exp)
  FUNCTION(tanh)
  FUNCTION(erf)
  FUNCTION(sin)
  FUNCTION(cos)
#undef FUNCTION
#define FUNCTION(NAME, CALL) \
  INLINE VectorizedN NAME() const { return map([](auto x) { return CALL(x); }); }
  FUNCTION(sqrt, std::sqrt)
  FUNCTION(floor, std::floor)
  FUNCTION(ceil, std::ceil)
  FUNCTION(trunc, std::trunc)
  FUNCTION(round, std::nearbyint)
  FUNCTION(tan, std::tan)
  FUNCTION(asin, inductor::asin)
  FUNCTION(acos, inductor::acos)
  FUNCTION(atan, inductor::atan)
  FUNCTION(sinh, std::sinh)
  FUNCTION(cosh, std::cosh)
  FUNCTION(acosh, std::acosh)
  FUNCTION(exp2, std::exp2)
  FUNCTION(expm1, std::expm1)
  FUNCTION(log, inductor::log)
  FUNCTION(log2, std::log2)
  FUNCTION(log10, std::log10)
  FUNCTION(log1p, inductor::log1p)
  FUNCTION(erfc, std::erfc)
  FUNCTION(lgamma, std::lgamma)
#undef FUNCTION
#define FUNCTION(NAME)                                                    \
  INLINE VectorizedN NAME(const VectorizedN& other) const {               \
    return map(other, [](auto x, auto y) { return std::NAME(x, y); });    \
  }
  FUNCTION(fmod)
  FUNCTION(atan2)
  FUNCTION(hypot)
  FUNCTION(copysign)
  FUNCTION(nextafter)
#undef FUNCTION
  INLINE VectorizedN pow(const VectorizedN& other) const {
    if constexpr (std::is_same_v<T, float>) {
      VectorizedN r;
      for (int i = 0; i < N; i++) r.v[i] = pieces::pow(v[i], other.v[i]);
      return r;
    } else {
      return map(other, [](auto x, auto y) { return std::pow(x, y); });
    }
  }
};

#define VECTOR_OPERATOR(OP)                                                                      \
  template <typename T, int N>                                                                   \
  INLINE VectorizedN<T, N> operator OP(const VectorizedN<T, N>& a, const VectorizedN<T, N>& b) { \
    if constexpr (is_low<T>) {                                                                   \
      constexpr int M = VectorizedN<T, N>::M;                                                    \
      return convert<T, N, float, M>(convert<float, M, T, N>(a) OP convert<float, M, T, N>(b));  \
    } else {                                                                                     \
      VectorizedN<T, N> r;                                                                       \
      for (int i = 0; i < N; i++) r.v[i] = a.v[i] OP b.v[i];                                     \
      return r;                                                                                  \
    }                                                                                            \
  }
VECTOR_OPERATOR(+)
VECTOR_OPERATOR(-)
VECTOR_OPERATOR(*)
VECTOR_OPERATOR(/)
#undef VECTOR_OPERATOR

#define VECTOR_OPERATOR(OP)                                                                      \
  template <typename T, int N>                                                                   \
  INLINE VectorizedN<T, N> operator OP(const VectorizedN<T, N>& a, const VectorizedN<T, N>& b) { \
    VectorizedN<T, N> r;                                                                         \
    for (int i = 0; i < N; i++) r.v[i] = a.v[i] OP b.v[i];                                       \
    return r;                                                                                    \
  }
VECTOR_OPERATOR(&)
VECTOR_OPERATOR(|)
VECTOR_OPERATOR(^)
VECTOR_OPERATOR(<<)
VECTOR_OPERATOR(>>)
#undef VECTOR_OPERATOR
template <typename T, int N>
INLINE VectorizedN<T, N> operator~(const VectorizedN<T, N>& a) {
  VectorizedN<T, N> r;
  for (int i = 0; i < N; i++) r.v[i] = ~a.v[i];
  return r;
}

#define VECTOR_COMPARISON(OP)                                                                \
  template <typename T, int N>                                                               \
  INLINE VecMask<T, N> operator OP(const VectorizedN<T, N>& a, const VectorizedN<T, N>& b) { \
    if constexpr (is_low<T>) {                                                               \
      constexpr int M = VectorizedN<T, N>::M;                                                \
      auto wide = convert<float, M, T, N>(a) OP convert<float, M, T, N>(b);                  \
      return wide.template cast<T, N>();                                                     \
    } else {                                                                                 \
      VecMask<T, N> r;                                                                       \
      for (int i = 0; i < N; i++) r.v[i] = a.v[i] OP b.v[i];                                 \
      return r;                                                                              \
    }                                                                                        \
  }
VECTOR_COMPARISON(==)
VECTOR_COMPARISON(!=)
VECTOR_COMPARISON(<)
VECTOR_COMPARISON(<=)
VECTOR_COMPARISON(>)
VECTOR_COMPARISON(>=)
#undef VECTOR_COMPARISON

// NaN where either is; of the clamps, where the first one is.
// An accumulator, if it is the first, is soon had again.
#define EXTREME(NAME, CHOSEN)                                                                  \
  template <typename T, int N>                                                                 \
  INLINE VectorizedN<T, N> NAME(const VectorizedN<T, N>& a, const VectorizedN<T, N>& b) {      \
    if constexpr (is_low<T>) {                                                                 \
      constexpr int M = VectorizedN<T, N>::M;                                                  \
      return convert<T, N, float, M>(NAME(convert<float, M, T, N>(a), convert<float, M, T, N>(b))); \
    } else {                                                                                   \
      VectorizedN<T, N> r;                                                                     \
      for (int i = 0; i < N; i++) r.v[i] = b.v[i] != b.v[i] ? b.v[i] : CHOSEN(b.v[i], a.v[i]); \
      return r;                                                                                \
    }                                                                                          \
  }
EXTREME(maximum, larger)
EXTREME(minimum, smaller)
#undef EXTREME
template <typename T, int N>
INLINE VectorizedN<T, N> clamp_min(const VectorizedN<T, N>& a, const VectorizedN<T, N>& least) {
  return VectorizedN<T, N>::blendv(a, least, a < least);
}
template <typename T, int N>
INLINE VectorizedN<T, N> clamp_max(const VectorizedN<T, N>& a, const VectorizedN<T, N>& most) {
  return VectorizedN<T, N>::blendv(a, most, a > most);
}

template <typename T, int N>
INLINE VectorizedN<T, N> floor_divide_integral(const VectorizedN<T, N>& a,
                                               const VectorizedN<T, N>& b) {
  return a.map(b, [](T x, T y) { return T(::floor_divide_integral(x, y)); });
}
template <typename T, int N>
INLINE VectorizedN<T, N> remainder_integral(const VectorizedN<T, N>& a,
                                            const VectorizedN<T, N>& b) {
  return a.map(b, [](T x, T y) { return T(::remainder_integral(x, y)); });
}

template <typename T, int N, typename F>
INLINE T vec_reduce_all(const F& f, const VectorizedN<T, N>& a) {
  using V = Vectorized<T>;
  V result, other;
  result.v[0] = a.v[0];
  for (int i = 1; i < N; i++) {
    other.v[0] = a.v[i];
    result = f(result, other);
  }
  auto on_registers = [&f](const auto& x, const auto& y) {
    V one, two;
    one.v[0] = x;
    two.v[0] = y;
    return f(one, two).v[0];
  };
  return combined(result.v[0], on_registers)[0];
}

// What `welford_combine` asks of a type, for vectors.
template <typename T, int N>
INLINE VectorizedN<T, N> no_difference(const VectorizedN<T, N>& value, const VectorizedN<T, N>& a,
                                       const VectorizedN<T, N>& b) {
  return VectorizedN<T, N>::blendv(value, VectorizedN<T, N>(T(0)), a == b);
}
template <typename T, int N>
INLINE VectorizedN<T, N> zero_for_none(const VectorizedN<T, N>& value,
                                       const VectorizedN<T, N>& weight) {
  VectorizedN<T, N> zero(T(0));
  return VectorizedN<T, N>::blendv(value, zero, weight == zero);
}

}  // namespace at::vec

// Of the last vector of a row only the first lanes count.
#define MASKED_REDUCE(NAME, VALUE)                                     \
  template <typename T>                                                \
  INLINE T NAME(const T& a, const T& b, int64_t tail_size) {           \
    return T::set(a, VALUE, tail_size);                                \
  }
MASKED_REDUCE(max_masked_reduce, at::vec::maximum(a, b))
MASKED_REDUCE(min_masked_reduce, at::vec::minimum(a, b))
MASKED_REDUCE(sum_masked_reduce, a + b)
MASKED_REDUCE(prod_masked_reduce, a * b)
MASKED_REDUCE(xor_sum_masked_reduce, a ^ b)
MASKED_REDUCE(any_masked_reduce, a | b)
#undef MASKED_REDUCE

template <typename T, uint64_t Chunk>
INLINE T cascade_sum_combine(const T& data, int64_t tail_size, CascadeSumHelper<T, Chunk>* c) {
  c->head = T::set(c->head, c->head + data, tail_size);
  return cascade_carry(c);
}

template <typename T, int N>
struct ScalarOf<at::vec::VectorizedN<T, N>> {
  using type = T;
};

template <typename T, int N>
INLINE Welford<at::vec::VectorizedN<T, N>> first_lanes(
    const Welford<at::vec::VectorizedN<T, N>>& acc, const Welford<at::vec::VectorizedN<T, N>>& next,
    int64_t count) {
  using V = at::vec::VectorizedN<T, N>;
  return {V::set(acc.mean, next.mean, count), V::set(acc.m2, next.m2, count),
          V::set(acc.weight, next.weight, count), next.index};
}

template <typename T, int N>
INLINE auto welford_combine(Welford<at::vec::VectorizedN<T, N>>& acc,
                            const at::vec::VectorizedN<T, N>& data, int64_t tail_size) {
  return first_lanes(acc, welford_combine(acc, data), tail_size);
}

template <typename T, int N, uint64_t Chunk>
INLINE auto welford_combine(Welford<at::vec::VectorizedN<T, N>>& acc,
                            const at::vec::VectorizedN<T, N>& data, int64_t tail_size,
                            WelfordHelper<at::vec::VectorizedN<T, N>, Chunk>* w) {
  auto next = welford_combine(acc, data, w);
  return first_lanes(acc, next, tail_size);
}

template <typename T, int N>
INLINE Welford<T> welford_vec_reduce_all(const Welford<at::vec::VectorizedN<T, N>>& acc) {
  using V = at::vec::VectorizedN<T, N>;
  Welford<T> result = Welford<T>();
  if (acc.index == 0) return result;
  T mean[V::size()], m2[V::size()], weight[V::size()];
  acc.mean.store(mean);
  acc.m2.store(m2);
  acc.weight.store(weight);
  for (int i = 0; i < V::size(); i++)
    if (weight[i] > 0)
      result = welford_combine(result, Welford<T>{mean[i], m2[i], weight[i], uint64_t(weight[i])});
  return result;
}

template <typename T, int M, int N, bool Add>
INLINE void transpose_mxn(const T* from, int64_t from_row, T* to, int64_t to_row) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      if constexpr (Add)
        to[j * to_row + i] += from[i * from_row + j];
      else
        to[j * to_row + i] = from[i * from_row + j];
    }
}
#undef INLINE
