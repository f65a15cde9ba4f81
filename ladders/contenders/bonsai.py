"""bonsai-gbt, all three growths. May import bonsai, knobs and nothing else of ours."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from typing import Any

import bonsai
import numpy as np

from ladders.contenders.knobs import Knobs, translate

_OBJECTIVES = {"mse": "squared_error", "logloss": "logistic", "poisson": "poisson"}


def ingest(X: np.ndarray, y: np.ndarray, asked: Knobs, like: Any = None) -> bonsai.Dataset:
    """Bin the rows, with the cuts of `like` if given."""
    parameters = translate("bonsai", asked)
    placed = {"device": parameters["device"], "n_threads": asked.n_threads}
    return bonsai.Dataset(X, y, max_bin=parameters["max_bin"], reference=like, **placed)


def train(data: bonsai.Dataset, asked: Knobs, watched: Any = None) -> Any:
    """Fit on binned rows; bins and device are fixed by the data set and refused here."""
    parameters = {
        name: value for name, value in translate("bonsai", asked).items() if name not in ("max_bin", "device")
    }
    return bonsai.train(parameters, data, eval_set=watched)


def predict(model: Any, X: np.ndarray | bonsai.Dataset, asked: Knobs) -> np.ndarray:
    """Response from raw rows or a data set."""
    return model.predict(X)


def to_predict(X: np.ndarray, asked: Knobs, data: bonsai.Dataset) -> bonsai.Dataset:
    """Rows to predict, binned with the cuts of the training data; labels are needed and not looked at."""
    return ingest(X, np.zeros(len(X), np.float32), asked, data)


def read_back(model: Any, data: bonsai.Dataset) -> dict[str, Any]:
    """Our knobs as the model's own configuration and text dump show them.

    The configuration names the default `max_bin` whatever the data set was binned with, so bins are counted instead.
    """
    trained = tomllib.loads(model.config_toml)
    trees = model.dump().split("tree ")[1:]
    grower = trained["dispatch"]["grower_name"]
    growth = grower.removeprefix("cuda_")
    shape = _levelwise_shape if growth == "levelwise" else _shape
    shapes = [shape(tree) for tree in trees]
    return {
        "device": data.device
        if (data.device == "cuda") == grower.startswith("cuda_")
        else f"{data.device} by {grower}",
        "objective": _OBJECTIVES.get(trained["dispatch"]["objective_name"], trained["dispatch"]["objective_name"]),
        "growth": growth,
        "n_estimators": model.n_iters,
        "learning_rate": trained["booster"]["learning_rate"],
        "max_depth": max(depth for depth, _ in shapes),
        "max_leaves": max(leaves for _, leaves in shapes),
        "max_bin": _bins_used(model.dump()),
        "min_child_weight": trained["tree"]["min_child_hess"],
        "min_samples_leaf": trained["tree"]["min_data_in_leaf"],
        "reg_lambda": trained["tree"]["lambda_l2"],
        "n_threads": trained["parallel"]["n_threads"],
        "patience": trained["booster"]["early_stopping_rounds"],
    }


def evidence(model: Any) -> dict[str, Any]:
    """In the fields of `results.schema.Row`: rounds trained, and those that predict."""
    return {"rounds": max(model.n_iters, len(model.eval_history)), "best_round": model.n_iters}


def _bins_used(dump: str) -> int:
    """Most bins of a feature that the trees tell apart: a lower bound of those it was given."""
    cuts = Counter(feature for feature, _ in set(re.findall(r"(\w+) <= (\S+)", dump)))
    return max(cuts.values(), default=0) + 1


def _shape(tree: str) -> tuple[int, int]:
    """(depth, leaves) of a dumped tree, whose lines are indented by two spaces a level."""
    indents = [len(indent) for indent in re.findall(r"^( *)leaf=", tree, re.MULTILINE)]
    return max(indents) // 2, len(indents)


def _levelwise_shape(tree: str) -> tuple[int, int]:
    levels = len(re.findall(r"^level ", tree, re.MULTILINE))
    return levels, 2**levels
