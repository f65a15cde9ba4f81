"""Launches, a graph and events of known cost."""

import pytest

from probes.checks.launch import LaunchProbe
from tests.probes.emulated_cuda import EmulatedCuda, Times, run

pytestmark = pytest.mark.usefixtures("on_emulator")


@pytest.mark.parametrize("cost_s", [0.0, 1e-6])
@pytest.mark.parametrize(("launch", "verdict"), [(2e-6, "pass"), (35e-6, "warn")])
def test_each_cost_is_right_to_one_percent(launch, verdict, cost_s):
    found = run(LaunchProbe(), EmulatedCuda(Times(launch=launch, graph=9e-6, event=1.4e-6, wait=300e-6), cost_s))
    assert found["launch-enqueue"].value == pytest.approx(launch * 1e6, rel=0.01)
    assert found["launch-enqueue"].verdict == verdict
    assert found["graph-replay"].value == pytest.approx(9, rel=0.01)
    assert found["event-time"].value == pytest.approx(1.4, rel=0.01)


def test_launches_are_not_waited_for_while_they_are_counted():
    emulated = EmulatedCuda()
    run(LaunchProbe(), emulated)
    before_the_first_wait = emulated.calls[: emulated.calls.index("_wait")]
    assert before_the_first_wait == ["_launch"] * 64
