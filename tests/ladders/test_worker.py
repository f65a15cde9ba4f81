import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

from ladders.data.cache import prepare
from ladders.data.task import Task
from ladders.worker import Job, is_out_of_memory, measure, quality, time_predictions
from tests.ladders.conftest import knobs as make_knobs


def test_figures_of_one_fit(job):
    found = measure(job("ladders.contenders.xgboost"))
    assert found["status"] == "ok"
    assert found["message"] is None
    assert found["fit_s"] >= found["ingest_s"] + found["train_s"] > 0
    assert found["predict_s"] > 0
    assert found["metric"] == "rmse"
    assert 0 < found["value"] < 10
    assert found["knobs_found"]["max_depth"] == 3


def test_a_knob_that_is_not_honoured_rejects_the_fit(job):
    """LightGBM always grows leafwise: asked for depthwise, the figures are kept and the row is marked."""
    found = measure(job("ladders.contenders.lightgbm", growth="depthwise", max_leaves=8))
    assert found["status"] == "rejected"
    assert "growth asked depthwise, found leafwise" in found["message"]
    assert found["train_s"] > 0


def test_quality_is_the_textbooks():
    y, p = np.array([0, 1, 1], np.float32), np.array([0.25, 0.5, 0.75])
    assert quality("squared_error", y, p) == ("rmse", pytest.approx(np.sqrt((0.25**2 + 0.5**2 + 0.25**2) / 3)))
    name, value = quality("logistic", y, p)
    assert (name, value) == ("log_loss", pytest.approx(-(np.log(0.75) + np.log(0.5) + np.log(0.75)) / 3))
    deviance = 2 * np.mean([0.25, -np.log(0.5) - 0.5, -np.log(0.75) - 0.25])
    assert quality("poisson", y, p) == ("poisson_deviance", pytest.approx(deviance))


def test_one_class_in_the_test_part():
    assert quality("logistic", np.zeros(3, np.float32), np.full(3, 0.5))[1] == pytest.approx(np.log(2))


@pytest.mark.parametrize("response", [np.array([1.0, np.nan]), np.array([1.0, np.inf]), np.ones(3), np.ones((2, 1))])
def test_a_prediction_that_is_none(response):
    with pytest.raises(ValueError, match="finite"):
        quality("squared_error", np.zeros(2, np.float32), response)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (MemoryError(), True),
        (RuntimeError("std::bad_alloc"), True),
        (OSError(12, "Cannot allocate memory"), True),
        (RuntimeError("bad labels"), False),
    ],
)
def test_lack_of_memory_is_known_by_any_name(error, answer):
    assert is_out_of_memory(error) is answer


def test_a_worker_whose_parent_is_gone_does_not_start(job):
    orphan = Job(**{**job("ladders.contenders.xgboost").model_dump(), "parent": 1 if os.getppid() != 1 else 2})
    command = [sys.executable, "-P", "-m", "ladders.worker"]
    ended = subprocess.run(command, input=orphan.model_dump_json().encode(), capture_output=True)
    assert ended.returncode == 1
    assert b"RESULT" not in ended.stdout


def test_a_pipeline_begins_with_the_csv_file(job, small):
    plain = measure(job("ladders.contenders.xgboost"))
    found = measure(job("ladders.contenders.xgboost", {"timing_mode": "pipeline"}))
    assert plain.get("read_s") is None
    assert found["read_s"] > 0
    assert found["fit_s"] >= found["read_s"] + found["ingest_s"] + found["train_s"]
    assert found["value"] == plain["value"]
    assert (small.folder / "train.csv").stat().st_size > 0


def test_a_csv_file_of_other_rows_is_found_out(job, small):
    path = small.csv()
    text = path.read_text()
    path.write_text("9" + text)
    try:
        with pytest.raises(ValueError, match="holds other rows than the arrays beside it"):
            measure(job("ladders.contenders.xgboost", {"timing_mode": "pipeline"}))
    finally:
        path.write_text(text)


def test_held_out_rows_are_the_last_ones_and_are_not_trained_on(job, small):
    task = small.load()
    alone = Task(task.X_train[:1800].copy(), task.y_train[:1800].copy(), task.X_test, task.y_test, task.feature_names)
    engine = importlib.import_module("ladders.contenders.engine")
    asked = job("ladders.contenders.engine").knobs
    model = engine.train(engine.ingest(alone.X_train, alone.y_train, asked), asked)
    off = measure(job("ladders.contenders.engine", {"held_out": 0.1}))
    assert off["model_digest"] == engine.evidence(model)["model_digest"]


def test_a_fit_that_stops_says_where(job):
    how = {"held_out": 0.25, "watch": True}
    found = measure(
        job(
            "ladders.contenders.lightgbm",
            how,
            growth="leafwise",
            max_leaves=31,
            n_estimators=400,
            learning_rate=0.5,
            patience=5,
            max_depth=0,
        )
    )
    assert found["status"] == "ok"
    assert found["rounds"] == found["best_round"] + 5 < 400
    assert found["knobs_found"]["n_estimators"] == found["best_round"]


def test_too_few_rows_to_hold_any_out(tmp_path, job):
    one = prepare("tall", {"rows": 1, "columns": 5, "seed": 1, "test_rows": 3})
    lonely = Job(
        **{
            **job("ladders.contenders.xgboost", {"held_out": 0.1}).model_dump(),
            "folder": str(one.folder),
            "data_hash": one.digest,
        }
    )
    with pytest.raises(ValueError, match="1 training rows are too few"):
        measure(lonely)


def test_no_answer_is_timed_twice_for_the_same_data_set(small):
    """XGBoost remembers what it answered for a matrix: every call must have rows of its own."""
    given = []

    class Remembering:
        @staticmethod
        def to_predict(X, asked, data):
            return [len(given)]

        @staticmethod
        def predict(model, rows, asked):
            given.append(rows)

    time_predictions(Remembering, None, None, small.load(), make_knobs())
    matrices = [id(rows) for rows in given if isinstance(rows, list)]
    assert len(matrices) == len(set(matrices)) >= 12


@pytest.mark.parametrize(("module", "ways"), [("engine", {"raw", "dataset"}), ("lightgbm", {"raw"})])
def test_predictions_are_timed_at_one_row_a_thousand_and_all(module, ways, small):
    task = small.load()
    contender = importlib.import_module(f"ladders.contenders.{module}")
    asked = make_knobs(growth="leafwise", max_leaves=8)
    data = contender.ingest(task.X_train, task.y_train, asked)
    seconds = time_predictions(contender, contender.train(data, asked), data, task, asked)
    assert seconds.keys() == {f"{way}_{rows}" for way in ways for rows in (1, len(task.y_test))}
    assert len(task.y_test) < 1000
    assert min(seconds.values()) > 0
