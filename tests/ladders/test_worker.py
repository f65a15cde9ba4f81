import os
import subprocess
import sys

import numpy as np
import pytest

from ladders.worker import Job, is_out_of_memory, measure, quality


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
