"""The training parameters: names, ranges, defaults, and what a wrong one is told. May import errors only."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from engine.errors import ParamError

Finite = Annotated[float, Field(allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]

OWN_LIMITS = {"depthwise": (6, 0), "leafwise": (0, 31), "levelwise": (6, 0)}
"""(max_depth, max_leaves) a grower takes when the caller names neither; 0 is no limit."""

NOT_IN_MODEL = ("device", "n_threads")
"""Parameters that say where a model was trained, not what it is: they never reach a model file."""


class Params(BaseModel):
    """Validated parameters of one fit; immutable.

    Attributes
    ----------
    objective : {"squared_error", "logistic", "poisson"}
    grower : {"depthwise", "leafwise", "levelwise"}
        Level by level; best leaf first; or one split for a whole level.
    device : {"reference", "cpu", "emulated", "cuda"}
        Where it trains. Never changes a bit of the model, never falls back.
    n_estimators : int >= 1
        Trees at most.
    learning_rate : float in (0, 1]
    max_depth, max_leaves : int >= 0
        0 is no limit. Left unset both, the grower's own limits (`OWN_LIMITS`) hold.
    max_bin : int in [2, 65535]
        Value bins a feature at most; missing values have one more.
    min_samples_leaf : int >= 1
    min_child_weight, reg_lambda, reg_alpha, gamma : float >= 0
        Least hessian of a child; L2; L1; gain that a split must exceed.
    base_score : float, optional
        Starting prediction on the response scale; the labels' mean if not given.
    early_stopping_rounds : int >= 0
        Stop when the first eval set has not improved for so many rounds; 0 never stops.
    random_state : int in [0, 2^63)
        Seed of the counter hash.
    n_threads : int >= 0
        0 is as many as this process may use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    objective: Literal["squared_error", "logistic", "poisson"] = "squared_error"
    grower: Literal["depthwise", "leafwise", "levelwise"] = "depthwise"
    device: Literal["reference", "cpu", "emulated", "cuda"] = "cpu"
    n_estimators: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    learning_rate: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 0.1
    max_depth: Count | None = None
    max_leaves: Count | None = None
    max_bin: Annotated[int, Field(ge=2, le=65535)] = 255
    min_samples_leaf: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1
    min_child_weight: NonNegative = 1.0
    reg_lambda: NonNegative = 1.0
    reg_alpha: NonNegative = 0.0
    gamma: NonNegative = 0.0
    base_score: Finite | None = None
    early_stopping_rounds: Count = 0
    random_state: Annotated[int, Field(ge=0, lt=2**63)] = 0
    n_threads: Annotated[int, Field(ge=0, le=4096)] = 0

    @model_validator(mode="before")
    @classmethod
    def _own_limits(cls, given: Any) -> Any:
        """Fill both limits from the grower when neither was named, so that they never contradict a caller."""
        if isinstance(given, dict):
            depth, leaves = given.get("max_depth"), given.get("max_leaves")
            own = OWN_LIMITS.get(given.get("grower", "depthwise"), (0, 0)) if depth is leaves is None else (0, 0)
            given = {
                **given,
                "max_depth": own[0] if depth is None else depth,
                "max_leaves": own[1] if leaves is None else leaves,
            }
        return given

    @model_validator(mode="after")
    def _base_score_fits(self) -> Params:
        score = self.base_score
        if score is not None and self.objective == "logistic" and not 0 < score < 1:
            raise ValueError(
                f"base_score {score} is a probability for 'logistic': it must lie strictly between 0 and 1"
            )
        if score is not None and self.objective == "poisson" and not score > 0:
            raise ValueError(f"base_score {score} is a mean count for 'poisson': it must be > 0")
        return self

    def identity(self) -> dict[str, Any]:
        """The parameters that belong to the model, as plain JSON values."""
        return self.model_dump(exclude=set(NOT_IN_MODEL))


def parse_params(given: Params | dict[str, Any] | None = None, **more: Any) -> Params:
    """Validate parameters.

    Raises
    ------
    ParamError
        Names every bad parameter, its value, what is allowed and, for an unknown name, the nearest known one.
    """
    if isinstance(given, Params) and not more:
        return given
    values = {**(given.model_dump() if isinstance(given, Params) else given or {}), **more}
    try:
        return Params.model_validate(values)
    except ValidationError as error:
        raise ParamError("; ".join(_explain(item) for item in error.errors())) from None


def _explain(item: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        near = get_close_matches(name, Params.model_fields, n=1, cutoff=0.5)
        return f"unknown parameter '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")
    if not name:
        return item["msg"].removeprefix("Value error, ")
    return f"{name}={item['input']!r}: {item['msg'][0].lower()}{item['msg'][1:]}"
