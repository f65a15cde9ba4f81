"""The one table that translates our knobs into each library's, and the check of what came back. Imports pydantic.

Equal footing is decided here and nowhere else. Where a library has no such knob the table says `None`; where equal
footing needs a setting that is not one of our knobs, it stands in `FOOTING` with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

Objective = Literal["squared_error", "logistic", "poisson"]


class Knobs(BaseModel):
    """What one fit is asked for, in our own names (see `engine.Params`); 0 is no limit for depth and leaves.

    `patience` is `early_stopping_rounds`: 0 never stops. `device` is where, in a scenario's words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    objective: Objective
    growth: Literal["depthwise", "leafwise", "levelwise"]
    n_estimators: int
    learning_rate: float
    max_depth: int
    max_leaves: int
    max_bin: int
    min_child_weight: float
    min_samples_leaf: int
    reg_lambda: float
    random_state: int
    n_threads: int
    patience: int = 0
    device: Literal["cpu", "gpu"] = "cpu"


Rule = tuple[str, Callable[[Any, Knobs], Any]] | None
"""A library's own name, and its value from ours; None where the library has no such knob."""


def _same(value: Any, knobs: Knobs) -> Any:
    return value


def _one_of(**values: str) -> Callable[[Any, Knobs], Any]:
    return lambda value, knobs: values[value]


def _leaves_or_full_depth(value: int, knobs: Knobs) -> int:
    """These two take a leaf budget always: no limit is as many as the depth allows."""
    return value or 2**knobs.max_depth


def _or_none(value: int, knobs: Knobs) -> int | None:
    """These two say None, not 0, for a fit that never stops early."""
    return value or None


def _bonsai_grower(value: str, knobs: Knobs) -> str:
    """bonsai's growers on a GPU are others than those on a CPU."""
    return f"cuda_{value}" if knobs.device == "gpu" else value


def _depth_or_leaf_bound(value: int, knobs: Knobs) -> int:
    """bonsai takes a depth always: a tree of n leaves is at most n - 1 deep."""
    return value or knobs.max_leaves - 1


TABLE: dict[str, dict[str, Rule]] = {
    "objective": {
        "engine": ("objective", _same),
        "xgboost": (
            "objective",
            _one_of(squared_error="reg:squarederror", logistic="binary:logistic", poisson="count:poisson"),
        ),
        "lightgbm": ("objective", _one_of(squared_error="regression", logistic="binary", poisson="poisson")),
        "catboost": ("loss_function", _one_of(squared_error="RMSE", logistic="Logloss", poisson="Poisson")),
        "bonsai": ("dispatch.objective_name", _one_of(squared_error="mse", logistic="logloss", poisson="poisson")),
    },
    "growth": {
        "engine": ("grower", _same),
        "xgboost": ("grow_policy", _one_of(depthwise="depthwise", leafwise="lossguide")),
        "lightgbm": None,  # grows best leaf first, always
        "catboost": ("grow_policy", _one_of(levelwise="SymmetricTree")),
        "bonsai": ("dispatch.grower_name", _bonsai_grower),
    },
    "n_estimators": {
        "engine": ("n_estimators", _same),
        "xgboost": ("num_boost_round", _same),
        "lightgbm": ("num_iterations", _same),
        "catboost": ("iterations", _same),
        "bonsai": ("booster.n_iters", _same),
    },
    "learning_rate": {
        "engine": ("learning_rate", _same),
        "xgboost": ("learning_rate", _same),
        "lightgbm": ("learning_rate", _same),
        "catboost": ("learning_rate", _same),
        "bonsai": ("booster.learning_rate", _same),
    },
    "max_depth": {
        "engine": ("max_depth", _same),
        "xgboost": ("max_depth", _same),
        "lightgbm": ("max_depth", lambda value, knobs: value or -1),
        "catboost": ("depth", _same),
        "bonsai": ("tree.max_depth", _depth_or_leaf_bound),
    },
    "max_leaves": {
        "engine": ("max_leaves", _same),
        "xgboost": ("max_leaves", _same),
        "lightgbm": ("num_leaves", _leaves_or_full_depth),
        "catboost": None,  # a symmetric tree has 2^depth
        "bonsai": ("tree.max_leaves", _leaves_or_full_depth),
    },
    "max_bin": {  # value bins; a missing bin, where there is one, comes on top for us, out of them for LightGBM
        "engine": ("max_bin", _same),
        "xgboost": ("max_bin", _same),
        "lightgbm": ("max_bin", _same),
        "catboost": ("border_count", lambda value, knobs: value - 1),  # counts the borders between bins
        "bonsai": ("max_bin", _same),
    },
    "min_child_weight": {
        "engine": ("min_child_weight", _same),
        "xgboost": ("min_child_weight", _same),
        "lightgbm": ("min_sum_hessian_in_leaf", _same),
        "catboost": None,
        "bonsai": ("tree.min_child_hess", _same),
    },
    "min_samples_leaf": {
        "engine": ("min_samples_leaf", _same),
        "xgboost": None,
        "lightgbm": ("min_data_in_leaf", _same),
        "catboost": None,  # its min_data_in_leaf is for Lossguide and Depthwise only
        "bonsai": ("tree.min_data_in_leaf", _same),
    },
    "reg_lambda": {
        "engine": ("reg_lambda", _same),
        "xgboost": ("reg_lambda", _same),
        "lightgbm": ("lambda_l2", _same),
        "catboost": ("l2_leaf_reg", _same),
        "bonsai": ("tree.lambda_l2", _same),
    },
    "random_state": {
        "engine": ("random_state", _same),
        "xgboost": ("seed", _same),
        "lightgbm": ("seed", _same),
        "catboost": ("random_seed", _same),
        "bonsai": ("booster.random_seed", _same),
    },
    "n_threads": {
        "engine": ("n_threads", _same),
        "xgboost": ("nthread", _same),
        "lightgbm": ("num_threads", _same),
        "catboost": ("thread_count", _same),
        "bonsai": ("parallel.n_threads", _same),
    },
    "patience": {
        "engine": ("early_stopping_rounds", _same),
        "xgboost": ("early_stopping_rounds", _or_none),
        "lightgbm": ("early_stopping_round", _same),
        "catboost": ("early_stopping_rounds", _or_none),
        "bonsai": ("booster.early_stopping_rounds", _same),
    },
    "device": {
        "engine": ("device", _one_of(cpu="cpu", gpu="cuda")),
        "xgboost": ("device", _one_of(cpu="cpu", gpu="cuda")),
        "lightgbm": ("device_type", _one_of(cpu="cpu", gpu="cuda")),  # its "gpu" is OpenCL
        "catboost": ("task_type", _one_of(cpu="CPU", gpu="GPU")),
        "bonsai": ("device", _one_of(cpu="cpu", gpu="cuda")),  # of its data set
    },
}

FOOTING: dict[str, dict[str, Any]] = {
    "engine": {},
    "xgboost": {"tree_method": "hist", "verbosity": 0},
    "lightgbm": {
        "verbosity": -1,
        "min_data_in_bin": 1,  # its default of 3 makes fewer bins than the others get
        "feature_pre_filter": False,  # would drop columns by min_data_in_leaf before training
        # enable_bundle and the choice of row- or column-wise histograms stay its own: they are its speed.
    },
    "catboost": {
        "logging_level": "Silent",
        "allow_writing_files": False,
        "boosting_type": "Plain",  # ordered boosting is another algorithm
        "bootstrap_type": "No",  # every row in every tree, as for all
        "random_strength": 0,  # its default adds noise to the scores
        "score_function": "L2",  # its default is Cosine; the others choose by L2 gain
        "leaf_estimation_method": "Newton",
        "leaf_estimation_iterations": 1,  # one Newton step a leaf, as for all
        "leaf_estimation_backtracking": "No",
        # Off by default for Logloss, where all others start from the mean; it cannot do so for Poisson.
        "boost_from_average": lambda knobs: knobs.objective != "poisson",
    },
    "bonsai": {},
}
"""Fixed settings, or functions of the knobs."""


def translate(library: str, knobs: Knobs) -> dict[str, Any]:
    """The library's own parameters for our knobs, with what equal footing adds.

    Raises
    ------
    KeyError
        If the library does not take this objective or growth.
    """
    return {**footing_of(library, knobs), **dict(filter(None, asked_of(library, knobs).values()))}


def asked_of(library: str, knobs: Knobs) -> dict[str, tuple[str, Any] | None]:
    """For each of our knobs the library's own name and value; None where it has no equivalent.

    Raises
    ------
    KeyError
        If the library does not take this objective or growth.
    """
    rules = {ours: rules[library] for ours, rules in TABLE.items()}
    return {ours: rule and (rule[0], rule[1](getattr(knobs, ours), knobs)) for ours, rule in rules.items()}


def footing_of(library: str, knobs: Knobs) -> dict[str, Any]:
    """What equal footing sets besides."""
    return {name: value(knobs) if callable(value) else value for name, value in FOOTING[library].items()}


def not_honoured(asked: Knobs, found: Mapping[str, JsonValue]) -> str | None:
    """What a trained model did not honour, in words; None if nothing.

    A budget may be left unused: shallower, fewer leaves or fewer bins than asked is fine, more is not; so are fewer
    trees where a fit may stop early. A knob that the model does not show is None in `found` and cannot be judged. The
    device is judged by `misplaced`.
    """
    exact = ("objective", "growth", "reg_lambda", "min_child_weight", "min_samples_leaf", "n_threads", "patience")
    broken = [name for name in exact if found.get(name) not in (None, getattr(asked, name))]
    rate = found.get("learning_rate")
    if rate is not None and abs(rate - asked.learning_rate) > 1e-6 * asked.learning_rate:  # libraries keep a float32
        broken.append("learning_rate")
    if not asked.patience and found.get("n_estimators") not in (None, asked.n_estimators):
        broken.append("n_estimators")
    for name in ("n_estimators", "max_depth", "max_leaves", "max_bin"):
        limit, value = getattr(asked, name), found.get(name)
        if limit and value is not None and value > limit and name not in broken:
            broken.append(name)
    told = (f"{name} asked {getattr(asked, name)}, found {found[name]}" for name in broken)
    return "knobs not honoured: " + ", ".join(told) if broken else None


def misplaced(asked: Knobs, found: Mapping[str, JsonValue]) -> str | None:
    """Why a fit on another device than asked is no figure at all; None if it was made where it should.

    XGBoost without a usable GPU trains on the CPU and says so in a warning only: an earlier harness published 90.6 s
    for what a GPU does in 6.9 s (research/harness.md §1).
    """
    wanted = {"cpu": "cpu", "gpu": "cuda"}[asked.device]
    if found.get("device") == wanted:
        return None
    return f"asked to train on {wanted}, and the model was trained on {found.get('device')}: this is no figure of a fit"
