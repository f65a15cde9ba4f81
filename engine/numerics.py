"""The contract's hash, exp, log and exact sums in NumPy (contract §2, §4, §5). May import NumPy only.

Every function gives the same bits on every machine, because each is a fixed order of basic IEEE operations: nothing
here calls the C library's exp or log, whose last bit differs from one host to the next, and no float sum depends on
the order of its terms.
"""

from __future__ import annotations

from math import factorial, frexp

import numpy as np

FLOAT32_MAX = float(np.finfo(np.float32).max)

_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_ROUNDING = 6755399441055744.0  # 1.5 * 2^52: a sum with it keeps no fraction bits
_EXP_TERMS = [1.0 / factorial(j) for j in range(14)]
_LOG_TERMS = (
    6.666666666666735130e-01,
    3.999999999940941908e-01,
    2.857142874366239149e-01,
    2.222219843214978396e-01,
    1.818357216161805012e-01,
    1.531383769920937332e-01,
    1.479819860511658591e-01,
)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def exp(x: np.ndarray) -> np.ndarray:
    """Exponential function (contract §4), within 1 ulp on [-708, 709] and clamped to that range outside it.

    Parameters
    ----------
    x : array_like of float64
        Must not be NaN.

    Returns
    -------
    ndarray of float64, the shape of `x`

    Notes
    -----
    Argument reduction as in fdlibm (Sun Microsystems, 1993), then the Taylor polynomial of degree 13.
    """
    x = np.minimum(np.maximum(np.asarray(x, np.float64), -708.0), 709.0)
    k = _rint(x * 1.4426950408889634)
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = np.full_like(r, _EXP_TERMS[13])
    for term in reversed(_EXP_TERMS[:13]):
        p = p * r + term
    power_of_two = ((k.astype(np.int64) + 1023) << 52).view(np.float64)
    return p * power_of_two


def log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm (contract §4); anything below the smallest normal double counts as that.

    Parameters
    ----------
    x : array_like of float64
        Must be finite.

    Returns
    -------
    ndarray of float64, the shape of `x`

    Notes
    -----
    The algorithm of fdlibm's ``e_log.c`` (Sun Microsystems, 1993), without its special cases.
    """
    l1, l2, l3, l4, l5, l6, l7 = _LOG_TERMS
    bits = np.maximum(np.asarray(x, np.float64), 2.2250738585072014e-308).view(np.int64)
    u = (bits >> 32) + (0x3FF00000 - 0x3FE6A09E)
    k = ((u >> 20) - 0x3FF).astype(np.float64)
    high = (u & 0x000FFFFF) + 0x3FE6A09E
    m = ((high << 32) | (bits & 0xFFFFFFFF)).view(np.float64)
    f = m - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    t1 = w * (l2 + w * (l4 + w * l6))
    t2 = z * (l1 + w * (l3 + w * (l5 + w * l7)))
    remainder = t2 + t1
    q = (0.5 * f) * f
    return (((s * (q + remainder) + k * _LN2_LOW) - q) + f) + k * _LN2_HIGH


def sigmoid(x: np.ndarray) -> np.ndarray:
    """``1 / (1 + exp(-x))`` in float64 (contract §4)."""
    return 1.0 / (1.0 + exp(-np.asarray(x, np.float64)))


def saturate(values: np.ndarray) -> np.ndarray:
    """Cast to float32; a magnitude above the largest float32 becomes it, so that nothing turns infinite."""
    return np.clip(np.asarray(values, np.float64), -FLOAT32_MAX, FLOAT32_MAX).astype(np.float32)


def floor_log2(value: float) -> int:
    """Exponent of a positive finite double, from its bits: the largest e with ``2**e <= value``.

    Raises
    ------
    ValueError
        If the value is not positive and finite.
    """
    value = float(value)
    if not 0.0 < value < np.inf:
        raise ValueError(f"floor_log2({value}): the value must be positive and finite")
    return frexp(value)[1] - 1


def exact_sum(values: np.ndarray) -> float:
    """Sum of fixed-point images of the values: the same in any order and in any chunks (contract §5).

    Parameters
    ----------
    values : array_like of float64, shape (n,)
        Must be finite. Each is rounded to a multiple of ``2**-e``, chosen from the largest magnitude so that n of
        them cannot overflow an int64.

    Raises
    ------
    ValueError
        If a value is NaN or infinite.
    """
    values = np.asarray(values, np.float64)
    largest = float(np.abs(values).max(initial=0.0))
    if not np.isfinite(largest):
        row = int(np.argmin(np.isfinite(values)))
        raise ValueError(f"exact_sum: value {values[row]} at index {row}; every value must be finite")
    exponent = (60 - values.size.bit_length()) - floor_log2(largest) if largest > 0.0 else 0
    total = np.rint(np.ldexp(values, exponent)).astype(np.int64).sum()
    with np.errstate(over="ignore"):  # a sum beyond the doubles is infinite
        return float(np.ldexp(np.float64(total), -exponent))


def exact_mean(values: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Weighted mean of contract §5, independent of the order of the rows.

    Parameters
    ----------
    values : array_like, shape (n,)
    weight : array_like, shape (n,), optional
        Every weight is 1 if not given.

    Raises
    ------
    ValueError
        If there are no rows, the weights have no positive sum, or something is not finite.
    """
    values = np.asarray(values, np.float64)
    if values.size == 0:
        raise ValueError("exact_mean of 0 values: at least one row is needed")
    if weight is None:
        return exact_sum(values) / float(values.size)
    weight = np.asarray(weight, np.float64)
    if weight.shape != values.shape:
        raise ValueError(f"exact_mean: {values.shape} values but {weight.shape} weights; one weight a value is needed")
    total = exact_sum(weight)
    if not total > 0.0:
        raise ValueError(f"exact_mean: the weights sum to {total}; the sum must be positive")
    return exact_sum(values * weight) / total


def counter_hash(seed: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Stateless 64-bit random numbers, one for each (seed, a, b) (contract §2); `a` and `b` broadcast.

    Parameters
    ----------
    seed : int in [0, 2**64)
    a, b : array_like of non-negative integers

    Returns
    -------
    ndarray of uint64, at least one-dimensional
    """
    one = np.uint64(1)
    a, b = np.atleast_1d(np.asarray(a, np.uint64)), np.atleast_1d(np.asarray(b, np.uint64))  # arrays wrap silently
    return _mix(_mix(np.uint64(seed) + _GOLDEN * (a + one)) + _GOLDEN * (b + one))


def _rint(x: np.ndarray) -> np.ndarray:
    return (x + _ROUNDING) - _ROUNDING


def _mix(z: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
