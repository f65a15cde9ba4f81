"""Metrics against their textbook forms, and the exactness that early stopping relies on."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics

from engine import metrics


def sample(seed=0, n=500):
    rng = np.random.default_rng(seed)
    margin = rng.normal(size=n).astype(np.float32)
    weight = rng.uniform(0.1, 3, size=n).astype(np.float32)
    return rng, margin, weight


def test_rmse_is_the_textbooks():
    rng, margin, weight = sample()
    label = rng.normal(size=margin.size).astype(np.float32)
    expected = math.sqrt(sklearn_metrics.mean_squared_error(label, margin, sample_weight=weight))
    assert metrics.rmse(margin, label, weight) == pytest.approx(expected, rel=1e-6)


def test_logloss_is_the_textbooks():
    rng, margin, weight = sample(1)
    label = rng.integers(0, 2, size=margin.size).astype(np.float32)
    probability = 1 / (1 + np.exp(-margin.astype(np.float64)))
    expected = sklearn_metrics.log_loss(label, probability, sample_weight=weight)
    assert metrics.logloss(margin, label, weight) == pytest.approx(expected, rel=1e-9)


def test_poisson_deviance_is_the_textbooks():
    rng, margin, weight = sample(2)
    label = rng.poisson(2, size=margin.size).astype(np.float32)
    expected = sklearn_metrics.mean_poisson_deviance(label, np.exp(margin.astype(np.float64)), sample_weight=weight)
    assert metrics.poisson_deviance(margin, label, weight) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("metric", [metrics.rmse, metrics.logloss, metrics.poisson_deviance])
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_changes_no_bit(metric, seed):
    rng, margin, weight = sample(seed, n=100)
    label = rng.integers(0, 2, size=margin.size).astype(np.float32)
    order = rng.permutation(margin.size)
    assert metric(margin, label, weight) == metric(margin[order], label[order], weight[order])


def test_extreme_margins_stay_finite_and_an_infinite_one_is_infinite():
    label = np.array([0, 1], dtype=np.float32)
    far = np.array([3e38, -3e38], dtype=np.float32)
    assert metrics.logloss(far, label) == pytest.approx(3e38, rel=1e-6)
    assert math.isfinite(metrics.poisson_deviance(far, label))
    assert metrics.rmse(np.array([np.inf, 0], dtype=np.float32), label) == math.inf
