"""What a fit minimises, as the host sees it: labels, base margin, metric. May import numerics and metrics.

Gradients and responses are not here: they belong to the backends and to prediction (contract §5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine import metrics, numerics
from engine.errors import DataError, ParamError

Metric = Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]


@dataclass(frozen=True)
class Objective:
    """One objective's host-side rules.

    Attributes
    ----------
    name : str
    link : callable
        Response scale to margin scale for one float.
    label_range : (float, float)
        Closed range of valid labels.
    metric_name, metric
        What early stopping watches; smaller is better.
    """

    name: str
    link: Callable[[float], float]
    label_range: tuple[float, float]
    metric_name: str
    metric: Metric

    def check_label(self, label: np.ndarray) -> None:
        """Refuse labels that the objective cannot have.

        Raises
        ------
        DataError
            Names the first bad row, its value and the range.
        """
        low, high = self.label_range
        bad = np.flatnonzero((label < low) | (label > high))
        if bad.size:
            limit = f">= {low:g}" if np.isinf(high) else f"in [{low:g}, {high:g}]"
            raise DataError(
                f"label {label[bad[0]]:g} at row {bad[0]} is out of range: '{self.name}' needs labels {limit} "
                f"({bad.size} of {label.size} rows are not)"
            )

    def base_margin(self, label: np.ndarray, weight: np.ndarray | None, base_score: float | None) -> np.float32:
        """The margin every row starts from: the link of `base_score`, else of the labels' exact weighted mean."""
        score = float(numerics.exact_mean(label.astype(np.float64), weight)) if base_score is None else base_score
        return np.float32(numerics.saturate(np.float64(self.link(score))))


def get_objective(name: str) -> Objective:
    """The objective of that name; `ParamError` lists the known ones."""
    if name not in OBJECTIVES:
        raise ParamError(f"objective={name!r} is unknown; choose one of {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]


def _log_odds(probability: float) -> float:
    q = min(max(probability, 1e-6), 1.0 - 1e-6)
    return float(numerics.log(np.float64(q / (1.0 - q))))


def _log_mean(mean: float) -> float:
    return float(numerics.log(np.float64(max(mean, 1e-6))))


OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective("squared_error", float, (-np.inf, np.inf), "rmse", metrics.rmse),
        Objective("logistic", _log_odds, (0.0, 1.0), "logloss", metrics.logloss),
        Objective("poisson", _log_mean, (0.0, np.inf), "poisson_deviance", metrics.poisson_deviance),
    )
}
