"""The engine of this project, all three growths. May import engine, knobs and shape."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import engine
from engine.profile import COUNTED
from ladders.contenders.knobs import Knobs, translate
from ladders.contenders.shape import tree_depth


def ingest(X: np.ndarray, y: np.ndarray, asked: Knobs, device: str = "cpu") -> engine.Dataset:
    """Find the cuts and bin the rows now, not lazily in `train`."""
    return engine.Dataset(X, y, max_bin=asked.max_bin).ingest(device)


def train(data: engine.Dataset, asked: Knobs, device: str = "cpu") -> engine.Model:
    """Fit on binned rows."""
    return engine.train({**translate("engine", asked), "device": device}, data)


def predict(model: engine.Model, X: np.ndarray, asked: Knobs) -> np.ndarray:
    """Response from raw rows."""
    return model.predict(X, n_threads=asked.n_threads)


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
    }


def evidence(model: engine.Model) -> dict[str, Any]:
    """What regressions are told by, in the fields of `results.schema.Row`: seconds by phase, digest of the model, counts.

    Nothing crosses a bus on a CPU, so there nothing is counted.
    """
    phases = model.profile["phases"]
    on_cpu = model.profile["device"] == "cpu"
    return {
        "phases": {name: phase["seconds"] for name, phase in phases.items()},
        "model_digest": hashlib.sha256(model.to_bytes()).hexdigest(),
        **({} if on_cpu else {count: sum(phase[count] for phase in phases.values()) for count in COUNTED}),
    }
