"""One model, bit for bit, whoever trains it: the NumPy oracle, the native backend at any number of threads, kernels.

Nothing here has a tolerance. Where bits differ, docs/contract.md says which side is wrong.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import engine
from engine import _native
from engine.backends import open_backend
from engine.backends.native import NativeBackend
from engine.backends.reference import MISSING
from engine.growers import GROWERS
from engine.objectives import OBJECTIVES, get_objective
from tests.engine.growing import assert_same, grow, instruction_sets

NAN = float("nan")
THREADS = (1, 2, 3, 8)
HISTOGRAM_BYTES = (0, 20_000, 2**30)
"""None is kept, some are, all are."""

identity = settings(max_examples=60)


@dataclass(frozen=True)
class Problem:
    """All that decides a model."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None
    max_bin: int
    params: dict[str, Any]
    evaluated_rows: int = 0

    def datasets(self) -> tuple[engine.Dataset, engine.Dataset | None]:
        train = engine.Dataset(self.X, self.y, weight=self.weight, max_bin=self.max_bin)
        if not self.evaluated_rows:
            return train, None
        rows = slice(-self.evaluated_rows, None)
        return train, engine.Dataset(self.X[rows], self.y[rows][::-1], cuts_from=train)


def fit(problem: Problem, device: str, n_threads: int = 0) -> engine.Model:
    train, evaluated = problem.datasets()
    return engine.train(problem.params | {"device": device, "n_threads": n_threads}, train, eval_set=evaluated)


def assert_one_model(problem: Problem) -> engine.Model:
    oracle = fit(problem, "reference")
    for n_threads in THREADS:
        native = fit(problem, "cpu", n_threads)
        for name, expected in oracle.forest.arrays().items():  # says where; the bytes below say whether
            np.testing.assert_array_equal(
                getattr(native.forest, name), expected, err_msg=f"{name}, {n_threads} threads"
            )
        assert native.to_bytes() == oracle.to_bytes(), f"{n_threads} threads"
        assert native.history == oracle.history, f"{n_threads} threads"
    return oracle


# ---- what to train on --------------------------------------------------------------------------------------------

COLUMNS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "ties": lambda rng, n: rng.integers(0, 4, n).astype(float),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "constant": lambda rng, n: np.full(n, 7.0),
    "signed zeros": lambda rng, n: rng.choice([-0.0, 0.0, 1.0], n),
    "holes": lambda rng, n: np.where(rng.random(n) < 0.3, NAN, rng.normal(size=n)),
    "holes and ties": lambda rng, n: rng.choice([NAN, 0.0, 1.0], n),
    "all missing": lambda rng, n: np.full(n, NAN),
    "one value or missing": lambda rng, n: rng.choice([NAN, -2.5], n),
    "one heavy value": lambda rng, n: np.where(rng.random(n) < 0.8, 0.5, rng.normal(size=n)),
    "all magnitudes": lambda rng, n: rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-37, 37, n),
    "denormals": lambda rng, n: rng.integers(-5, 6, n) * 1e-45,
    "dates": lambda rng, n: 16777216.0 + rng.integers(0, 2 * n + 1, n),
}
LAYOUTS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "columns first": lambda X: np.asfortranarray(X),
    "float32, columns first": lambda X: np.asfortranarray(X.astype(np.float32)),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "integers": lambda X: np.nan_to_num(X).clip(-(2.0**40), 2.0**40).astype(np.int64),
}
LABELS = {
    "squared_error": {
        "noisy": lambda rng, signal: signal + rng.normal(size=len(signal)),
        "tied": lambda rng, signal: np.round(signal),
        "constant": lambda rng, signal: np.full(len(signal), 3.25),
        "huge": lambda rng, signal: 3e38 * np.sign(signal),
        "tiny": lambda rng, signal: 1e-44 * np.round(signal),
        "one outlier": lambda rng, signal: signal + 1e30 * (np.arange(len(signal)) == 0),
    },
    "logistic": {
        "classes": lambda rng, signal: (signal + rng.normal(size=len(signal)) > 0).astype(float),
        "one class": lambda rng, signal: np.ones(len(signal)),
        "probabilities": lambda rng, signal: rng.random(len(signal)),
    },
    "poisson": {
        "counts": lambda rng, signal: rng.poisson(np.exp(signal.clip(-3, 3))).astype(float),
        "zeros": lambda rng, signal: np.zeros(len(signal)),
        "huge": lambda rng, signal: 1e30 * rng.random(len(signal)),
    },
}
WEIGHTS = {
    "none": lambda rng, n: None,
    "ones": lambda rng, n: np.ones(n),
    "even": lambda rng, n: rng.uniform(0.5, 2.0, n),
    "repetitions": lambda rng, n: rng.integers(1, 8, n),
    "whole, but one too many": lambda rng, n: np.append(rng.integers(1, 8, n - 1), 8),
    "some zero": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "all magnitudes": lambda rng, n: 10.0 ** rng.uniform(-30, 30, n),
    "tiny": lambda rng, n: rng.integers(1, 4, n) * 1e-44,
}


def mostly(usual: Any, *others: Any) -> st.SearchStrategy:
    """The usual one half the time: a problem odd in every respect at once grows no tree."""
    return st.sampled_from([usual] * max(1, len(others)) + list(others))


def some(draw, table: dict[str, Any]) -> Any:
    return table[draw(mostly(*table))]


@st.composite
def problems(draw, growers=tuple(GROWERS), max_rows=400) -> Problem:
    n = draw(mostly(max_rows, 1, 2, 3, 10, 33, max_rows // 3))
    kinds = draw(st.lists(mostly(*COLUMNS), min_size=1, max_size=5))
    objective = draw(st.sampled_from(list(OBJECTIVES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds])
    if draw(st.booleans()):
        X = np.column_stack([X, X[:, -1]])  # a duplicate ties with its twin on every gain
    X = some(draw, LAYOUTS)(X)
    signal = np.clip(np.nan_to_num(X.astype(float)), -2, 2).sum(axis=1)
    weight = some(draw, WEIGHTS)(rng, n)
    assume(weight is None or weight.any())
    params = draw(parameters(growers))
    evaluated_rows = draw(mostly(0, (n + 1) // 2))
    if evaluated_rows:
        params |= {"early_stopping_rounds": draw(st.integers(0, 2))}
    y = some(draw, LABELS[objective])(rng, signal)
    max_bin = draw(mostly(255, 2, 3, 16, 256, 300, 65535))
    return Problem(X, y, weight, max_bin, params | {"objective": objective}, evaluated_rows)


@st.composite
def parameters(draw, growers) -> dict[str, Any]:
    return {
        "grower": draw(st.sampled_from(growers)),
        "n_estimators": draw(st.integers(1, 4)),
        "learning_rate": draw(st.sampled_from([1.0, 0.3, 0.1])),
        "max_depth": draw(st.sampled_from([0, 1, 2, 4, 7])),
        "max_leaves": draw(mostly(0, 1, 2, 3, 5, 8, 31)),
        "min_samples_leaf": draw(mostly(1, 2, 10)),
        "min_child_weight": draw(mostly(0.0, 1.0, 1e-3, 5.0)),
        "reg_lambda": draw(mostly(1.0, 0.0, 0.37, 100.0)),
        "reg_alpha": draw(mostly(0.0, 0.5, 10.0)),
        "gamma": draw(mostly(0.0, 0.1, 2.0)),
        "base_score": draw(mostly(None, 0.25)),
    }


# ---- the same bits -----------------------------------------------------------------------------------------------


@identity
@given(problems())
def test_every_device_and_thread_count_gives_the_same_bytes(problem):
    assert_one_model(problem)


@identity
@given(problems())
def test_both_find_the_same_cuts_and_bins(problem):
    train, _ = problem.datasets()
    oracle = open_backend("reference").ingest(train)
    for feature, expected in enumerate(oracle.cuts):
        assert train.cuts.of(feature).tobytes() == expected.tobytes(), f"feature {feature}"
    expected = np.where(oracle.bins == MISSING, train.cuts.value_bins[:, None], oracle.bins).T
    plane = train.plane("cpu")
    np.testing.assert_array_equal(_native.row_bins(plane), expected)
    np.testing.assert_array_equal(_native.column_bins(plane), expected)


@identity
@given(problems(), st.sampled_from(THREADS), st.sampled_from(instruction_sets()), st.sampled_from(HISTOGRAM_BYTES))
def test_neither_vector_code_nor_kept_histograms_change_a_bit(problem, n_threads, instruction_set, histogram_bytes):
    train, _ = problem.datasets()
    native = NativeBackend(n_threads, histogram_bytes=histogram_bytes, instruction_set=instruction_set)
    assert_same(grow(native, train, problem.params), grow(open_backend("reference"), train, problem.params))


@identity
@given(problems(max_rows=200), st.integers(0, 2**32))
def test_the_kernels_give_the_same_bytes_in_any_schedule(problem, seed):
    native = fit(problem, "cpu")
    with mock.patch.dict(os.environ, DYNO_SCHEDULE_SEED=str(seed)):
        emulated = fit(problem, "emulated")
    assert emulated.to_bytes() == native.to_bytes()
    assert emulated.history == native.history


@identity
@given(problems(max_rows=100))
def test_prediction_from_raw_values_meets_the_margins_that_training_kept(problem):
    problem = replace(problem, evaluated_rows=len(problem.y), params=problem.params | {"early_stopping_rounds": 0})
    train, evaluated = problem.datasets()
    model = engine.train(problem.params | {"device": "reference"}, train, eval_set=evaluated)
    objective = get_objective(problem.params["objective"])
    (history,) = model.history.values()
    margin = model.predict(problem.X, output="margin")
    assert objective.metric(margin, evaluated.label, evaluated.weight) == history[-1]


# ---- rules that hold between fits ----------------------------------------------------------------------------------


@identity
@given(problems(), st.integers(1, 5))
def test_leafwise_with_room_for_every_leaf_is_depthwise(problem, depth):
    def forest(grower: str, device: str, max_leaves: int):
        limits = {"grower": grower, "max_depth": depth, "max_leaves": max_leaves}
        return fit(replace(problem, params=problem.params | limits), device).forest.arrays()

    for device in ("reference", "cpu"):
        by_level = forest("depthwise", device, 0)
        for full_budget in (0, 2**depth):
            by_leaf = forest("leafwise", device, full_budget)
            assert {name: a.tobytes() for name, a in by_leaf.items()} == {
                name: a.tobytes() for name, a in by_level.items()
            }


@identity
@given(problems(max_rows=100), st.integers(1, 3), st.integers(0, 2**32))
def test_rows_of_weight_zero_influence_nothing(problem, share, seed):
    rng = np.random.default_rng(seed)
    weight = np.ones(len(problem.y)) if problem.weight is None else problem.weight
    kept = rng.integers(0, share + 1, len(weight)) > 0
    assume((weight[kept] > 0).any())
    muted = replace(problem, weight=np.where(kept, weight, 0.0), evaluated_rows=0)
    without = replace(muted, X=problem.X[kept], y=problem.y[kept], weight=weight[kept])
    for device in ("reference", "cpu"):
        params = problem.params | {"early_stopping_rounds": 0}
        one, other = (fit(replace(p, params=params), device).to_bytes() for p in (muted, without))
        assert one == other


# ---- larger, fixed -------------------------------------------------------------------------------------------------


def large_problem(n_rows: int, n_features: int, objective: str, **params: Any) -> Problem:
    rng = np.random.default_rng(n_rows + n_features)
    kinds = [list(COLUMNS.values())[i % len(COLUMNS)] for i in range(n_features)]
    X = np.column_stack([column(rng, n_rows) for column in kinds])
    signal = np.clip(np.nan_to_num(X), -1, 1).sum(axis=1)
    y = next(iter(LABELS[objective].values()))(rng, signal)
    return Problem(X, y, None, 255, {"objective": objective, "n_estimators": 3} | params)


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
@pytest.mark.parametrize("grower", GROWERS)
def test_two_thousand_rows(grower, objective):
    problem = large_problem(2000, 17, objective, grower=grower)
    model = assert_one_model(problem)
    assert len(model.forest.feature) > 30  # the case is not a trivial one


@pytest.mark.parametrize("grower", GROWERS)
def test_two_thousand_rows_in_sixteen_bit_bins(grower):
    problem = replace(large_problem(2000, 4, "squared_error", grower=grower), max_bin=1000)
    train, _ = problem.datasets()
    assert train.cuts.wide
    assert_one_model(replace(problem, weight=np.linspace(0.0, 3.0, 2000)))


@pytest.mark.parametrize("weighted", [False, True])
def test_past_the_quantile_sample(weighted):
    n_rows = 2**18 + 12_345
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=n_rows), rng.choice([NAN, 1.0, 2.0], n_rows)]).astype(np.float32)
    y = X[:, 0] * np.nan_to_num(X[:, 1]) + rng.normal(size=n_rows)
    weight = rng.integers(0, 4, n_rows).astype(np.float32) if weighted else None
    assert_one_model(Problem(X, y, weight, 64, {"n_estimators": 1, "max_depth": 3}))


# ---- rows enough that chunks, partial histograms and threads meet ----------------------------------------------------

FORTY_THOUSAND = {
    "plain": {},
    "min_samples_leaf, so rows are counted": {"params": {"min_samples_leaf": 20}},
    "weights": {"weight": lambda rng, n: rng.uniform(0.0, 2.0, n)},
    "frequencies": {"weight": lambda rng, n: rng.integers(0, 8, n)},
    "sixteen-bit bins": {"max_bin": 400},
}


@pytest.mark.parametrize("objective", sorted(OBJECTIVES))
@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("case", FORTY_THOUSAND)
def test_forty_thousand_rows_at_any_threads_vectors_and_budget(case, grower, objective):
    problem = large_problem(40_000, 9, objective, grower=grower, max_depth=5, n_estimators=2)
    settings = dict(FORTY_THOUSAND[case])
    make_weight = settings.pop("weight", lambda rng, n: None)
    params = problem.params | settings.pop("params", {})
    weight = make_weight(np.random.default_rng(7), len(problem.y))
    train, _ = replace(problem, weight=weight, **settings).datasets()
    assert train.cuts.wide == (case == "sixteen-bit bins")
    expected = grow(open_backend("reference"), train, params)
    assert min(map(len, expected)) > 20
    for n_threads, instruction_set, histogram_bytes in product(THREADS, instruction_sets(), (100_000, 2**30)):
        native = NativeBackend(n_threads, histogram_bytes=histogram_bytes, instruction_set=instruction_set)
        assert_same(grow(native, train, params), expected, f"{n_threads} threads, {instruction_set}, {histogram_bytes}")
