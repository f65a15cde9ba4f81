import importlib

import numpy as np
import pytest

from ladders.contenders import CONTENDERS, engine
from ladders.contenders.knobs import not_honoured
from ladders.scenario import load_scenario
from ladders.worker import quality
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
    assert {**asked.model_dump(exclude={"random_state"})}.keys() | {"device"} == found.keys()
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
    model = engine.train(engine.ingest(X, y, asked, "emulated"), asked, "emulated")
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
    assert shown.keys() == {"phases", "model_digest"}
    assert shown["phases"]["histogram"] > 0
    again = engine.evidence(engine.train(engine.ingest(task.X_train, task.y_train, asked), asked))
    assert again["model_digest"] == shown["model_digest"]
