import numpy as np
import pytest

from results.search import MOST_RUNS, ExactSearch, NoisySearch, planned_runs


def run(seed, n, noise, size):
    """A whole search over simulated fits; the planted place too (None on a flat history)."""
    rng = np.random.default_rng(seed)
    planted = int(rng.integers(1, n))
    search = NoisySearch(n)
    while search.answer() == "searching":
        place = search.next_place()
        slow = 1 + size if place >= planted else 1.0
        search.add(place, 2.0 * slow * float(np.exp(noise * rng.standard_normal())))
    return search, planted


@pytest.mark.parametrize(("n", "noise", "size"), [(24, 0.05, 0.1), (100, 0.02, 0.1), (2, 0.05, 0.1), (24, 0.001, 0.06)])
def test_the_right_commit_in_19_of_20(n, noise, size):
    right = 0
    for seed in range(20):
        search, planted = run(seed, n, noise, size)
        right += search.answer() == "found" and search.best() == planted
        assert len(search.measured) <= search.planned()
    assert right >= 19


@pytest.mark.parametrize(("n", "noise"), [(24, 0.05), (100, 0.02)])
def test_a_flat_history_is_flat_in_19_of_20(n, noise):
    found = [run(seed, n, noise, 0.0)[0] for seed in range(20)]
    assert sum(search.answer() == "no regression" for search in found) >= 19
    assert all(len(search.measured) <= search.planned() for search in found)


def test_faster_is_no_regression():
    assert run(0, 16, 0.01, -0.2)[0].answer() == "no regression"


def test_a_host_of_noise_says_so():
    """Of 60 % noise a change of 5 % cannot be seen in as many runs as anyone would wait for."""
    search, _ = run(1, 4, 0.6, 0.05)
    assert search.answer() == "too noisy"
    assert len(search.measured) == planned_runs(4, 0.6) == MOST_RUNS


def test_what_is_estimated_is_about_right():
    search, _ = run(3, 24, 0.05, 0.2)
    assert search.size() == pytest.approx(0.2, abs=0.06)
    assert search.noise() == pytest.approx(0.05, abs=0.025)
    assert search.posterior().sum() == pytest.approx(1.0)


def test_repeats_that_agree_to_the_last_bit_do_no_harm():
    search, planted = run(0, 24, 0.0, 0.1)
    assert (search.answer(), search.best()) == ("found", planted)


def test_a_quiet_host_needs_little_more_than_halving():
    search, _ = run(0, 64, 0.002, 0.1)
    assert len(search.measured) <= 6 + 8


@pytest.mark.parametrize(("place", "seconds"), [(-1, 1.0), (2, 1.0), (0, 0.0), (0, float("nan")), (0, float("inf"))])
def test_nonsense(place, seconds):
    with pytest.raises(ValueError, match=r"place|time"):
        NoisySearch(2).add(place, seconds)


@pytest.mark.parametrize("search", [NoisySearch, ExactSearch])
def test_one_commit_is_no_range(search):
    with pytest.raises(ValueError, match="1 commits"):
        search(1)


@pytest.mark.parametrize("n", [2, 3, 16, 17, 1000])
def test_counts_are_found_by_halving(n):
    for planted in {1, n // 2, n - 1} - {0}:
        search = ExactSearch(n)
        while (place := search.next_place()) is not None:
            assert search.answer() == "searching"
            search.add(place, 5 if place >= planted else 4)
        assert (search.answer(), search.best()) == ("found", planted)
        assert len(search.measured) <= search.planned()


@pytest.mark.parametrize(("directed", "answer"), [(True, "no regression"), (False, "found")])
def test_fewer_is_no_regression_but_other_bits_are(directed, answer):
    search = ExactSearch(8, directed)
    while (place := search.next_place()) is not None:
        search.add(place, 5 if place < 3 else 4)
    assert search.answer() == answer
    assert len(search.measured) == 2 if directed else search.best() == 3


def test_what_does_not_repeat_is_not_exact():
    search = ExactSearch(2)
    search.add(0, 4)
    search.add(0, 4)
    with pytest.raises(ValueError, match="4 and 5"):
        search.add(0, 5)
