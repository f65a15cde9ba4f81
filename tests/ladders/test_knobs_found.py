import io

import pytest
from rich.console import Console

from ladders.contenders.knobs import TABLE
from ladders.knobs_found import show, to_values
from ladders.plan import make_plan
from ladders.render_knobs import to_terminal
from ladders.runner import measure, prepare_steps
from ladders.scenario import load_scenario
from results.store import Store


@pytest.fixture
def plan(scenario_file):
    return make_plan(load_scenario(str(scenario_file)), cores=1, repeats=1)


def test_found_in_a_row_or_else_in_a_tiny_fit(plan, tmp_path):
    step = next(step for step in prepare_steps(plan) if step.fit.contender == "lightgbm")
    row = measure(step, plan, Store(tmp_path))
    shown = {one.contender: one for one in show(plan, [row])}
    assert list(shown) == ["xgboost-depthwise", "lightgbm"]
    assert shown["lightgbm"].source == "row"
    assert shown["lightgbm"].found == row.knobs_found
    assert shown["lightgbm"].asked["growth"] is None
    assert shown["lightgbm"].asked["max_leaves"] == ("num_leaves", 8)
    assert shown["xgboost-depthwise"].source == "tiny fit of 5 trees"
    assert shown["xgboost-depthwise"].found["max_depth"] == 3
    assert all(one.asked.keys() == TABLE.keys() for one in shown.values())
    assert to_values(shown.values())[1]["found"]["n_estimators"] == 5


def test_a_row_of_other_knobs_does_not_answer(plan, tmp_path):
    step = next(step for step in prepare_steps(plan) if step.fit.contender == "lightgbm")
    row = measure(step, plan, Store(tmp_path))
    other = row.model_copy(update={"knobs_asked": {**row.knobs_asked, "max_bin": 9}})
    assert {one.source for one in show(plan, [other])} == {"tiny fit of 5 trees"}


def test_the_table_shows_asked_found_and_what_has_no_equivalent(plan):
    screen = Console(file=io.StringIO(), width=200)
    to_terminal(show(plan, []), screen)
    text = screen.file.getvalue()
    for told in ("max_depth 3 → 3", "no equivalent → leafwise", "num_leaves 8 → 8", "min_data_in_bin = 1"):
        assert told in text
