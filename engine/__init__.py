"""The gradient-boosted-tree engine. Every public name loads on first use, so ``import engine`` costs nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.callbacks import Progress, ProgressBar
    from engine.dataset import Dataset
    from engine.device.cuda import cuda_available
    from engine.errors import (
        DataError,
        DeviceMemoryError,
        DeviceUnavailableError,
        EngineError,
        ModelError,
        ParamError,
        SessionError,
    )
    from engine.estimators import GBTClassifier, GBTRegressor
    from engine.memory import MemoryEstimate, estimate_memory
    from engine.model import Model
    from engine.params import Params
    from engine.session import Session, State, train

_HOME = {
    "callbacks": ("Progress", "ProgressBar"),
    "dataset": ("Dataset",),
    "device.cuda": ("cuda_available",),
    "errors": (
        "DataError",
        "DeviceMemoryError",
        "DeviceUnavailableError",
        "EngineError",
        "ModelError",
        "ParamError",
        "SessionError",
    ),
    "estimators": ("GBTClassifier", "GBTRegressor"),
    "memory": ("MemoryEstimate", "estimate_memory"),
    "model": ("Model",),
    "params": ("Params",),
    "session": ("Session", "State", "train"),
}

__all__ = [
    "DataError",
    "Dataset",
    "DeviceMemoryError",
    "DeviceUnavailableError",
    "EngineError",
    "GBTClassifier",
    "GBTRegressor",
    "MemoryEstimate",
    "Model",
    "ModelError",
    "ParamError",
    "Params",
    "Progress",
    "ProgressBar",
    "Session",
    "SessionError",
    "State",
    "cuda_available",
    "estimate_memory",
    "train",
]


def __getattr__(name: str) -> object:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"engine.{module}"), name)
    raise AttributeError(f"module 'engine' has no attribute '{name}'")


def __dir__() -> list[str]:
    return __all__
