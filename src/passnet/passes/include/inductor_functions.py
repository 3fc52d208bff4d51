"""What the Triton that Inductor generates names beside `triton.language`, without torch.

A pass folder gets a copy of the functions that its kernels use. They are for float32 where nothing
else is said, and made of what Triton's interpreter knows too, so that a machine without a GPU can
tell whether a kernel is right. Accuracy is given against double precision where each operation
rounds as in IEEE 754; `exp2` of a GPU adds 2 ulp.
"""

import triton
import triton.language as tl


@triton.jit
def maximum(a, b):
    return tl.where((a > b) | (a != a), a, b)  # NaN where either is


@triton.jit
def minimum(a, b):
    return tl.where((a < b) | (a != a), a, b)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def either(a, b):
    return a | b


@triton.jit
def max2(value, axis):
    return tl.reduce(value, axis, maximum)


@triton.jit
def min2(value, axis):
    return tl.reduce(value, axis, minimum)


@triton.jit
def prod(value, axis):
    return tl.reduce(value, axis, product)


@triton.jit
def any(value, axis):  # noqa: A001, Inductor's name
    return tl.reduce(value, axis, either)


@triton.jit
def maximum_with_index(a, a_index, b, b_index):
    # The first of equals; NaN is greater than numbers.
    same = (a == b) | ((a != a) & (b != b))
    is_a = (a > b) | ((a != a) & (b == b)) | (same & (a_index < b_index))
    return tl.where(is_a, a, b), tl.where(is_a, a_index, b_index)


@triton.jit
def minimum_with_index(a, a_index, b, b_index):
    same = (a == b) | ((a != a) & (b != b))
    is_a = (a < b) | ((a != a) & (b == b)) | (same & (a_index < b_index))
    return tl.where(is_a, a, b), tl.where(is_a, a_index, b_index)


@triton.jit
def max_with_index(value, index, axis):
    return tl.reduce((value, index), axis, maximum_with_index)


@triton.jit
def min_with_index(value, index, axis):
    return tl.reduce((value, index), axis, minimum_with_index)


@triton.jit
def select_one(value, mask, dim: tl.constexpr, keep_dims: tl.constexpr):
    return tl.sum(tl.where(mask, value, 0), dim, keep_dims).to(value.dtype)


@triton.jit
def promote_to_tensor(value):
    return value + tl.full([1], 0, tl.int1)


@triton.jit
def device_assert_then(condition, text, value):
    tl.device_assert(condition, text)
    return value


# Triton divides integers as C does, towards 0; these go down.
@triton.jit
def div_floor_integer(a, b):
    quotient = a // b
    return tl.where((quotient * b != a) & ((a < 0) != (b < 0)), quotient - 1, quotient)


@triton.jit
def remainder_integer(a, b):
    remainder = a % b
    return tl.where((remainder != 0) & ((remainder < 0) != (b < 0)), remainder + b, remainder)


# Mean, sum of squared distances from it, and number of values: Welford's way to a variance.
@triton.jit
def welford_reduce(value, mean, m2, weight, is_first):
    count = weight + 1
    away = value - mean
    moved = mean + away / count
    return moved, m2 + away * (value - moved), count


@triton.jit
def welford_combine(mean, m2, weight, other_mean, other_m2, other_weight):
    count = weight + other_weight
    share = tl.where(count == 0, 0.0, other_weight / count)
    away = tl.where(mean == other_mean, 0.0, other_mean - mean)  # infinite means may be equal
    return mean + away * share, m2 + other_m2 + away * away * weight * share, count


@triton.jit
def welford(mean, m2, weight, axis):
    return tl.reduce((mean, m2, weight), axis, welford_combine)


# The maximum so far, and the sum of exp of what lies below it.
@triton.jit
def grown(distance, fast: tl.constexpr):
    if fast:
        return tl.exp(distance)
    return exp(distance)


@triton.jit
def online_softmax_combine(top, total, value, fast: tl.constexpr):
    return online_softmax_combine_with_sum(top, total, value, 1.0, fast)


@triton.jit
def online_softmax_combine_with_sum(top, total, value, value_total, fast: tl.constexpr):
    both = maximum(top, value)
    is_none = both == float("-inf")
    scale = tl.where(is_none, 1.0, grown(top - both, fast))
    value_scale = tl.where(is_none, 1.0, grown(value - both, fast))
    return both, total * scale + value_total * value_scale


@triton.jit
def online_softmax_reduce(top, total, axis, fast: tl.constexpr):
    highest = max2(top, axis)
    under = tl.expand_dims(highest, axis)
    below = tl.where(under == float("-inf"), 0.0, top - under)
    return highest, tl.sum(total * grown(below, fast), axis)


# Within 1.5 ulp: what remains of a power of 2 is exp2 of at most a half. The power of 2 itself is
# multiplied by in two steps, as it may be too large or too small for one.
@triton.jit
def exp(x):
    clamped = tl.where(x > 89.0, 89.0, tl.where(x < -104.0, -104.0, x))
    n = tl.floor(clamped * 1.44269504 + 0.5)
    reduced = clamped - n * 0.693359375
    reduced = reduced + n * 2.12194440e-4
    half = tl.floor(n * 0.5)
    return tl.exp2(reduced * 1.44269504) * tl.exp2(half) * tl.exp2(n - half)


@triton.jit
def expm1(x):
    t = tanh(0.5 * x)
    near = 2.0 * t / (1.0 - t)
    return tl.where(tl.abs(x) < 1.0, near, exp(x) - 1.0)


# Of a half, squared: the exp of all of it may be too large.
@triton.jit
def sinh(x):
    a = tl.abs(x)
    e = expm1(tl.where(a < 1.0, a, 1.0))
    small = 0.5 * (e + e / (e + 1.0))
    root = exp(0.5 * a)
    size = tl.where(a < 1.0, small, 0.5 * root * root - 0.5 / root / root)
    return tl.where(x < 0.0, -size, size)


@triton.jit
def cosh(x):
    root = exp(0.5 * tl.abs(x))
    return 0.5 * root * root + 0.5 / root / root


# Within 1.5 ulp. Below 1 it is a polynomial times x, that of inductor_kernel.h.
@triton.jit
def tanh(x):
    a = tl.abs(x)
    s = a * a
    p = s * 1.203918728e-04 - 8.367857663e-04
    p = p * s + 3.071458777e-03
    p = p * s - 8.589019068e-03
    p = p * s + 2.178184688e-02
    p = p * s - 5.395236239e-02
    p = p * s + 1.333319098e-01
    p = p * s - 3.333332837e-01
    small = a + a * s * p
    size = tl.where(a < 1.0, small, 1.0 - 2.0 / (exp(2.0 * a) + 1.0))
    return tl.where(x < 0.0, -size, size)


# Within 1.5 ulp: of the mantissa a polynomial, that of inductor_kernel.h, and the exponent times
# log 2, which is in two parts.
@triton.jit
def log(x):
    is_tiny = x < 1.17549435e-38  # denormal, or no number greater than 0
    bits = tl.where(is_tiny, x * 33554432.0, x).to(tl.int32, bitcast=True)
    e = (bits - 0x3F3504F3) >> 23
    f = (bits - (e << 23)).to(tl.float32, bitcast=True) - 1.0
    n = tl.where(is_tiny, e.to(tl.float32) - 25.0, e.to(tl.float32))
    p = f * 6.797289103e-02 - 1.170896143e-01
    p = p * f + 1.188262627e-01
    p = p * f - 1.239910796e-01
    p = p * f + 1.421942711e-01
    p = p * f - 1.666840166e-01
    p = p * f + 2.000214458e-01
    p = p * f - 2.500000298e-01
    p = p * f + 3.333331347e-01
    value = n * 0.693359375 + (f + (f * f * (f * p - 0.5) + n * -2.12194440e-4))
    value = tl.where(x == float("inf"), x, tl.where(x > 0.0, value, float("-inf")))
    return tl.where((x < 0.0) | (x != x), float("nan"), value)


@triton.jit
def log2(x):
    return log(x) * 1.44269504


@triton.jit
def log10(x):
    return log(x) * 0.434294482


# The logarithm of the rounded sum, and what the rounding took away.
@triton.jit
def log1p(x):
    total = 1.0 + x
    lost = x - (total - 1.0)
    value = log(total) + tl.where(total == 0.0, 0.0, lost / total)
    return tl.where(total == float("inf"), x, value)


@triton.jit
def trunc(x):
    return tl.where(x < 0.0, tl.ceil(x), tl.floor(x))


# To the nearest whole number, to the even one of two: above 2^23 there are no others.
@triton.jit
def nearbyint(x):
    a = tl.abs(x)
    near = tl.where(a < 8388608.0, (a + 8388608.0) - 8388608.0, a)
    return tl.where(x < 0.0, -near, near)


@triton.jit
def llrint(x):
    return nearbyint(x).to(tl.int64)


@triton.jit
def isnan(x):
    return x != x


@triton.jit
def isinf(x):
    return tl.abs(x) == float("inf")


@triton.jit
def signbit(x):
    return x.to(tl.int32, bitcast=True) < 0


@triton.jit
def fmod(a, b):
    return a % b


@triton.jit
def tan(x):
    return tl.sin(x) / tl.cos(x)


# In float64, which rounds away what the logarithm lacks: within 1 ulp.
@triton.jit
def pow(base, exponent):  # noqa: A001, Inductor's name
    power = exponent.to(tl.float64)
    size = tl.abs(base).to(tl.float64)
    value = tl.exp2(power * tl.log2(size)).to(tl.float32)
    half = 0.5 * power
    is_whole = tl.floor(power) == power
    is_odd = is_whole & (tl.floor(half) != half)
    value = tl.where((base < 0.0) & is_odd, -value, value)
    is_none = (base < 0.0) & ~is_whole & (size != float("inf"))
    value = tl.where(is_none, float("nan"), value)
    return tl.where((power == 0.0) | (base == 1.0), 1.0, value)
