"""Who takes part: one file a library, listed here without importing any of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """One arm of a ladder.

    Attributes
    ----------
    module : str
        Where `ingest`, `train`, `predict`, `read_back` and, where the library shows more, `evidence` live; imported
        by the worker only.
    growth : {"depthwise", "leafwise", "levelwise"}
        The pair group it is compared in.
    grower : str
        The library's own name for that growth.
    package : str
        What to import, to know whether it is here.
    distributions : tuple of str
        Distributions that may provide the package; the first is what `install` brings.
    install : str
        Shell command that installs it.
    """

    module: str
    growth: str
    grower: str
    package: str
    distributions: tuple[str, ...]
    install: str


def _engine(growth: str) -> Contender:
    return Contender("ladders.contenders.engine", growth, growth, "engine", ("gbt-dyno",), "make setup")


def _xgboost(growth: str, grower: str) -> Contender:
    return Contender(
        "ladders.contenders.xgboost",
        growth,
        grower,
        "xgboost",
        ("xgboost-cpu", "xgboost", "xgboost-cu12"),
        "python -m pip install 'gbt-dyno[peers]'",
    )


def _bonsai(growth: str) -> Contender:
    return Contender(
        "ladders.contenders.bonsai",
        growth,
        growth,
        "bonsai",
        ("bonsai-gbt",),
        "python -m pip install 'gbt-dyno[bonsai]'",
    )


CONTENDERS = {
    "engine-depthwise": _engine("depthwise"),
    "xgboost-depthwise": _xgboost("depthwise", "depthwise"),
    "bonsai-depthwise": _bonsai("depthwise"),
    "engine-leafwise": _engine("leafwise"),
    "lightgbm": Contender(
        "ladders.contenders.lightgbm",
        "leafwise",
        "leaf-wise",
        "lightgbm",
        ("lightgbm",),
        "python -m pip install 'gbt-dyno[peers]'",
    ),
    "xgboost-lossguide": _xgboost("leafwise", "lossguide"),
    "bonsai-leafwise": _bonsai("leafwise"),
    "engine-levelwise": _engine("levelwise"),
    "catboost": Contender(
        "ladders.contenders.catboost",
        "levelwise",
        "SymmetricTree",
        "catboost",
        ("catboost",),
        "python -m pip install 'gbt-dyno[peers]'",
    ),
    "bonsai-levelwise": _bonsai("levelwise"),
}
"""Every contender, in the order of the standings: by growth, ours first."""
