import os
from pathlib import Path

import numpy as np
import pytest

from ladders.contenders.knobs import Knobs
from ladders.data.cache import Stored, prepare
from ladders.worker import Job

SCENARIO = """
name = "small"
title = "a small one"
repeats = 2
timeout_s = 120.0
contenders = ["xgboost-depthwise", "lightgbm"]

[knobs]
n_estimators = 5

[limits]
depthwise = { max_depth = 3 }
leafwise = { max_leaves = 8 }

[[rungs]]
name = "tall"
data = "tall"
options = { rows = 2_000, columns = 6, seed = 1 }
objective = "squared_error"
"""


@pytest.fixture(autouse=True)
def own_directories(tmp_path_factory, monkeypatch):
    """No test reads or writes the user's cache or rows; the cache is shared by the tests of one session."""
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("DYNO_RESULTS_DIR", str(tmp_path_factory.mktemp("rows")))


@pytest.fixture(autouse=True)
def forgiving_thresholds(tmp_path_factory, monkeypatch):
    """Tests share their cores with other tests: that a quota or a neighbour shows must not mark their rows."""
    path = tmp_path_factory.getbasetemp() / "forgiving.toml"
    path.write_text("".join(f"[cpu-{what}-under-load]\nfail_above = 101\n" for what in ("throttled", "stolen")))
    monkeypatch.setenv("DYNO_THRESHOLDS", str(path))


@pytest.fixture
def scenario_file(tmp_path) -> Path:
    """A scenario as a user would write one, in a file of the test's own."""
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def steady_tree(monkeypatch):
    """Someone's edit between two commands of a test would rightly make them different measurements: hide git."""
    monkeypatch.setenv("GIT_DIR", os.devnull)


@pytest.fixture
def small() -> Stored:
    return prepare("tall", {"rows": 2000, "columns": 6, "seed": 1})


def knobs(**changes) -> Knobs:
    """Knobs of a small depthwise fit, with changes."""
    return Knobs(
        **{
            "objective": "squared_error",
            "growth": "depthwise",
            "n_estimators": 5,
            "learning_rate": 0.1,
            "max_depth": 3,
            "max_leaves": 0,
            "max_bin": 255,
            "min_child_weight": 1.0,
            "min_samples_leaf": 1,
            "reg_lambda": 1.0,
            "random_state": 0,
            "n_threads": 1,
            **changes,
        }
    )


@pytest.fixture(name="knobs")
def knobs_fixture():
    return knobs


@pytest.fixture
def job(small):
    """A job on the small task."""

    def make(module: str, how: dict | None = None, **changes) -> Job:
        return Job(
            module=module,
            knobs=knobs(**changes),
            folder=str(small.folder),
            data_hash=small.digest,
            parent=os.getpid(),
            **(how or {}),
        )

    return make


@pytest.fixture
def rng():
    return np.random.default_rng(0)
