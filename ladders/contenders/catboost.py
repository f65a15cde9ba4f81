"""CatBoost with symmetric trees. May import catboost and knobs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import catboost
import numpy as np

from ladders.contenders.knobs import Knobs, translate

_OBJECTIVES = {"RMSE": "squared_error", "Logloss": "logistic", "Poisson": "poisson"}
_GROWTHS = {"SymmetricTree": "levelwise"}
_PREDICTIONS = {"squared_error": "RawFormulaVal", "logistic": "Probability", "poisson": "Exponent"}


def ingest(X: np.ndarray, y: np.ndarray, asked: Knobs, like: Any = None) -> catboost.Pool:
    """Quantise the rows now: left to `fit`, binning would be booked as training.

    float32 in C order, as its documentation advises for numbers only; a copy in Fortran order first was tried on
    300,000 x 60: as fast (0.81 against 0.85 s, the copy counted) and 50 MiB more.
    """
    parameters = translate("catboost", asked)
    pool = catboost.Pool(X, y, thread_count=asked.n_threads)
    # quantize() has no option for threads and takes every core it sees: the worker limits what it sees.
    if like is None:
        pool.quantize(border_count=parameters["border_count"], task_type=parameters["task_type"])
        return pool
    with tempfile.TemporaryDirectory() as folder:  # borders go from pool to pool by file only
        borders = str(Path(folder) / "borders")
        like.save_quantization_borders(borders)
        pool.quantize(input_borders=borders, task_type=parameters["task_type"])
    return pool


def train(data: catboost.Pool, asked: Knobs, watched: Any = None) -> catboost.CatBoost:
    """Fit on quantised rows, looking at `watched` after every tree."""
    return catboost.CatBoost(translate("catboost", asked)).fit(
        data, eval_set=watched, use_best_model=bool(asked.patience)
    )


def predict(model: catboost.CatBoost, X: np.ndarray | catboost.Pool, asked: Knobs) -> np.ndarray:
    """Response from raw rows or a pool."""
    found = model.predict(X, prediction_type=_PREDICTIONS[asked.objective], thread_count=asked.n_threads)
    return found[:, 1] if asked.objective == "logistic" else found


def to_predict(X: np.ndarray, asked: Knobs, data: catboost.Pool) -> catboost.Pool:
    """Rows to predict as a pool."""
    return catboost.Pool(X, thread_count=asked.n_threads)


def read_back(model: catboost.CatBoost, data: catboost.Pool) -> dict[str, Any]:
    """Our knobs as the model shows them; it does not show threads or a least hessian."""
    trained = model.get_all_params()
    leaves = int(model.get_tree_leaf_counts().max())
    return {
        "device": {"CPU": "cpu", "GPU": "cuda"}[trained["task_type"]],
        "objective": _OBJECTIVES.get(trained["loss_function"], trained["loss_function"]),
        "growth": _GROWTHS.get(trained["grow_policy"], trained["grow_policy"]),
        "n_estimators": model.tree_count_,
        "learning_rate": float(trained["learning_rate"]),
        "max_depth": leaves.bit_length() - 1,
        "max_leaves": leaves,
        "max_bin": max(map(len, model.get_borders().values())) + 1,  # borders that a tree uses
        "min_child_weight": None,
        "min_samples_leaf": None,
        "reg_lambda": float(trained["l2_leaf_reg"]),
        "n_threads": None,
        "patience": int(trained["od_wait"]) if trained.get("od_type") == "Iter" else 0,
    }


def evidence(model: catboost.CatBoost) -> dict[str, Any]:
    """In the fields of `results.schema.Row`: rounds trained, and those that predict."""
    curves = [curve for metrics in model.evals_result_.values() for curve in metrics.values()]
    return {"rounds": max([model.tree_count_, *map(len, curves)]), "best_round": model.tree_count_}
