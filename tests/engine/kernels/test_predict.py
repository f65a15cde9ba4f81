"""Margins predicted on the device against those of the native predictor, bit by bit."""

import numpy as np
import pandas as pd
import pytest

import engine
from engine.backends import raw_chunks
from engine.backends.device_predict import predict_margins
from engine.columns import Columns
from engine.device.emulated import EmulatedDevice
from engine.errors import DeviceUnavailableError
from engine.forest import Forest
from engine.predictor import Predictor


def matrix(n_rows, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    X = (random.standard_normal((n_rows, 4)) * [1.0, 1e-44, 1e5, 1.0]).round(46).astype(dtype)
    X[:, 3] = random.integers(-2, 3, n_rows)
    X[random.random(X.shape) < 0.15] = np.nan
    return X


@pytest.fixture(scope="module", params=["depthwise", "leafwise"])
def model(request):
    X = matrix(400)
    y = np.nan_to_num(X[:, 0]) + np.isnan(X[:, 1]) * 2.0 + np.nan_to_num(X[:, 3])
    return engine.train({"n_estimators": 5, "grower": request.param, "max_depth": 4}, engine.Dataset(X, y))


def assert_predicted(model, X, schedule_seed=0):
    columns = Columns.of(X)
    expected = Predictor(model.forest).margins(columns, model.base_margin)
    device = EmulatedDevice(schedule_seed)
    found = predict_margins(device, columns, model.forest, model.base_margin)
    assert found.dtype == np.float32
    assert found.tobytes() == expected.tobytes()
    assert device.allocated == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_rows", [1, 31, 32, 33, 1000])
def test_every_number_of_rows(model, n_rows, dtype):
    for seed in range(3):
        assert_predicted(model, matrix(n_rows, dtype, seed), seed)


def test_rows_meet_thresholds_exactly(model):
    thresholds = model.forest.threshold[np.isfinite(model.forest.threshold)]
    near = np.concatenate([thresholds, np.nextafter(thresholds, np.inf), np.nextafter(thresholds, -np.inf), [-0.0]])
    for dtype in (np.float32, np.float64):
        assert_predicted(model, np.repeat(near.astype(dtype)[:, None], 4, axis=1))


@pytest.mark.parametrize("order", ["C", "F"])
def test_chunks_meet_without_a_seam(monkeypatch, model, order):
    monkeypatch.setattr(raw_chunks, "CHUNK_BYTES", 1000)
    X = np.asarray(matrix(300, np.float32), order=order)
    assert_predicted(model, X)
    columns = {f"f{feature}": X[:, feature] for feature in range(4)}
    assert_predicted(model, pd.DataFrame({**columns, "f1": X[:, 1].astype(np.float64)}))


def test_no_trees_leave_the_base_margin():
    found = predict_margins(EmulatedDevice(), Columns.of(np.zeros((3, 1))), Forest.of([]), np.float32(0.25))
    assert found.tolist() == [0.25] * 3


def test_a_model_predicts_where_it_is_told(model):
    X = matrix(50)
    for output in ("margin", "response"):
        assert model.predict(X, output, device="emulated").tobytes() == model.predict(X, output).tobytes()
    assert len(model.predict(X[:0], device="emulated")) == 0
    with pytest.raises(DeviceUnavailableError, match="tpu"):
        model.predict(X, device="tpu")
