"""Whole-number weights are repetitions, bit for bit (contract §5): a row of weight k is k rows of weight 1."""

import numpy as np
import pytest

from engine import Dataset, train
from engine.tree import NODE_DTYPES


def fit(X, y, weight, device, **params):
    data = Dataset(X, y, weight=weight)
    return train({"n_estimators": 8, "learning_rate": 0.3, "device": device, **params}, data)


@pytest.mark.parametrize("device", ["reference", "cpu"])
@pytest.mark.parametrize("objective", ["squared_error", "logistic", "poisson"])
@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "levelwise"])
def test_a_weight_of_k_is_k_copies(device, objective, grower):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 5)).round(1)
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(np.float64)
    weight = rng.integers(0, 8, size=200)
    copies = np.repeat(np.arange(200), weight)
    settings = {"objective": objective, "grower": grower, "base_score": 0.5}
    weighted = fit(X, y, weight, device, **settings)
    repeated = fit(X[copies], y[copies], None, device, **settings)
    for name in set(NODE_DTYPES) - {"count"}:  # the rows are fewer, the sums are not
        np.testing.assert_array_equal(getattr(weighted.forest, name), getattr(repeated.forest, name), err_msg=name)


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_weights_of_one_are_no_weights(device):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(150, 3)), rng.normal(size=150)
    assert fit(X, y, np.ones(150), device).to_bytes() == fit(X, y, None, device).to_bytes()


def test_a_single_fraction_makes_all_weights_factors():
    """8 is past the limit of an int32 cell, 0.5 is no repetition: both scale the gradients instead, and still train."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(150, 3)), rng.normal(size=150)
    for odd in (0.5, 8.0):
        weight = np.r_[odd, np.ones(149)]
        assert fit(X, y, weight, "cpu").to_bytes() == fit(X, y, weight, "reference").to_bytes()
