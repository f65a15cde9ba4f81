"""The measuring loop against a clock whose every latency is known: percentiles come out right to 1 %."""

import gc
import math
from functools import partial
from itertools import cycle
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.replay.clock import ReplayedClock
from probes.timing import FEWEST_CALLS, SETTLE_BATCH, SETTLE_S, WINDOW_S, measure, percentile, repeat, slope

STRATA = 1000
LEVELS = (np.arange(STRATA) + 0.5) / STRATA


def played(clock, latencies, seed=0):
    """A call that takes each of the latencies once, in a drawn order, then all of them again."""
    order = cycle(np.random.default_rng(seed).permutation(np.asarray(latencies)).tolist())
    return lambda: clock.advance(next(order))


def lognormal(median, spread):
    normal = NormalDist()
    return [median * math.exp(spread * normal.inv_cdf(level)) for level in LEVELS]


def two_kinds(median, spread, slow_share, slow_factor):
    """Some waits many times as long as the others, as on a host whose cores are taken away now and then."""
    return [
        median * (1 + spread * level) * (slow_factor if level > 1 - slow_share else 1.0) for level in LEVELS.tolist()
    ]


DISTRIBUTIONS = st.one_of(
    st.builds(lognormal, st.floats(1e-6, 4e-5), st.floats(0.0, 1.5)),
    st.builds(two_kinds, st.floats(1e-6, 4e-5), st.floats(0.0, 1.0), st.floats(0.02, 0.4), st.floats(1.0, 3.0)),
)


@given(DISTRIBUTIONS, st.floats(0.0, 2e-6), st.integers(0, 2**31))
@settings(max_examples=40)
def test_percentiles_are_right_to_one_percent_whatever_the_clock_costs(latencies, cost, seed):
    clock = ReplayedClock(cost)
    found = measure(clock, played(clock, latencies, seed))
    # A window need not begin where the latencies do, and may end early: within a rank or two of the known ones.
    ordered = sorted(latencies)
    assert found.overhead_s == pytest.approx(cost, abs=1e-9)
    for share, measured in ((0.50, found.p50_s), (0.99, found.p99_s)):
        rank = math.ceil(share * STRATA) - 1
        assert ordered[rank - 1] * 0.99 - 1e-9 <= measured <= ordered[rank + 1] * 1.01 + 1e-9


@pytest.mark.parametrize("latency", [1e-7, 4e-6, 300e-6, 0.05])
def test_a_constant_latency_is_found_as_it_is(latency):
    clock = ReplayedClock(3e-7)
    found = measure(clock, partial(clock.advance, latency))
    assert found.p50_s == pytest.approx(latency, rel=0.01)
    assert found.p99_s == pytest.approx(latency, rel=0.01)


def test_several_calls_are_one_sample():
    clock = ReplayedClock(1e-6)
    found = measure(clock, partial(clock.advance, 2e-6), partial(clock.advance, 5e-6))
    assert found.p50_s == pytest.approx(7e-6, rel=0.01)
    assert found.n_samples == 5000


@pytest.mark.parametrize(
    ("latency", "n_samples", "most_s"), [(1e-3, 200, 1.2), (15e-3, FEWEST_CALLS, 2.2), (45e-3, 9, 3.1), (1.0, 1, 6.1)]
)
def test_slow_calls_end_a_window_early(latency, n_samples, most_s):
    clock = ReplayedClock()
    found = measure(clock, partial(clock.advance, latency))
    assert found.n_samples == pytest.approx(5 * n_samples, rel=0.02)
    assert found.p50_s == pytest.approx(latency)
    assert clock.seconds < most_s


def test_one_disturbed_window_moves_nothing():
    clock = ReplayedClock()
    made = iter(range(10**9))

    def call():
        number = next(made) - 2 * SETTLE_BATCH
        clock.advance(1e-3 if 1000 <= number < 1150 else 5e-6)

    found = measure(clock, call)
    assert (found.p50_s, found.p99_s) == pytest.approx((5e-6, 5e-6), rel=0.01)


def test_what_is_measured_has_settled_before():
    clock = ReplayedClock()
    latencies = iter([100e-6] * 150 + [50e-6] * 150)
    found = measure(clock, lambda: clock.advance(next(latencies, 4e-6)))
    assert found.p99_s == pytest.approx(4e-6, rel=0.01)


def test_what_never_settles_is_measured_all_the_same():
    clock = ReplayedClock()
    factors = cycle([1.0] * SETTLE_BATCH + [3.0] * SETTLE_BATCH)
    found = measure(clock, lambda: clock.advance(1e-4 * next(factors)))
    assert found.p99_s == pytest.approx(3e-4, rel=0.01)
    assert SETTLE_S + WINDOW_S < clock.seconds < SETTLE_S + 5 * WINDOW_S + 0.05


def test_idle_time_comes_before_each_sample_and_is_not_counted():
    clock = ReplayedClock()
    slept = []
    clock.sleep = lambda seconds: (slept.append(seconds), clock.advance(seconds))
    found = measure(clock, partial(clock.advance, 20e-6), n_windows=5, n_calls=10, idle_s=0.010)
    assert found.p50_s == pytest.approx(20e-6, rel=0.01)
    assert slept == [0.010] * 50


def test_garbage_is_not_collected_meanwhile_and_is_again_after_an_interruption():
    clock, states = ReplayedClock(), []

    def call():
        states.append(gc.isenabled())
        if len(states) > 10:
            raise KeyboardInterrupt
        clock.advance(1e-6)

    with pytest.raises(KeyboardInterrupt):
        measure(clock, call)
    assert set(states) == {False}
    assert gc.isenabled()


@given(st.floats(1e-7, 1e-4), st.floats(0, 1e-3), st.floats(0, 2e-6))
@settings(max_examples=30)
def test_a_slope_is_the_cost_of_one_more_call(cost, wait, reading):
    clock = ReplayedClock(reading)
    found = slope(clock, partial(clock.advance, cost), partial(clock.advance, wait), 64, 512)
    assert found == pytest.approx(cost, rel=0.01)


def test_a_few_long_calls_are_counted_after_one_that_is_not():
    clock = ReplayedClock()
    seconds = iter([9.0, 0.1, 0.3, 0.2])
    assert repeat(clock, lambda: clock.advance(next(seconds)), 3) == pytest.approx(0.2)
    made = []
    repeat(clock, lambda: (made.append(0), clock.advance(2.0)), 3, limit_s=1.0)
    assert len(made) == 2


@pytest.mark.parametrize(
    ("samples", "share", "expected"),
    [([5.0], 0.99, 5.0), ([1, 2], 0.5, 1), ([3, 1, 2], 0.5, 2), (range(1, 101), 0.99, 99), ([1, 2, 3], 0.0, 1)],
)
def test_nearest_rank(samples, share, expected):
    assert percentile(list(samples), share) == expected
