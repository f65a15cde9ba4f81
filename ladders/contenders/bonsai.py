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


def ingest(X: np.ndarray, y: np.ndarray, asked: Knobs) -> bonsai.Dataset:
    """Bin the rows."""
    return bonsai.Dataset(X, y, max_bin=translate("bonsai", asked)["max_bin"], n_threads=asked.n_threads)


def train(data: bonsai.Dataset, asked: Knobs) -> Any:
    """Fit on binned rows; `max_bin` is fixed by the data set and refused here."""
    parameters = {name: value for name, value in translate("bonsai", asked).items() if name != "max_bin"}
    return bonsai.train(parameters, data)


def predict(model: Any, X: np.ndarray, asked: Knobs) -> np.ndarray:
    """Response from raw rows."""
    return model.predict(X)


def read_back(model: Any, data: bonsai.Dataset) -> dict[str, Any]:
    """Our knobs as the model's own configuration and text dump show them.

    The configuration names the default `max_bin` whatever the data set was binned with, so bins are counted instead.
    """
    trained = tomllib.loads(model.config_toml)
    trees = model.dump().split("tree ")[1:]
    growth = trained["dispatch"]["grower_name"]
    shape = _levelwise_shape if growth == "levelwise" else _shape
    shapes = [shape(tree) for tree in trees]
    return {
        "device": data.device,
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
    }


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
