"""LightGBM, which grows leafwise. May import lightgbm, knobs and shape."""

from __future__ import annotations

import re
from typing import Any

import lightgbm
import numpy as np

from ladders.contenders.knobs import Knobs, translate
from ladders.contenders.shape import tree_depth

_OBJECTIVES = {"regression": "squared_error", "binary": "logistic", "poisson": "poisson"}


def ingest(X: np.ndarray, y: np.ndarray, asked: Knobs, like: Any = None) -> lightgbm.Dataset:
    """Bin the rows now, not lazily in `train`."""
    parameters = translate("lightgbm", asked)
    return lightgbm.Dataset(X, y, reference=like, params=parameters, free_raw_data=False).construct()


def train(data: lightgbm.Dataset, asked: Knobs, watched: Any = None) -> lightgbm.Booster:
    """Fit on binned rows, looking at `watched` after every tree."""
    parameters = translate("lightgbm", asked)
    rounds = parameters.pop("num_iterations")
    valid_sets = None if watched is None else [watched]
    curves: dict[str, Any] = {}
    callbacks = [] if watched is None else [lightgbm.record_evaluation(curves)]
    model = lightgbm.train(parameters, data, num_boost_round=rounds, valid_sets=valid_sets, callbacks=callbacks)
    model.curves = curves  # it forgets the trees after the best one, and that there were any
    return model


def predict(model: lightgbm.Booster, X: np.ndarray, asked: Knobs) -> np.ndarray:
    """Response from raw rows."""
    return model.predict(X, num_threads=asked.n_threads)


def why_no_gpu() -> str | None:
    """What is wrong with this build, if it cannot train on a GPU: only an attempt shows it."""
    ramp = np.arange(64, dtype=np.float32)
    try:
        lightgbm.train({"device_type": "cuda", "verbosity": -2}, lightgbm.Dataset(ramp[:, None], ramp), 1)
    except lightgbm.basic.LightGBMError as error:
        if "not enabled in this build" in str(error):
            return "this LightGBM was built without CUDA (PyPI's wheels are); build one with -DUSE_CUDA=ON"
    return None


def read_back(model: lightgbm.Booster, data: lightgbm.Dataset) -> dict[str, Any]:
    """Our knobs as the model's own text and the binned data show them."""
    text = model.model_to_string()
    trained = dict(re.findall(r"^\[(\w+): ?(.*)\]$", text, re.MULTILINE))
    trees = text.split("\nTree=")[1:]
    bins = [data.feature_num_bin(feature) for feature in range(data.num_feature())]
    return {
        "device": trained["device_type"],
        "objective": _OBJECTIVES.get(trained["objective"], trained["objective"]),
        "growth": "leafwise",
        "n_estimators": len(trees),
        "learning_rate": float(trained["learning_rate"]),
        "max_depth": max((tree_depth(*_children(tree)) for tree in trees), default=0),
        "max_leaves": max((int(re.search(r"^num_leaves=(\d+)", tree, re.MULTILINE)[1]) for tree in trees), default=0),
        "max_bin": max(bins),
        "min_child_weight": float(trained["min_sum_hessian_in_leaf"]),
        "min_samples_leaf": int(trained["min_data_in_leaf"]),
        "reg_lambda": float(trained["lambda_l2"]),
        "n_threads": int(trained["num_threads"]),
        "patience": int(trained["early_stopping_round"]),
    }


def evidence(model: lightgbm.Booster) -> dict[str, Any]:
    """In the fields of `results.schema.Row`: rounds trained, and those that predict."""
    curves = [curve for metrics in model.curves.values() for curve in metrics.values()]
    return {"rounds": max([model.num_trees(), *map(len, curves)]), "best_round": model.num_trees()}


def _children(tree: str) -> tuple[list[int], list[int]]:
    """Child arrays of one tree's text; empty for a single leaf."""
    found = dict(re.findall(r"^(left|right)_child=(.+)$", tree, re.MULTILINE))
    return tuple([int(child) for child in found.get(side, "").split()] for side in ("left", "right"))
