import pytest

from ladders.contenders import CONTENDERS
from ladders.contenders.knobs import FOOTING, TABLE, Knobs, misplaced, not_honoured, translate


def test_the_table_is_complete():
    assert set(TABLE) == set(Knobs.model_fields)
    libraries = {contender.module.rpartition(".")[2] for contender in CONTENDERS.values()}
    assert set(FOOTING) == libraries
    assert all(set(rules) == libraries for rules in TABLE.values())


@pytest.mark.parametrize("library", FOOTING)
def test_no_two_rules_write_one_parameter(library):
    names = [rules[library][0] for rules in TABLE.values() if rules[library]] + list(FOOTING[library])
    assert len(names) == len(set(names))


def test_bins_are_counted_by_bins_or_by_the_borders_between_them(knobs):
    assert translate("catboost", knobs(growth="levelwise", max_bin=255))["border_count"] == 254
    assert translate("xgboost", knobs(max_bin=255))["max_bin"] == 255


def test_no_limit_in_each_library_own_words(knobs):
    leafwise = knobs(growth="leafwise", max_depth=0, max_leaves=255)
    assert translate("lightgbm", leafwise)["max_depth"] == -1
    assert translate("lightgbm", leafwise)["num_leaves"] == 255
    assert translate("xgboost", leafwise)["max_depth"] == 0
    assert translate("bonsai", leafwise)["tree.max_depth"] == 254
    assert translate("bonsai", knobs(max_depth=8))["tree.max_leaves"] == 256


FOUND = {
    "objective": "squared_error",
    "growth": "depthwise",
    "n_estimators": 5,
    "learning_rate": 0.10000000149,
    "max_depth": 3,
    "max_leaves": 8,
    "max_bin": 255,
    "min_child_weight": 1.0,
    "min_samples_leaf": None,
    "reg_lambda": 1.0,
    "n_threads": 1,
    "patience": 0,
}


def test_an_honest_model_passes_and_budgets_may_stay_unused(knobs):
    assert not_honoured(knobs(), FOUND) is None
    assert not_honoured(knobs(), {**FOUND, "max_depth": 1, "max_leaves": 2, "max_bin": 10}) is None
    assert not_honoured(knobs(), {}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_depth", 4),
        ("max_bin", 256),
        ("n_estimators", 4),
        ("learning_rate", 0.05),
        ("reg_lambda", 0.0),
        ("min_child_weight", 0.001),
        ("min_samples_leaf", 20),
        ("n_threads", 2),
        ("n_estimators", 6),
        ("patience", 10),
        ("growth", "leafwise"),
        ("objective", "logistic"),
    ],
)
def test_each_broken_knob_is_named(knobs, name, value):
    told = not_honoured(knobs(), {**FOUND, name: value})
    assert name in told
    assert f"found {value}" in told


def test_a_fit_that_may_stop_early_may_have_fewer_trees_and_never_more(knobs):
    asked, found = knobs(patience=2), {**FOUND, "patience": 2}
    assert not_honoured(asked, {**found, "n_estimators": 3}) is None
    assert not_honoured(asked, {**found, "n_estimators": 6}) == "knobs not honoured: n_estimators asked 5, found 6"


def test_a_model_of_another_device_is_no_figure(knobs):
    assert misplaced(knobs(), {"device": "cpu"}) is None
    assert misplaced(knobs(device="gpu"), {"device": "cuda"}) is None
    for asked, found in (("gpu", "cpu"), ("cpu", "cuda"), ("gpu", "cuda by depthwise"), ("gpu", None)):
        assert str(found) in misplaced(knobs(device=asked), {"device": found})


def test_bonsai_has_growers_of_its_own_for_a_gpu(knobs):
    assert translate("bonsai", knobs(device="gpu"))["dispatch.grower_name"] == "cuda_depthwise"
    assert translate("bonsai", knobs())["dispatch.grower_name"] == "depthwise"


def test_more_leaves_than_asked(knobs):
    assert "max_leaves" in not_honoured(knobs(max_leaves=7), FOUND)
