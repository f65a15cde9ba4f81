"""What a fit is said to take is what an emulated device was really asked for, to the byte."""

import numpy as np
import pytest

import engine
from engine import Dataset, estimate_memory


def make_data(n_rows=600, n_features=5, max_bin=255, weight=None):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    return Dataset(X, X[:, 0] + rng.normal(size=n_rows), max_bin=max_bin, weight=weight)


CASES = [
    ({"grower": "depthwise", "max_depth": 3}, {}),
    ({"grower": "leafwise", "max_leaves": 7}, {"n_features": 17}),
    ({"grower": "levelwise", "max_depth": 4}, {"max_bin": 300}),
    ({"objective": "poisson", "min_samples_leaf": 3, "max_depth": 2}, {"weight": np.full(600, 1.5)}),
    ({"max_depth": 2}, {"weight": np.ones(600)}),
]


@pytest.mark.parametrize(("params", "how"), CASES)
@pytest.mark.parametrize("with_eval_set", [False, True])
def test_the_estimate_is_what_is_allocated(devices, params, how, with_eval_set):
    data = make_data(**how)
    if "objective" in params:
        data = Dataset(np.column_stack(data.columns.arrays), np.exp(data.label), weight=data.weight)
    columns = np.column_stack(data.columns.arrays)
    watched = [Dataset(columns[:n], data.label[:n], cuts_from=data) for n in (100, 33)] if with_eval_set else []
    params = {"device": "emulated", "n_estimators": 2, **params}
    engine.train(params, data, eval_set=watched)
    estimate = estimate_memory(params, data, eval_set=watched)
    fitting, *ingesting = devices  # a session opens its own device before it wants planes
    assert fitting.peak == sum(estimate.fit.values())
    assert sum(device.allocated for device in ingesting) == sum(estimate.planes.values())
    assert ingesting[0].peak - ingesting[0].allocated == sum(estimate.ingest.values())
    assert len(ingesting) == 1 + len(watched)


def test_a_shape_stands_for_features_that_use_every_bin():
    rng = np.random.default_rng(0)
    data = Dataset(rng.permuted(np.tile(np.arange(500, dtype=np.float32), (3, 1)), axis=1).T, np.zeros(500))
    assert (data.cuts.value_bins == 255).all()
    assert estimate_memory({"max_depth": 4}, (500, 3)) == estimate_memory({"max_depth": 4}, data)


def test_the_estimate_of_something_large_comes_without_the_data_and_names_a_knob():
    text = str(estimate_memory({"max_depth": 8}, (16_777_216, 128)))
    assert "GB at the most" in text
    assert "max_bin" in text or "fewer rows" in text


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), 5, (1, 2, 3), ("a", 2)])
def test_what_is_no_shape(shape):
    with pytest.raises(engine.DataError, match="shape"):
        estimate_memory(None, shape)
