import io

import pytest
from rich.console import Console

from ladders.plan import make_plan
from ladders.progress import START_S, Display, Estimate, duration, expected_seconds
from ladders.runner import measure, prepare_steps
from ladders.scenario import load_scenario
from results.store import Store

ONE, OTHER, ABSENT = ("r", 1, "a"), ("r", 2, "a"), ("r", 1, "b")


def test_an_estimate_learns_from_repeats_and_corrects_what_it_expects():
    estimate = Estimate({ONE: 2.0, OTHER: 1.0, ABSENT: 0.0})
    assert estimate.left([ONE, OTHER, OTHER, ABSENT]) == 4.0
    for seconds in (1.0, 4.0, 90.0):
        estimate.learn(ONE, seconds)
    assert estimate.left([ONE, ONE]) == 8.0
    assert estimate.left([OTHER]) == 2.0  # the other took twice as long as expected
    estimate.learn(OTHER, 10.0)
    assert estimate.left([OTHER]) == 10.0
    assert estimate.left([]) == 0.0


def test_an_estimate_reads_earlier_rows(scenario_file, tmp_path):
    plan = make_plan(load_scenario(str(scenario_file)), cores=1, repeats=1, contenders=["xgboost-depthwise"])
    (step,) = prepare_steps(plan)
    row = measure(step, plan, Store(tmp_path))
    fit = ("tall", 1, "xgboost-depthwise")
    assert Estimate({fit: 99.0}, [row]).left([fit]) == row.fit_s + row.predict_s + START_S


def test_more_work_is_expected_to_take_longer():
    small, large = expected_seconds(1_000, 10, 2), expected_seconds(10**8, 10, 2)
    assert START_S < small < large < expected_seconds(10**8, 10, 1) < expected_seconds(10**8, 100, 1)


@pytest.mark.parametrize(("seconds", "said"), [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (600, "10 min 00 s")])
def test_duration(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_a_fit_or_a_bar(terminal, scenario_file, tmp_path):
    plan = make_plan(load_scenario(str(scenario_file)), cores=1, repeats=1, contenders=["xgboost-depthwise"])
    (step,) = prepare_steps(plan)
    written = io.StringIO()
    fit = ("tall", 1, "xgboost-depthwise")
    console = Console(file=written, force_terminal=terminal, width=120)
    with Display(console, [fit], Estimate({fit: 1.0})) as display:
        display.begin(fit)
        display.end(measure(step, plan, Store(tmp_path)))
    said = written.getvalue()
    assert "tall · 1 thread · xgboost-depthwise" in said
    assert "1/1" in said
    assert ("\x1b[" in said) is terminal
    assert ("s train, rmse" in said) is not terminal
