import numpy as np
import pytest

from results.verdict import FEWEST_BLOCKS, MOST_BLOCKS, Block, judge, median_interval


def block(rng, change, noise, drift=0.0):
    """A block as it is measured: A, B, B, A, the control after each; lognormal noise, a drift that hits all alike."""
    moments = np.array([0.0, 3.0, 1.0, 2.0]) * drift
    a_and_b = moments + noise * rng.standard_normal(4) + np.array([0, 0, 1, 1]) * np.log1p(change)
    control = 1 + moments + noise * rng.standard_normal(4)
    a, b, control_a, control_b = (tuple(np.exp(part)) for part in (*np.split(a_and_b, 2), *np.split(control, 2)))
    return Block(a, b, control_a, control_b)


def run(seed, change, noise, drift=0.0, band=0.02):
    """Blocks until the verdict is clear, at most `MOST_BLOCKS`."""
    rng, blocks = np.random.default_rng(seed), []
    while True:
        blocks.append(block(rng, change, noise, drift))
        verdict = judge(blocks, band, last=len(blocks) == MOST_BLOCKS)
        if len(blocks) == MOST_BLOCKS or verdict.name != "ambiguous":
            return verdict


def share(names, wanted):
    return sum(name in wanted for name in names) / len(names)


def test_what_is_the_same_is_hardly_ever_called_slower_or_faster():
    """Either way together 5 % at most, and what 100 histories scatter."""
    for noise in (0.005, 0.02, 0.05):
        names = [run(seed, 0.0, noise).name for seed in range(100)]
        assert share(names, ("slower", "faster")) <= 0.08
    assert share([run(seed, 0.0, 0.005).name for seed in range(100)], ("same",)) >= 0.95


def test_a_change_at_the_edge_of_the_band_is_called_slower_at_most_as_often_as_stated():
    """The worst case of a change that is not beyond the band: 5 % and what 200 histories scatter."""
    assert share([run(seed, 0.02, 0.02).name for seed in range(200)], ("slower",)) <= 0.1


@pytest.mark.parametrize(("change", "name"), [(0.1, "slower"), (-0.1, "faster")])
def test_ten_per_cent_are_seen_and_early(change, name):
    found = [run(seed, change, 0.02) for seed in range(50)]
    assert share([one.name for one in found], (name,)) >= 0.95
    assert np.mean([one.blocks for one in found]) < FEWEST_BLOCKS + 2
    assert found[0].exit_code == (1 if name == "slower" else 0)


def test_drift_cancels_in_a_block_and_a_jump_in_the_control():
    assert run(0, 0.0, 0.0, drift=0.05).name == "same"
    jumping = [Block((1.0, 1.0), (1.3, 1.3), (2.0, 2.0), (2.6, 2.6))] * FEWEST_BLOCKS
    verdict = judge(jumping)
    assert verdict.name == "same"
    assert verdict.control == pytest.approx(1.3)


def test_few_blocks_are_ambiguous_however_clear():
    verdict = judge([Block((1.0,), (2.0,))] * (FEWEST_BLOCKS - 1))
    assert (verdict.name, verdict.exit_code, verdict.control) == ("ambiguous", 5, None)


@pytest.mark.parametrize(
    ("blocks", "band", "told"),
    [
        ([], 0.02, "no block"),
        ([Block((), (1.0,))], 0.02, "0 of A and 1 of B"),
        ([Block((0.0,), (1.0,))], 0.02, "0.0 s"),
        ([Block((float("nan"),), (1.0,))], 0.02, "nan s"),
        ([Block((1.0,), (1.0,))], 0.0, "band 0.0"),
    ],
)
def test_nonsense(blocks, band, told):
    with pytest.raises(ValueError, match=told):
        judge(blocks, band)


def test_interval_is_repeatable_and_within_the_values():
    values = np.array([0.1, 0.2, 0.3, 0.4, 9.0])
    low, high = median_interval(values, 0.95)
    assert (low, high) == median_interval(values, 0.95)
    assert 0.1 <= low <= 0.3 <= high <= 9.0
