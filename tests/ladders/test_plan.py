import pytest

from ladders.plan import make_plan
from ladders.scenario import load_scenario

FLIGHTS = load_scenario("flights")


def places(plan):
    return {(fit.rung.name, fit.repeat, fit.contender): fit.order for fit in plan.fits}


def test_every_contender_once_a_block():
    plan = make_plan(FLIGHTS, cores=2, repeats=3)
    assert len(plan.fits) == 3 * len(FLIGHTS.rungs) * len(FLIGHTS.contenders)
    for rung in FLIGHTS.rungs:
        for repeat in range(3):
            block = [fit for fit in plan.fits if (fit.rung, fit.repeat) == (rung, repeat)]
            assert sorted(fit.contender for fit in block) == sorted(FLIGHTS.contenders)
            assert [fit.order for fit in block] == list(range(len(block)))


def test_the_order_is_shuffled_seeded_and_a_smaller_run_is_a_part_of_it():
    whole = places(make_plan(FLIGHTS, cores=2, repeats=4))
    assert whole == places(make_plan(FLIGHTS, cores=2, repeats=4))
    orders = {
        tuple(sorted((order, name) for (_, r, name), order in whole.items() if r == repeat)) for repeat in range(4)
    }
    assert len(orders) == 4
    part = places(make_plan(FLIGHTS, cores=2, repeats=2, contenders=["catboost", "lightgbm"]))
    assert part.items() <= whole.items()
    reseeded = FLIGHTS.model_copy(update={"seed": FLIGHTS.seed + 1})
    assert places(make_plan(reseeded, cores=2, repeats=4)) != whole


def test_repeats_go_over_all_rungs_before_the_next():
    repeats = [fit.repeat for fit in make_plan(FLIGHTS, cores=2, repeats=3).fits]
    assert repeats == sorted(repeats)


PAIRS = load_scenario("cpu-pairs")


def test_a_rung_is_measured_at_each_number_of_threads_in_blocks_of_their_own():
    plan = make_plan(PAIRS, cores=64, rungs=["small-1k"], repeats=2)
    blocks = [(fit.repeat, fit.threads) for fit in plan.fits]
    assert list(dict.fromkeys(blocks)) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert blocks == sorted(blocks)
    assert all(fit.asked.n_threads == fit.threads for fit in plan.fits)
    assert [rung.name for rung in plan.rungs] == ["small-1k"]
    assert {fit.threads for fit in make_plan(PAIRS, cores=64, threads=[3]).fits} == {3}
    assert {fit.threads for fit in make_plan(FLIGHTS, cores=64).fits} == {64}


def test_rungs_have_their_own_repeats_and_a_caller_overrides_them():
    def repeats(plan, rung):
        return {fit.repeat for fit in plan.fits if fit.rung.name == rung}

    plan = make_plan(PAIRS, cores=2)
    assert (repeats(plan, "small-1k"), repeats(plan, "tall")) == ({0, 1, 2, 3, 4}, {0, 1, 2})
    assert [fit.repeat for fit in plan.fits] == sorted(fit.repeat for fit in plan.fits)
    assert repeats(make_plan(PAIRS, cores=2, repeats=2), "tall") == {0, 1}


def test_rungs_chosen_are_a_part_of_the_whole_in_its_order():
    chosen = make_plan(PAIRS, cores=2, rungs=["tall", "msd-year"]).fits
    assert [fit for fit in make_plan(PAIRS, cores=2).fits if fit.rung.name in ("tall", "msd-year")] == list(chosen)


def test_the_command_measures_one_contender_again():
    plan = make_plan(FLIGHTS, cores=2, scale=0.1, repeats=3)
    last = plan.fits[-1]
    command = plan.command(last)
    chosen = f"--rungs={last.rung.name} --contenders={last.contender} --repeats=3 --threads=2"
    assert command == f"dyno ladder run flights --scale=0.1 {chosen} --fresh"
    elsewhere = make_plan(FLIGHTS, named="my ladders/x.toml", cores=2)
    assert elsewhere.command(last).startswith("dyno ladder run 'my ladders/x.toml' --rungs=")


@pytest.mark.parametrize(
    "chosen",
    [
        {"scale": 0.0},
        {"scale": 1.01},
        {"scale": float("nan")},
        {"repeats": 0},
        {"threads": []},
        {"threads": [0]},
        {"threads": [1, 5000]},
        {"threads": [1, 1]},
        {"rungs": []},
        {"rungs": ["dely"]},
        {"contenders": ["catbost"]},
        {"contenders": ["catboost", "catboost"]},
        {"contenders": []},
    ],
)
def test_refuses(chosen):
    with pytest.raises(ValueError, match=r"scale|repeats|threads|contender|rung"):
        make_plan(FLIGHTS, cores=2, **chosen)


def test_a_copy_on_disk_goes_to_the_rungs_that_fetch_and_into_the_command(tmp_path):
    copy = tmp_path / "copy.zip"
    copy.write_bytes(b"")
    plan = make_plan(load_scenario("msd"), cores=2, data=str(copy))
    assert (
        {fit.rung.options["path"] for fit in plan.fits} == {str(copy)} == {rung.options["path"] for rung in plan.rungs}
    )
    assert f"--data={copy}" in plan.command(plan.fits[0])
    with pytest.raises(ValueError, match="is not a file"):
        make_plan(load_scenario("msd"), cores=2, data=str(tmp_path))
    with pytest.raises(ValueError, match="'flights' makes its own"):
        make_plan(FLIGHTS, cores=2, data=str(copy))
