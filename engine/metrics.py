"""Losses a row and their exact means, for early stopping and reports. May import numerics only.

A metric decides when a fit stops and so which trees a model has: it is an exact integer mean (contract §5, §12), not a
float sum whose order depends on the CPU's vector width.
"""

from __future__ import annotations

import math

import numpy as np

from engine import numerics


def rmse(margin: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Weighted root mean squared error of float32 margins against float32 labels."""
    return math.sqrt(_mean((_double(margin) - _double(label)) ** 2, weight))


def logloss(margin: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Weighted mean log loss in nats; margins are log-odds. Stable for any margin: log(1 + e^-|m|) never overflows."""
    m, y = _double(margin), _double(label)
    return _mean(np.maximum(m, 0.0) - m * y + numerics.log(1.0 + numerics.exp(-np.abs(m))), weight)


def poisson_deviance(margin: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Weighted mean Poisson deviance ``2 * (y * log(y / mu) - (y - mu))``; margins are log means."""
    m, y = np.clip(_double(margin), -80.0, 80.0), _double(label)
    log_ratio = np.where(y > 0, numerics.log(np.where(y > 0, y, 1.0)) - m, 0.0)
    return _mean(2.0 * (y * log_ratio - (y - numerics.exp(m))), weight)


def _double(values: np.ndarray) -> np.ndarray:
    return np.asarray(values, dtype=np.float64)


def _mean(losses: np.ndarray, weight: np.ndarray | None) -> float:
    """A margin that overflowed makes its loss infinite; the mean is then infinite too, never an integer overflow."""
    return float(numerics.exact_mean(losses, weight)) if np.isfinite(losses).all() else math.inf
