import pytest

from results.changes import changes
from results.release import release_of
from results.standings import standings
from tests.results.releases import ENGINE, OTHER_HOST, RIVAL, fit, two_releases


def between(old, new):
    (change,) = changes(standings(old), standings(new))
    return change


def release(name, slower=1.0, rival=1.0, **shared):
    number = 0 if name == "0.1.0" else 1
    both = ((ENGINE, slower), (RIVAL, rival))
    return [fit(name, number, who, block, factor, **shared) for who, factor in both for block in range(6)]


@pytest.mark.parametrize(
    ("slower", "rival", "verdict"),
    [(1.2, 1.0, "slower"), (0.8, 1.0, "faster"), (1.0, 1.0, "same"), (1.2, 1.2, "same"), (1.0, 1.2, "faster")],
)
def test_a_change_is_said_less_what_the_rival_did(slower, rival, verdict):
    change = between(release("0.1.0"), release("0.2.0", slower, rival))
    assert change.verdict.name == verdict
    assert change.verdict.ratio == pytest.approx(slower / rival)
    assert (change.control, change.why) == (RIVAL, "")


def test_a_rival_of_another_version_is_no_control():
    new = [row.model_copy(update={"version": "3.3.0"}) if row.contender == RIVAL else row for row in release("0.2.0")]
    change = between(release("0.1.0"), new)
    assert change.control is None
    assert change.verdict.name == "same"


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        (
            {"passport_before": OTHER_HOST, "passport_after": OTHER_HOST},
            "passport 0therh0st0000000 instead of 5a1e7c0f",
        ),
        ({"data_hash": "0ther"}, "data hash 0ther instead of feedface"),
        ({"scale": 0.5}, "scale 0.5 instead of 1.0"),
        ({"knobs_asked": {"max_bin": 64}}, "other knobs"),
    ],
)
def test_what_was_measured_otherwise_is_not_compared(shared, said):
    change = between(release("0.1.0"), release("0.2.0", **shared))
    assert change.verdict is None
    assert change.why.startswith(f"not comparable: {said}")


def test_few_blocks_are_ambiguous_and_no_common_one_says_so():
    few = [row for row in release("0.2.0", 2.0) if row.block < 2]
    assert between(release("0.1.0"), few).verdict.name == "ambiguous"
    early, late = (
        [row for row in release(name) if (row.block < 3) == (name == "0.1.0")] for name in ("0.1.0", "0.2.0")
    )
    assert between(early, late).why == "not comparable: no block with a time above zero in both"


def test_what_only_one_release_has_is_not_measured():
    old, new = release("0.1.0"), release("0.2.0", rung="late")
    found = {
        change.rung: (change.old is None, change.new is None, change.why)
        for change in changes(standings(old), standings(new))
    }
    assert found == {
        "late": (True, False, "not measured in the earlier release"),
        "delay": (False, True, "not measured in the later release"),
    }


def test_a_release_knows_the_one_before():
    found = release_of(two_releases(), "0.2.0")
    assert found.previous == "0.1.0"
    said = {change.rung: change.verdict and change.verdict.name for change in found.changes}
    assert said == {
        "delay": "slower",
        "<b>late</b>": None,
        "columns-20": "same",
        "columns-40": "same",
        "columns-80": "same",
    }
