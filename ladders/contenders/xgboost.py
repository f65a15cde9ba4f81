"""XGBoost through `QuantileDMatrix`, depthwise and lossguide. May import xgboost, knobs and shape."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import xgboost

from ladders.contenders.knobs import Knobs, translate
from ladders.contenders.shape import tree_depth

_OBJECTIVES = {"reg:squarederror": "squared_error", "binary:logistic": "logistic", "count:poisson": "poisson"}
_GROWTHS = {"depthwise": "depthwise", "lossguide": "leafwise"}


def ingest(X: np.ndarray, y: np.ndarray, asked: Knobs, like: Any = None) -> xgboost.QuantileDMatrix:
    """Bin the rows; without `nthread` the matrix would take every core of the host.

    What its documentation advises for `hist`. A plain `DMatrix` bins inside `train` and was 14 % faster in all on
    300,000 x 60, with twice the memory; its training time alone would say nothing.
    """
    return xgboost.QuantileDMatrix(X, label=y, max_bin=asked.max_bin, nthread=asked.n_threads, ref=like)


def train(data: xgboost.QuantileDMatrix, asked: Knobs, watched: Any = None) -> xgboost.Booster:
    """Fit on binned rows, looking at `watched` after every tree."""
    parameters = translate("xgboost", asked)
    rounds = {name: parameters.pop(name) for name in ("num_boost_round", "early_stopping_rounds")}
    evals = [] if watched is None else [(watched, "watched")]
    return xgboost.train(parameters, data, evals=evals, verbose_eval=False, **rounds)


def predict(model: xgboost.Booster, X: np.ndarray | xgboost.DMatrix, asked: Knobs) -> np.ndarray:
    """Response from raw rows, without building a matrix, which would take twice as long again; or from a matrix."""
    used = (0, _best_round(model))  # it would use the trees grown after the best round too
    from_rows = isinstance(X, np.ndarray)
    return model.inplace_predict(X, iteration_range=used) if from_rows else model.predict(X, iteration_range=used)


def to_predict(X: np.ndarray, asked: Knobs, data: xgboost.QuantileDMatrix) -> xgboost.DMatrix:
    """Rows to predict as a matrix."""
    return xgboost.DMatrix(X, nthread=asked.n_threads)


def why_no_gpu() -> str | None:
    """What is wrong with this build, if it cannot train on a GPU: it would train on the CPU and only warn."""
    if xgboost.build_info()["USE_CUDA"]:
        return None
    return "this XGBoost was built without CUDA (build_info USE_CUDA); install 'gbt-dyno[peers-cuda12]' in its place"


def read_back(model: xgboost.Booster, data: xgboost.QuantileDMatrix) -> dict[str, Any]:
    """Our knobs as the booster's own configuration, trees and cuts show them."""
    learner = json.loads(model.save_config())["learner"]
    trained = learner["gradient_booster"]["tree_train_param"]
    dump = json.loads(bytes(model.save_raw("json")))
    trees = dump["learner"]["gradient_booster"]["model"]["trees"][: _best_round(model)]
    offsets = data.get_quantile_cut()[0]
    return {
        "device": learner["generic_param"]["device"].partition(":")[0],  # cuda:0
        "objective": _OBJECTIVES.get(learner["objective"]["name"], learner["objective"]["name"]),
        "growth": _GROWTHS.get(trained["grow_policy"], trained["grow_policy"]),
        "n_estimators": len(trees),
        "learning_rate": float(trained["learning_rate"]),
        "max_depth": max((tree_depth(tree["left_children"], tree["right_children"]) for tree in trees), default=0),
        "max_leaves": max((tree["left_children"].count(-1) for tree in trees), default=0),
        "max_bin": int(np.diff(offsets).max()) - 1,  # each feature's cuts are led by its minimum
        "min_child_weight": float(trained["min_child_weight"]),
        "min_samples_leaf": None,
        "reg_lambda": float(trained["reg_lambda"]),
        "n_threads": int(learner["generic_param"]["nthread"]),
        "patience": None,
    }


def evidence(model: xgboost.Booster) -> dict[str, Any]:
    """In the fields of `results.schema.Row`: rounds trained, and those that predict."""
    return {"rounds": model.num_boosted_rounds(), "best_round": _best_round(model)}


def _best_round(model: xgboost.Booster) -> int:
    best = model.attr("best_iteration")
    return model.num_boosted_rounds() if best is None else int(best) + 1
