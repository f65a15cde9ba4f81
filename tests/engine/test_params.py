"""Parameters: defaults of the growers, ranges, and what a wrong name is told."""

import pytest

from engine.errors import ParamError
from engine.params import OWN_LIMITS, Params, parse_params


@pytest.mark.parametrize("grower", OWN_LIMITS)
def test_limits_left_unset_are_the_growers_own(grower):
    params = parse_params(grower=grower)
    assert (params.max_depth, params.max_leaves) == OWN_LIMITS[grower]


def test_naming_one_limit_leaves_the_other_unlimited():
    assert parse_params(grower="leafwise", max_depth=4).max_leaves == 0
    assert parse_params(grower="depthwise", max_leaves=9).max_depth == 0


def test_params_are_reparsed_without_change():
    params = parse_params(grower="leafwise", learning_rate=0.3)
    assert parse_params(params) is params
    assert parse_params(params.model_dump()) == params


def test_an_unknown_name_is_told_the_nearest():
    with pytest.raises(ParamError, match="unknown parameter 'max_depht'; did you mean 'max_depth'"):
        parse_params(max_depht=3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", float("nan")),
        ("learning_rate", 0.0),
        ("learning_rate", 1.5),
        ("reg_lambda", -1.0),
        ("reg_lambda", float("inf")),
        ("gamma", -0.1),
        ("max_bin", 1),
        ("max_bin", 70_000),
        ("n_estimators", 0),
        ("n_estimators", 2.5),
        ("min_samples_leaf", 0),
        ("max_depth", -1),
        ("max_depth", "six"),
        ("random_state", -1),
        ("device", "gpu"),
        ("grower", "sideways"),
        ("objective", "hinge"),
        ("base_score", float("inf")),
    ],
)
def test_a_bad_value_is_refused_by_name(name, value):
    with pytest.raises(ParamError, match=name):
        parse_params(**{name: value})


def test_every_bad_value_is_named_at_once():
    with pytest.raises(ParamError, match=r"gamma.*max_bin|max_bin.*gamma"):
        parse_params(gamma=-1, max_bin=1)


@pytest.mark.parametrize(("objective", "score"), [("logistic", 1.0), ("logistic", 0.0), ("poisson", 0.0)])
def test_a_base_score_off_the_response_scale_is_refused(objective, score):
    with pytest.raises(ParamError, match="base_score"):
        parse_params(objective=objective, base_score=score)


def test_identity_leaves_out_where_it_trained():
    identity = parse_params(n_threads=3).identity()
    assert set(Params.model_fields) - set(identity) == {"device", "n_threads"}
