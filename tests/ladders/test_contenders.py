import importlib
from pathlib import Path

import numpy as np
import pytest

from engine import Dataset, train
from ladders.contenders import CONTENDERS, engine, xgboost
from ladders.contenders.knobs import misplaced, not_honoured, translate
from ladders.launch import launch
from ladders.scenario import load_scenario
from ladders.worker import quality
from probes.identity import TRACES
from results.schema import Row

LIMITS = {
    "depthwise": {"max_depth": 3, "max_leaves": 0},
    "leafwise": {"max_depth": 0, "max_leaves": 8},
    "levelwise": {"max_depth": 3, "max_leaves": 0},
}


@pytest.fixture
def data(rng):
    """Rows with gaps and a signal in the first two columns."""
    X = rng.normal(size=(3000, 4)).astype(np.float32)
    margin = X[:, 0] + (X[:, 1] > 0)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, margin


LABELS = {
    "squared_error": lambda margin: margin,
    "logistic": lambda margin: (margin > 0.5).astype(np.float32),
    "poisson": lambda margin: np.floor(np.exp(margin)).astype(np.float32),
}


@pytest.mark.parametrize("objective", LABELS)
@pytest.mark.parametrize("name", CONTENDERS)
def test_every_contender_learns_and_honours_its_knobs(name, objective, data, knobs):
    contender = importlib.import_module(CONTENDERS[name].module)
    growth = CONTENDERS[name].growth
    asked = knobs(objective=objective, growth=growth, n_estimators=20, max_bin=63, **LIMITS[growth])
    X, margin = data
    y = LABELS[objective](margin).astype(np.float32)
    binned = contender.ingest(X[:2000], y[:2000], asked)
    model = contender.train(binned, asked)
    found = contender.read_back(model, binned)
    assert not_honoured(asked, found) is None, found
    assert misplaced(asked, found) is None, found
    assert {**asked.model_dump(exclude={"random_state"})}.keys() == found.keys()
    assert found["max_depth"] > 1
    assert found["max_leaves"] <= 8
    _, value = quality(objective, y[2000:], contender.predict(model, X[2000:], asked))
    _, constant = quality(objective, y[2000:], np.full(1000, y[:2000].mean()))
    assert value < 0.8 * constant


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_model_of_other_knobs_is_caught(name, data, knobs):
    contender = importlib.import_module(CONTENDERS[name].module)
    growth = CONTENDERS[name].growth
    asked = knobs(growth=growth, n_estimators=5, **LIMITS[growth])
    deeper = asked.model_copy(
        update={"max_depth": 5, "max_leaves": 31 if growth == "leafwise" else 0, "learning_rate": 0.3}
    )
    X, y = data
    binned = contender.ingest(X, y, deeper)
    told = not_honoured(asked, contender.read_back(contender.train(binned, deeper), binned))
    assert "learning_rate" in told
    assert "max_leaves" in told if growth == "leafwise" else "max_depth" in told


def test_the_flights_ladder_asks_all_ten():
    assert load_scenario("flights").contenders == list(CONTENDERS)


def test_what_the_engine_counts_are_fields_of_a_row(small, knobs):
    task, asked = small.load(), knobs()
    X, y = np.ascontiguousarray(task.X_train[:300]), task.y_train[:300].copy()
    model = train({**translate("engine", asked), "device": "emulated"}, Dataset(X, y, max_bin=asked.max_bin))
    counts = engine.evidence(model)
    assert counts.keys() <= Row.model_fields.keys()
    assert counts["launches"] >= counts["replayed_launches"] > 0
    assert counts["replays"] == asked.n_estimators
    assert counts["syncs"] >= 1
    assert counts["copies"] >= 2
    assert counts["bytes_down"] > 0


def test_a_fit_on_a_cpu_shows_phases_and_digest_and_has_no_bus_to_count(small, knobs):
    task, asked = small.load(), knobs()
    shown = engine.evidence(engine.train(engine.ingest(task.X_train, task.y_train, asked), asked))
    assert shown.keys() == {"phases", "model_digest", "rounds", "best_round"}
    assert shown["rounds"] == shown["best_round"] == asked.n_estimators
    assert shown["phases"]["histogram"] > 0
    again = engine.evidence(engine.train(engine.ingest(task.X_train, task.y_train, asked), asked))
    assert again["model_digest"] == shown["model_digest"]


@pytest.mark.parametrize("name", CONTENDERS)
def test_patience_stops_every_contender_at_its_best_round(name, knobs, rng):
    """Rows of noise alone: the first trees are the best there are."""
    contender = importlib.import_module(CONTENDERS[name].module)
    growth = CONTENDERS[name].growth
    X, y = rng.normal(size=(1000, 4)).astype(np.float32), rng.normal(size=1000).astype(np.float32)
    X_held, y_held = X[500:], y[500:]
    shown = {}
    for patience in (0, 3):
        asked = knobs(growth=growth, n_estimators=60, learning_rate=0.5, patience=patience, **LIMITS[growth])
        binned = contender.ingest(X[:500], y[:500], asked)
        model = contender.train(binned, asked, contender.ingest(X_held, y_held, asked, binned))
        found = contender.read_back(model, binned)
        assert not_honoured(asked, found) is None, found
        shown[patience] = contender.evidence(model)
        _, error = quality("squared_error", y_held, contender.predict(model, X_held, asked))
        shown[patience]["error"] = error
        if patience:
            assert found["n_estimators"] == shown[patience]["best_round"]
    assert shown[0]["rounds"] == 60
    assert shown[3]["rounds"] < 60
    assert shown[3]["best_round"] == shown[3]["rounds"] - 3
    assert shown[3]["error"] < shown[0]["error"]


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_data_set_predicts_what_raw_rows_do(name, data, knobs):
    contender = importlib.import_module(CONTENDERS[name].module)
    if name == "lightgbm":
        assert not hasattr(contender, "to_predict")  # it predicts from raw rows only
        return
    growth = CONTENDERS[name].growth
    asked = knobs(growth=growth, **LIMITS[growth])
    X, y = data
    binned = contender.ingest(X[:2000], y[:2000].astype(np.float32), asked)
    model = contender.train(binned, asked)
    rows = contender.to_predict(X[2000:], asked, binned)
    assert np.array_equal(contender.predict(model, rows, asked), contender.predict(model, X[2000:], asked))


WITHOUT_GPU = pytest.mark.skipif(
    any((Path("/") / trace).exists() for trace in TRACES), reason="this machine has a GPU: it trains there"
)

REFUSALS = {
    "engine-depthwise": ("error", "CuPy"),
    "xgboost-depthwise": ("unsupported", "built without CUDA"),
    "lightgbm": ("unsupported", "built without CUDA"),
    "catboost": ("error", "CUDA"),
    "bonsai-depthwise": ("error", "CUDA"),
}


@WITHOUT_GPU
@pytest.mark.parametrize("name", REFUSALS)
def test_no_library_trains_on_a_gpu_that_is_not_there(name, job):
    """Real libraries, real workers: never ok, and the reason told."""
    contender = CONTENDERS[name]
    found = launch(job(contender.module, growth=contender.growth, device="gpu", **LIMITS[contender.growth]), 120.0)
    status, told = REFUSALS[name]
    assert found["status"] == status
    assert told in found["message"]
    assert "fit_s" not in found


@WITHOUT_GPU
def test_xgboost_falls_back_to_the_cpu_without_a_word_and_is_found_out(data, knobs):
    asked = knobs(device="gpu")
    X, y = data
    binned = xgboost.ingest(X, y.astype(np.float32), asked)
    model = xgboost.train(binned, asked)
    found = xgboost.read_back(model, binned)
    assert not_honoured(asked, found) is None
    assert misplaced(asked, found) == (
        "asked to train on cuda, and the model was trained on cpu: this is no figure of a fit"
    )
