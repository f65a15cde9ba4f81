"""Objectives: base margins, responses, and labels that are refused."""

import math

import numpy as np
import pytest

from engine.errors import DataError, ParamError
from engine.objectives import OBJECTIVES, get_objective
from engine.predictor import respond


def floats(*values):
    return np.array(values, dtype=np.float32)


def test_the_base_margin_is_the_link_of_the_weighted_mean():
    label, weight = floats(0, 0, 1, 1), floats(1, 1, 1, 5)
    assert get_objective("squared_error").base_margin(label, weight, None) == np.float32(0.75)
    assert get_objective("logistic").base_margin(label, weight, None) == np.float32(math.log(3))
    assert get_objective("poisson").base_margin(label, weight, None) == np.float32(math.log(0.75))


def test_a_given_base_score_replaces_the_mean():
    assert get_objective("logistic").base_margin(floats(1, 1), None, 0.5) == 0


@pytest.mark.parametrize("name", OBJECTIVES)
def test_one_sided_labels_give_a_finite_base(name):
    for label in (floats(0, 0, 0), floats(1, 1, 1)):
        assert np.isfinite(get_objective(name).base_margin(label, None, None))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_response_undoes_the_link(name):
    margin = get_objective(name).base_margin(floats(0.25), None, None)
    assert respond(floats(margin), name)[0] == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize(("name", "bad"), [("logistic", 2.0), ("logistic", -1.0), ("poisson", -0.5)])
def test_a_label_out_of_range_is_refused_by_row(name, bad):
    with pytest.raises(DataError, match=rf"label {bad:g} at row 1 .*'{name}'"):
        get_objective(name).check_label(floats(0, bad, 1))


def test_an_unknown_objective_lists_the_known():
    with pytest.raises(ParamError, match="squared_error, logistic, poisson"):
        get_objective("hinge")
