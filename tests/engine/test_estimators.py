import inspect
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from engine.dataset import Dataset
from engine.errors import DataError, ParamError
from engine.estimators import GBTClassifier, GBTRegressor
from engine.params import Params
from engine.session import train

FEW = {"n_estimators": 8, "max_depth": 3, "n_threads": 1}


ESTIMATORS = (
    GBTRegressor(n_threads=1),
    GBTClassifier(n_threads=1),
    GBTRegressor(n_threads=1, objective="poisson", grower="levelwise"),
    GBTClassifier(n_threads=1, grower="leafwise"),
)
NEEDS_ARRAY_API = "check_array_api_input"


def sklearn_checks():
    """As `parametrize_with_checks`, without the checks that scikit-learn would skip."""
    return [
        pytest.param(estimator, check, id=f"{original}-{check.func.__name__}")
        for original in ESTIMATORS
        for estimator, check in estimator_checks_generator(original)
        if check.func.__name__ != NEEDS_ARRAY_API
    ]


@pytest.mark.parametrize(("estimator", "check"), sklearn_checks())
def test_sklearn_has_no_complaint(estimator, check):
    check(estimator)


def test_sklearn_has_no_complaint_where_scipy_knows_the_array_api():
    # scipy reads the variable when it is imported: without it scikit-learn skips these checks.
    code = f"""
from sklearn.utils.estimator_checks import estimator_checks_generator
from engine.estimators import GBTClassifier, GBTRegressor
for estimator in {ESTIMATORS}:
    for _, check in estimator_checks_generator(estimator):
        if check.func.__name__ == "{NEEDS_ARRAY_API}":
            check(estimator)
            print("checked")
"""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("checked") == len(ESTIMATORS)


def make_data(n_rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n_rows, 3)).astype(np.float32)
    y = X[:, 0] + (X[:, 1] > 0) + 0.1 * rng.normal(size=n_rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def make_classes(n_rows: int = 120) -> tuple[np.ndarray, np.ndarray]:
    X, y = make_data(n_rows)
    return X, np.where(y > 0.5, "late", "in time")


@pytest.mark.parametrize(("estimator", "fixed"), [(GBTRegressor, set()), (GBTClassifier, {"objective"})])
def test_parameters_and_defaults_are_those_of_the_engine(estimator, fixed):
    # Unset limits mean the grower's own, for which `Params` has None too.
    own = {name: field.default for name, field in Params.model_fields.items() if name not in fixed}
    signature = inspect.signature(estimator).parameters
    assert {name: parameter.default for name, parameter in signature.items()} == own
    values = {name: object() for name in own}
    assert estimator(**values).get_params() == values


def test_regressor_is_the_engine_with_another_face():
    X, y = make_data()
    fitted = GBTRegressor(**FEW, max_bin=16).fit(X, y)
    model = train(FEW, Dataset(X, y, max_bin=16))
    assert fitted.model_.to_bytes() == model.to_bytes()
    np.testing.assert_array_equal(fitted.predict(X), model.predict(X))
    assert fitted.best_iteration_ == 7


def test_classifier_speaks_the_labels_it_was_given():
    X, y = make_classes()
    fitted = GBTClassifier(**FEW).fit(X, y)
    assert fitted.classes_.tolist() == ["in time", "late"]
    probability = fitted.predict_proba(X)
    np.testing.assert_array_equal(probability.sum(axis=1), np.ones(len(X)))
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[probability.argmax(axis=1)])
    np.testing.assert_array_equal(fitted.decision_function(X) > 0, fitted.predict(X) == "late")
    assert fitted.score(X, y) > 0.9


@pytest.mark.parametrize("labels", [[False, True], [-1, 1], [0.0, 1.0], ["b", "a"], [7, 2**40]])
def test_any_two_labels_give_the_same_model(labels):
    X, y = make_classes()
    reference = GBTClassifier(**FEW).fit(X, y == "late")
    low, high = sorted(labels)
    fitted = GBTClassifier(**FEW).fit(X, np.where(y == "late", high, low))
    assert fitted.model_.to_bytes() == reference.model_.to_bytes()
    assert fitted.classes_.tolist() == [low, high]


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["a", "b", "c"], "Only binary classification is supported"),
        (["a", "a", "a"], "one class"),
        ([0.5, 1.5, 2.5], "Unknown label type"),
        ([0.0, 1.0, np.nan], "NaN"),
    ],
)
def test_labels_that_are_no_two_classes_are_refused(labels, reason):
    with pytest.raises(ValueError, match=reason):
        GBTClassifier(**FEW).fit(np.zeros((9, 2)), labels * 3)


def test_a_class_of_weight_zero_is_no_class():
    X, y = make_classes()
    y = y.astype("<U9")
    y[:30] = "cancelled"
    weight = np.r_[np.zeros(30), np.ones(len(y) - 30)]
    fitted = GBTClassifier(**FEW).fit(X, y, weight)
    without = GBTClassifier(**FEW).fit(X[30:], y[30:], weight[30:])
    assert fitted.classes_.tolist() == ["in time", "late"]
    assert fitted.model_.to_bytes() == without.model_.to_bytes()
    with pytest.raises(ValueError, match="one class"):
        GBTClassifier(**FEW).fit(X, y, (y == "late").astype(float))


@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "levelwise"])
@pytest.mark.parametrize("make", [make_data, make_classes])
def test_a_small_whole_weight_is_so_many_rows(make, grower):
    X, y = make()
    y = np.round(y * 8) / 8 if make is make_data else y
    weight = np.random.default_rng(1).integers(0, 8, len(y))
    estimator = (GBTRegressor if make is make_data else GBTClassifier)(**FEW, grower=grower)
    weighted = clone(estimator).fit(X, y, weight).model_.predict(X, "margin")
    repeated = clone(estimator).fit(X.repeat(weight, axis=0), y.repeat(weight)).model_.predict(X, "margin")
    np.testing.assert_array_equal(weighted, repeated)


@pytest.mark.parametrize("weighted", [False, True])
def test_early_stopping_keeps_the_best_round(weighted):
    X, y = make_data(300)
    y = y + np.random.default_rng(0).normal(size=300)
    weight = np.linspace(0.0, 2.0, 100)
    eval_set = (X[200:], y[200:], weight) if weighted else (X[200:], y[200:])
    fitted = GBTRegressor(n_estimators=200, learning_rate=0.5, early_stopping_rounds=5, n_threads=1)
    fitted.fit(X[:200], y[:200], eval_set=eval_set)
    residual = (fitted.predict(X[200:]) - y[200:]) ** 2
    (history,) = fitted.model_.history.values()
    assert fitted.best_iteration_ == int(np.argmin(history)) < len(history) - 1
    assert np.sqrt(np.average(residual, weights=weight if weighted else None)) == pytest.approx(min(history), rel=1e-5)


def test_classifier_watches_labels_of_its_own_kind():
    X, y = make_classes()
    fitted = GBTClassifier(**FEW, early_stopping_rounds=3).fit(X, y, eval_set=(X[:20], y[:20].tolist()))
    assert fitted.model_.history
    with pytest.raises(ValueError, match=r"labels \['early'\], the training classes are \['in time', 'late'\]"):
        fitted.fit(X, y, eval_set=(X[:2], ["early", "late"]))


def test_early_stopping_without_an_eval_set_is_refused_with_the_remedy():
    X, y = make_data()
    with pytest.raises(ParamError, match="early_stopping_rounds=5 needs an eval_set"):
        GBTRegressor(early_stopping_rounds=5).fit(X, y)


@pytest.mark.parametrize("eval_set", [[], [(1, 2)], (1,), (1, 2, 3, 4), "Xy"])
def test_an_eval_set_of_another_shape_is_refused(eval_set):
    X, y = make_data()
    with pytest.raises(ParamError, match=r"must be a tuple \(X, y\) or \(X, y, weight\)"):
        GBTRegressor(**FEW).fit(X, y, eval_set=eval_set)


def test_objectives_of_the_regressor():
    X, y = make_data()
    counts = np.floor(np.exp(y))
    fitted = GBTRegressor(**FEW, objective="poisson").fit(X, counts)
    assert (fitted.predict(X) > 0).all()
    with pytest.raises(DataError, match="poisson"):
        GBTRegressor(**FEW, objective="poisson").fit(X, -1 - counts)
    with pytest.raises(ParamError, match="GBTClassifier"):
        GBTRegressor(objective="logistic").fit(X, y)
    with pytest.raises(ParamError, match="hinge"):
        GBTRegressor(objective="hinge").fit(X, y)


@pytest.mark.parametrize("failure", [{"learning_rate": -1}, {"device": "abacus"}, {"early_stopping_rounds": 3}])
def test_a_failed_fit_leaves_the_estimator_as_it_was(failure):
    X, y = make_data()
    fitted = GBTRegressor(**FEW).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    before = fitted.model_
    fitted.set_params(**failure)
    with pytest.raises(ParamError):
        fitted.fit(X[:, :2], y)
    assert fitted.model_ is before
    assert fitted.n_features_in_ == 3
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]

    never = GBTRegressor(**failure)
    with pytest.raises(ParamError):
        never.fit(X, y)
    with pytest.raises(NotFittedError):
        never.predict(X)
    with pytest.raises(NotFittedError):
        _ = never.feature_importances_


TABLES = {
    "pandas": lambda frame: frame,
    "pandas nullable": lambda frame: frame.convert_dtypes(),
    "pandas arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_mixed_types_train_and_predict_alike(kind):
    X, y = make_data()
    frame = pd.DataFrame(
        {
            "day": 20180100 + np.arange(len(y)),
            "late": X[:, 1] > 0,
            "small": np.arange(len(y)).astype(np.int8),
            "delay": X[:, 0],
        }
    )
    expected = GBTRegressor(**FEW).fit(frame.to_numpy(dtype=np.float64), y)
    table = TABLES[kind](frame)
    fitted = GBTRegressor(**FEW).fit(table, y, eval_set=(table, y))
    np.testing.assert_array_equal(fitted.predict(table), expected.predict(frame.to_numpy(dtype=np.float64)))
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    assert fitted.model_.feature_names == tuple(frame.columns)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(TABLES[kind](frame[["late", "day", "small", "delay"]]))


def test_nullable_columns_with_nulls_are_missing_values():
    X, y = make_data()
    frame = pd.DataFrame({"a": X[:, 0], "n": np.where(X[:, 1] > 0, 1.0, np.nan)})
    nullable = frame.astype({"a": "Float64", "n": "Int64"})
    fitted = GBTRegressor(**FEW).fit(nullable, pd.Series(y).astype("Float64"))
    expected = GBTRegressor(**FEW).fit(frame, y)
    assert fitted.model_.to_bytes() == expected.model_.to_bytes()


def test_large_integers_are_not_rounded_on_the_way_in():
    frame = pd.DataFrame({"id": [1, 2, 2**53 + 1], "x": [0.5, 1.5, 2.5]})
    for X in (frame, frame[["id"]].to_numpy()):
        with pytest.raises(DataError, match="9007199254740993"):
            GBTRegressor(**FEW).fit(X, [1.0, 2.0, 3.0])


def test_names_at_one_end_only_are_a_warning():
    X, y = make_data()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named, bare = GBTRegressor(**FEW).fit(frame, y), GBTRegressor(**FEW).fit(X, y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        from_bare = named.predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        from_named = bare.predict(frame)
    np.testing.assert_array_equal(from_bare, from_named)


def test_importances_are_shares_of_the_gain():
    X, y = make_data()
    fitted = GBTRegressor(**FEW).fit(X, y)
    gain = fitted.model_.feature_importance("gain").to_numpy()
    np.testing.assert_allclose(fitted.feature_importances_, gain / gain.sum())
    flat = GBTRegressor(**FEW).fit(np.ones((5, 2)), np.arange(5.0))
    np.testing.assert_array_equal(flat.feature_importances_, [0.0, 0.0])
    np.testing.assert_array_equal(flat.predict(np.ones((2, 2))), [2.0, 2.0])


@pytest.mark.parametrize("make", [make_data, make_classes])
def test_pickle_clone_pipeline_and_search(make):
    X, y = make()
    estimator = (GBTRegressor if make is make_data else GBTClassifier)(**FEW)
    fitted = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.model_.to_bytes() == clone(fitted).fit(X, y).model_.to_bytes()

    pipeline = make_pipeline(StandardScaler(), estimator)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.5
    search = GridSearchCV(estimator, {"max_depth": [1, 3], "learning_rate": np.array([1e-6, 0.3])}, cv=2).fit(X, y)
    assert search.best_params_["learning_rate"] == 0.3
