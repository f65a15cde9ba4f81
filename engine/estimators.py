"""scikit-learn estimators: the engine in pipelines and searches. May import session and below.

A fit is all or nothing: the estimator receives its model when the session has completed. If anything fails before,
every attribute is as it was, and a model fitted earlier still predicts.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags, assert_all_finite, check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d, validate_data

from engine.columns import Columns
from engine.dataset import Dataset
from engine.errors import ParamError
from engine.params import parse_params
from engine.session import train


class GBTEstimator(BaseEstimator):
    """What regressor and classifier share; parameters as in `engine.Params`, validated by `fit`.

    Attributes
    ----------
    model_ : Model
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Only if X had column names that are all text.
    """

    def __init__(
        self,
        *,
        grower: Literal["depthwise", "leafwise", "levelwise"] = "depthwise",
        device: Literal["reference", "cpu", "emulated", "cuda"] = "cpu",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        max_bin: int = 255,
        min_samples_leaf: int = 1,
        min_child_weight: float = 1.0,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        gamma: float = 0.0,
        base_score: float | None = None,
        early_stopping_rounds: int = 0,
        random_state: int = 0,
        n_threads: int = 0,
    ) -> None:
        self.grower = grower
        self.device = device
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.max_bin = max_bin
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.gamma = gamma
        self.base_score = base_score
        self.early_stopping_rounds = early_stopping_rounds
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: tuple | None = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like, DataFrame or Table, shape (n_rows, n_features)
            NaN is missing. Tables are read column by column, each in its own dtype.
        y : array-like, shape (n_rows,)
        sample_weight : array-like, shape (n_rows,), optional
            >= 0; a row of weight 0 is as good as absent.
        eval_set : (X, y) or (X, y, weight), optional
            Watched by early stopping; binned with the training data's cuts.

        Raises
        ------
        ValueError
            Or one of its kind (`DataError`, `ParamError`); the estimator is then as it was before.
        """
        before = vars(self).copy()
        try:
            self._fit(X, y, sample_weight, eval_set)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise
        return self

    @property
    def best_iteration_(self) -> int:
        """Index of the model's last tree: the best round's, if early stopping was on."""
        check_is_fitted(self)
        return self.model_.best_iteration

    @property
    def feature_importances_(self) -> np.ndarray:
        """Each feature's share of the gain of all splits; all 0 for a model without a split."""
        check_is_fitted(self)
        gain = self.model_.feature_importance("gain").to_numpy()
        return gain / (gain.sum() or 1.0)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: tuple | None) -> None:
        params = parse_params({**self.get_params(deep=False), "objective": self._objective()})
        X = self._features(X, reset=True)
        weight = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        label = self._fit_label(y, weight)
        check_consistent_length(X, label)
        data = Dataset(X, label, weight=weight, max_bin=params.max_bin)
        self.model_ = train(params, data, eval_set=self._watched(eval_set, data))

    def _watched(self, eval_set: tuple | None, data: Dataset) -> Dataset | None:
        if eval_set is None:
            return None
        if not isinstance(eval_set, tuple) or len(eval_set) not in (2, 3):
            raise ParamError(f"eval_set must be a tuple (X, y) or (X, y, weight), got {type(eval_set).__name__}")
        X, y, *weight = eval_set
        return Dataset(
            self._features(X, reset=False),
            self._label(y),
            weight=weight[0] if weight else None,
            feature_names=data.feature_names,
            max_bin=data.max_bin,
            cuts_from=data,
        )

    def _features(self, X: Any, *, reset: bool) -> Any:
        """X as `Dataset` takes it, its names and width noted (`reset`) or compared with those of the fit."""
        if hasattr(X, "columns"):
            # Not through scikit-learn's one common dtype, which would round large integers and knows no pyarrow.
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(self, X, reset=reset, dtype="numeric", ensure_all_finite="allow-nan")

    def _predict(self, X: Any, output: str) -> np.ndarray:
        check_is_fitted(self)
        features = self._features(X, reset=False)
        if hasattr(features, "columns"):
            features = Columns.of(features, self.model_.feature_names)  # names are scikit-learn's to judge
        return self.model_.predict(features, output, self.n_threads)


class GBTRegressor(RegressorMixin, GBTEstimator):
    """Gradient-boosted trees for a number (``squared_error``) or a count (``poisson``).

    Parameters
    ----------
    objective : {"squared_error", "poisson"}
    others
        As in `engine.Params`.

    Examples
    --------
    >>> GBTRegressor(n_estimators=200, grower="leafwise").fit(X, y).predict(X)
    """

    def __init__(
        self,
        *,
        objective: Literal["squared_error", "poisson"] = "squared_error",
        grower: Literal["depthwise", "leafwise", "levelwise"] = "depthwise",
        device: Literal["reference", "cpu", "emulated", "cuda"] = "cpu",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = None,
        max_leaves: int | None = None,
        max_bin: int = 255,
        min_samples_leaf: int = 1,
        min_child_weight: float = 1.0,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        gamma: float = 0.0,
        base_score: float | None = None,
        early_stopping_rounds: int = 0,
        random_state: int = 0,
        n_threads: int = 0,
    ) -> None:
        super().__init__(
            grower=grower,
            device=device,
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            max_depth=max_depth,
            max_leaves=max_leaves,
            max_bin=max_bin,
            min_samples_leaf=min_samples_leaf,
            min_child_weight=min_child_weight,
            reg_lambda=reg_lambda,
            reg_alpha=reg_alpha,
            gamma=gamma,
            base_score=base_score,
            early_stopping_rounds=early_stopping_rounds,
            random_state=random_state,
            n_threads=n_threads,
        )
        self.objective = objective

    def predict(self, X: Any) -> np.ndarray:
        """The predicted mean of each row, float64, shape (n_rows,)."""
        return self._predict(X, "response")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.objective == "poisson"
        return tags

    def _objective(self) -> str:
        if self.objective == "logistic":
            raise ParamError("objective='logistic' is for classes: use GBTClassifier")
        return self.objective

    def _label(self, y: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        return check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)

    def _fit_label(self, y: Any, weight: np.ndarray | None) -> np.ndarray:
        return self._label(y)


class GBTClassifier(ClassifierMixin, GBTEstimator):
    """Gradient-boosted trees for two classes (``logistic``); parameters as in `engine.Params`.

    Attributes
    ----------
    classes_ : ndarray, shape (2,)
        The labels of rows of positive weight, sorted; probabilities and margins speak of the second.

    Examples
    --------
    >>> GBTClassifier(n_estimators=200).fit(X, y).predict_proba(X)[:, 1]
    """

    def predict(self, X: Any) -> np.ndarray:
        """The more probable class of each row; the first where both are equal."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(np.intp)]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, float64, shape (n_rows, 2)."""
        second = self._predict(X, "response")
        return np.column_stack([1.0 - second, second])

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class, float32, shape (n_rows,)."""
        return self._predict(X, "margin")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _objective(self) -> str:
        return "logistic"

    def _label(self, y: Any) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        unknown = np.setdiff1d(y, self.classes_)
        if unknown.size:
            raise ValueError(
                f"eval_set has labels {unknown.tolist()}, the training classes are {self.classes_.tolist()}"
            )
        return (y == self.classes_[1]).astype(np.float32)

    def _fit_label(self, y: Any, weight: np.ndarray | None) -> np.ndarray:
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        counted = y if weight is None else y[weight != 0]
        kind = type_of_target(counted, input_name="y", raise_unknown=True)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}.")
        self.classes_ = np.unique(counted)
        if len(self.classes_) != 2:
            raise ValueError(
                f"two classes are needed, the rows of positive weight have one class: {self.classes_.tolist()}"
            )
        return (y == self.classes_[1]).astype(np.float32)
