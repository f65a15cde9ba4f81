"""The engine of this project, all three growths. May import engine, knobs and shape."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import engine
from engine.profile import COUNTED
from ladders.contenders.knobs import Knobs, translate
from ladders.contenders.shape import tree_depth


def ingest(X: np.ndarray, y: np.ndarray, asked: Knobs, like: engine.Dataset | None = None) -> engine.Dataset:
    """Find the cuts, or take those of `like`, and bin the rows now, not lazily in `train`."""
    cuts = {"max_bin": asked.max_bin} if like is None else {"cuts_from": like}
    return engine.Dataset(X, y, **cuts).ingest(translate("engine", asked)["device"])


def train(data: engine.Dataset, asked: Knobs, watched: engine.Dataset | None = None) -> engine.Model:
    """Fit on binned rows, looking at `watched` after every tree."""
    return engine.train(translate("engine", asked), data, eval_set=watched)


def predict(model: engine.Model, X: np.ndarray | engine.Dataset, asked: Knobs) -> np.ndarray:
    """Response from raw rows or a data set."""
    return model.predict(X, n_threads=asked.n_threads)


def to_predict(X: np.ndarray, asked: Knobs, data: engine.Dataset) -> engine.Dataset:
    """Rows to predict, binned with the cuts of the training data."""
    return engine.Dataset(X, cuts_from=data).ingest("cpu")


def read_back(model: engine.Model, data: engine.Dataset) -> dict[str, Any]:
    """Our knobs as the trees and cuts show them, the rest as the model's parameters do."""
    trees = [model.forest.tree(index) for index in range(len(model.forest))]
    trained = model.params
    return {
        "device": trained.device,
        "objective": trained.objective,
        "growth": trained.grower,
        "n_estimators": len(trees),
        "learning_rate": trained.learning_rate,
        "max_depth": max(tree_depth(tree.left.tolist(), tree.right.tolist()) for tree in trees),
        "max_leaves": max(int(tree.leaf.sum()) for tree in trees),
        "max_bin": int(data.cuts.value_bins.max()),
        "min_child_weight": trained.min_child_weight,
        "min_samples_leaf": trained.min_samples_leaf,
        "reg_lambda": trained.reg_lambda,
        "n_threads": trained.n_threads,
        "patience": trained.early_stopping_rounds,
    }


def evidence(model: engine.Model) -> dict[str, Any]:
    """What regressions are told by, in the fields of `results.schema.Row`: phases in seconds, model digest, counts.

    Nothing crosses a bus on a CPU, so there nothing is counted.
    """
    phases = model.profile["phases"]
    on_cpu = model.profile["device"] == "cpu"
    return {
        "phases": {name: phase["seconds"] for name, phase in phases.items()},
        "rounds": max([len(model.forest), *map(len, model.history.values())]),
        "best_round": len(model.forest),
        "model_digest": hashlib.sha256(model.to_bytes()).hexdigest(),
        **({} if on_cpu else {count: sum(phase[count] for phase in phases.values()) for count in COUNTED}),
    }
