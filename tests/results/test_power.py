import numpy as np
import pytest

from results.power import blocks_needed, noise_of, plan, simulated_power
from results.verdict import FEWEST_BLOCKS
from tests.results.history import fit, noisy


@pytest.mark.parametrize(
    ("change", "noise", "control"), [(0.03, 0.01, 0.0), (0.03, 0.01, 0.01), (0.03, 0.02, 0.02), (0.1, 0.05, 0.05)]
)
def test_planned_blocks_see_the_change_nine_times_in_ten(change, noise, control):
    blocks = blocks_needed(change, noise, control)
    assert simulated_power(change, noise, control, blocks) >= 0.85
    assert blocks == FEWEST_BLOCKS or simulated_power(change, noise, control, max(FEWEST_BLOCKS, blocks // 3)) < 0.8


def test_more_noise_and_smaller_changes_take_more():
    assert blocks_needed(0.03, 0.02) > blocks_needed(0.03, 0.01) > blocks_needed(0.06, 0.01)
    assert blocks_needed(0.03, 0.02, 0.02) == pytest.approx(2 * blocks_needed(0.03, 0.02), abs=1)
    assert blocks_needed(0.5, 0.0001) == FEWEST_BLOCKS


def test_noise_is_that_of_repeats_and_not_of_commits():
    rows = noisy(0, 10, 5, 0.05, slow_from=5, slower=3.0)
    (noise,) = noise_of(rows)
    assert noise.share == pytest.approx(0.05, abs=0.012)
    assert noise.repeats == 50
    assert noise.seconds == pytest.approx(1.85, rel=1.5)


def test_one_wild_fit_does_no_harm():
    rows = noisy(0, 10, 5, 0.05)
    wild = rows[0].model_copy(update={"train_s": 100.0})
    assert noise_of([wild, *rows[1:]])[0].share == pytest.approx(noise_of(rows)[0].share, rel=0.25)


def test_noise_needs_repeats_of_one_commit():
    assert noise_of([fit(0), fit(1), fit(2)]) == []
    assert noise_of([]) == []
    assert noise_of([fit(0, valid=False, invalid_reason="throttled")] * 3) == []


def test_minutes():
    (noise,) = noise_of(noisy(0, 10, 5, 0.01))
    alone, controlled = plan(0.03, noise, None, 1.0), plan(0.03, noise, noise, 1.0)
    assert alone.minutes == pytest.approx(4 * alone.blocks * (noise.seconds + 1.0) / 60)
    assert controlled.minutes == pytest.approx(8 * controlled.blocks * (noise.seconds + 1.0) / 60)
    assert alone.band == 0.015
    assert alone.power >= 0.9


def test_what_cannot_be_seen_says_so():
    (noise,) = noise_of(noisy(0, 10, 5, 0.3))
    assert (plan(0.01, noise, None, 1.0).blocks, plan(0.01, noise, None, 1.0).minutes) == (None, None)


def test_it_is_seeded():
    assert len({simulated_power(0.03, 0.01, 0.01, 7) for _ in range(2)}) == 1
    assert np.isfinite(simulated_power(0.03, 0.0, 0.0, 5))


def test_fits_on_data_seen_in_turn_are_repeats():
    rows = noisy(0, 10, 5, 0.05)
    turns = [row.model_copy(update={"data_hash": f"fold{n % 5}", "data_family": "all"}) for n, row in enumerate(rows)]
    (noise,) = noise_of(turns)
    assert (noise.share, noise.repeats) == (noise_of(rows)[0].share, 50)
