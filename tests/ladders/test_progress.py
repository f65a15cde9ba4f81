import io

import pytest
from rich.console import Console

from ladders.plan import make_plan
from ladders.progress import Display, Estimate, duration
from ladders.runner import measure, prepare_steps
from ladders.scenario import load_scenario
from results.store import Store


def test_estimate_learns_from_repeats_and_guesses_the_rest():
    estimate = Estimate()
    assert estimate.left([("r", "a")]) is None
    for seconds in (1.0, 2.0, 90.0):
        estimate.learn(("r", "a"), seconds)
    assert estimate.left([("r", "a"), ("r", "a")]) == 4.0
    assert estimate.left([("r", "a"), ("r", "b")]) == 4.0
    estimate.learn(("r", "b"), 10.0)
    assert estimate.left([("r", "b")]) == 10.0
    assert estimate.left([]) == 0.0


@pytest.mark.parametrize(("seconds", "said"), [(0, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (600, "10 min 00 s")])
def test_duration(seconds, said):
    assert duration(seconds) == said


@pytest.mark.parametrize("terminal", [False, True])
def test_a_line_a_fit_or_a_bar(terminal, scenario_file, tmp_path):
    plan = make_plan(load_scenario(str(scenario_file)), threads=1, repeats=1, contenders=["xgboost-depthwise"])
    (step,) = prepare_steps(plan)
    written = io.StringIO()
    fit = ("tall", "xgboost-depthwise")
    console = Console(file=written, force_terminal=terminal, width=120)
    with Display(console, [fit], Estimate()) as display:
        display.begin(fit)
        display.end(measure(step, plan, Store(tmp_path)))
    said = written.getvalue()
    assert "tall · xgboost-depthwise" in said
    assert "1/1" in said
    assert ("\x1b[" in said) is terminal
    assert ("s train, rmse" in said) is not terminal
