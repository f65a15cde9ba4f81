import pytest

from ladders.plan import make_plan
from ladders.scenario import load_scenario

FLIGHTS = load_scenario("flights")


def places(plan):
    return {(fit.rung.name, fit.repeat, fit.contender): fit.order for fit in plan.fits}


def test_every_contender_once_a_block():
    plan = make_plan(FLIGHTS, threads=2, repeats=3)
    assert len(plan.fits) == 3 * len(FLIGHTS.rungs) * len(FLIGHTS.contenders)
    for rung in FLIGHTS.rungs:
        for repeat in range(3):
            block = [fit for fit in plan.fits if (fit.rung, fit.repeat) == (rung, repeat)]
            assert sorted(fit.contender for fit in block) == sorted(FLIGHTS.contenders)
            assert [fit.order for fit in block] == list(range(len(block)))


def test_the_order_is_shuffled_seeded_and_a_smaller_run_is_a_part_of_it():
    whole = places(make_plan(FLIGHTS, threads=2, repeats=4))
    assert whole == places(make_plan(FLIGHTS, threads=2, repeats=4))
    orders = {
        tuple(sorted((order, name) for (_, r, name), order in whole.items() if r == repeat)) for repeat in range(4)
    }
    assert len(orders) == 4
    part = places(make_plan(FLIGHTS, threads=2, repeats=2, contenders=["catboost", "lightgbm"]))
    assert part.items() <= whole.items()
    reseeded = FLIGHTS.model_copy(update={"seed": FLIGHTS.seed + 1})
    assert places(make_plan(reseeded, threads=2, repeats=4)) != whole


def test_repeats_go_over_all_rungs_before_the_next():
    repeats = [fit.repeat for fit in make_plan(FLIGHTS, threads=2, repeats=3).fits]
    assert repeats == sorted(repeats)


def test_the_command_measures_one_contender_again():
    plan = make_plan(FLIGHTS, threads=2, scale=0.1, repeats=3)
    last = plan.fits[-1]
    command = plan.command(last)
    assert (
        command == f"dyno ladder run flights --scale=0.1 --contenders={last.contender} --repeats=3 --threads=2 --fresh"
    )
    elsewhere = make_plan(FLIGHTS, named="my ladders/x.toml", threads=2)
    assert elsewhere.command(last).startswith("dyno ladder run 'my ladders/x.toml' --contenders=")


@pytest.mark.parametrize(
    "chosen",
    [
        {"scale": 0.0},
        {"scale": 1.01},
        {"scale": float("nan")},
        {"repeats": 0},
        {"threads": 0},
        {"threads": 5000},
        {"contenders": ["catbost"]},
        {"contenders": ["catboost", "catboost"]},
        {"contenders": []},
    ],
)
def test_refuses(chosen):
    with pytest.raises(ValueError, match=r"scale|repeats|threads|contender"):
        make_plan(FLIGHTS, **{"threads": 2, **chosen})
