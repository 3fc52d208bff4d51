"""The closeness of two tensors: the smallest tolerance level t at which every element agrees."""

from math import floor, log10

import numpy as np

from passnet.core.records.dtypes import Array, from_storage

LEVELS = range(-10, 5)
"""The tolerance levels t, from strict to loose."""
CORRECT_AT = -5
"""The level at which an output counts as correct (PassNet paper, Section 4): torch's defaults."""
EXPONENTS: dict[str, tuple[float, float]] = {
    "float16": (1.0, 3 / 5),
    "bfloat16": (1.0, 1.796 / 5),
    "float32": (1.0, 5.886 / 5),
    "float64": (7 / 5, 7 / 5),
}
"""For each dtype (k_a, k_r): atol = 10^(k_a t), rtol = 10^(k_r t). Source: GraphNet report, Eq. 1
and its table of constants; at t = -5 these are the defaults of torch.testing.assert_close."""

REAL_PART = {"complex64": "float32", "complex128": "float64"}

TIMED_SHARE = 2.0**-10
"""Share of a value by which timed calls on extreme and structured inputs may be off. Arguments are
rolled there, each by itself, so that sums can be larger than those that the slack was seen on."""
CHUNK_ELEMENTS = 1 << 16
"""Elements compared at a time; a chunk stays in the cache over all levels it needs."""


def tolerances(dtype: str, t: int) -> tuple[float, float]:
    """Return (atol, rtol) of a dtype at a level, rounded to three significant digits as published.

    Examples:
        >>> tolerances("float32", -5)
        (1e-05, 1.3e-06)
        >>> tolerances("bfloat16", -3)
        (0.001, 0.0836)
    """
    k_a, k_r = EXPONENTS[REAL_PART.get(dtype, dtype)]
    return _three_digits(10 ** (k_a * t)), _three_digits(10 ** (k_r * t))


def _three_digits(value: float) -> float:
    return round(value, 2 - floor(log10(value)))


def smallest_t(actual: Array, expected: Array, dtype: str) -> int | None:
    """Return the smallest level at which `|actual - expected| <= atol + rtol * |expected|`
    everywhere.

    NaN agrees with NaN and an infinity with the same infinity; neither agrees with anything else.
    Integers and bools must be equal. Both hold the storage of a tensor of this dtype (bfloat16 as
    16-bit integers), in one shape. The level is None when they agree at none.
    """
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    if dtype not in EXPONENTS and dtype not in REAL_PART:
        return LEVELS[0] if np.array_equal(actual, expected) else None
    levels = [tolerances(dtype, t) for t in LEVELS]
    index = 0
    for start in range(0, expected.size, CHUNK_ELEMENTS):
        part = slice(start, start + CHUNK_ELEMENTS)
        level = _chunk_level(actual[part], expected[part], dtype, levels, index)
        if level is None:
            return None
        index = level
    return LEVELS[index]


def worst_element(actual: Array, expected: Array, dtype: str) -> tuple[int, float]:
    """Return the flat index of the element with the largest error, and that error, in units of the
    tolerance at `CORRECT_AT`.

    It is infinite where a value is not finite, or must be equal and is not. Arguments are as those
    of `smallest_t`.
    """
    actual, expected = actual.reshape(-1), expected.reshape(-1)
    if dtype not in EXPONENTS and dtype not in REAL_PART:
        return int(np.argmax(actual != expected)), np.inf
    atol, rtol = tolerances(dtype, CORRECT_AT)
    place, largest = 0, -1.0
    for start in range(0, expected.size, CHUNK_ELEMENTS):
        part = slice(start, start + CHUNK_ELEMENTS)
        error, size, same = _errors(actual[part], expected[part], dtype)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isfinite(error), error / (atol + rtol * size), np.inf)
        share[same] = 0.0
        found = int(np.argmax(share))
        if share[found] > largest:
            place, largest = start + found, float(share[found])
    return place, largest


def forgiving(
    actual: Array, expected: Array, dtype: str, slack: Array | float, exact: Array | None = None
) -> Array:
    """Return actual values, with the expected ones wherever an error within `slack` is forgiven.

    The error is that against the expected or the exact value, whichever is smaller. Where the slack
    is infinite, or the expected value not finite, any error is forgiven. A single slack is that of
    a timed call, widened by `TIMED_SHARE` of the value.
    """
    kept, right = actual.reshape(-1).copy(), expected.reshape(-1)
    places = np.flatnonzero(kept != right)
    if places.size:
        wide = np.complex128 if dtype.startswith("complex") else np.float64
        with np.errstate(invalid="ignore", over="ignore"):
            values, wanted = (
                from_storage(stored[places], dtype).astype(wide) for stored in (kept, right)
            )
            if np.ndim(slack) == 0:
                room = slack + TIMED_SHARE * np.abs(wanted)
            else:
                room = np.reshape(slack, -1)[places]
            is_near = (np.abs(values - wanted) <= room) | np.isinf(room) | ~np.isfinite(wanted)
            if exact is not None:
                is_near |= np.abs(values - exact.reshape(-1)[places]) <= room
        kept[places[is_near]] = right[places[is_near]]
    return kept.reshape(actual.shape)


def _chunk_level(
    actual: Array, expected: Array, dtype: str, levels: list[tuple[float, float]], index: int
) -> int | None:
    error, size, same = _errors(actual, expected, dtype)
    odd = ~np.isfinite(error)
    if odd.any():
        if not same[odd].all():
            return None
        error, size = np.where(odd, 0.0, error), np.where(odd, 0.0, size)
    while index < len(levels):
        atol, rtol = levels[index]
        beyond = error > atol + rtol * size
        if not beyond.any():
            return index
        error, size = error[beyond], size[beyond]
        index += 1
    return None


def _errors(actual: Array, expected: Array, dtype: str) -> tuple[Array, Array, Array]:
    """Return the error of each element, the size of the expected value, and whether they agree."""
    wide = np.complex128 if dtype in REAL_PART else np.float64
    with np.errstate(invalid="ignore", over="ignore"):  # signalling NaN, too
        a = from_storage(actual, dtype).astype(wide)
        e = from_storage(expected, dtype).astype(wide)
        return np.abs(a - e), np.abs(e), (a == e) | (np.isnan(a) & np.isnan(e))
