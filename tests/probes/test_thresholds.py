import math

import pytest

from probes.probe import PROBES
from probes.thresholds import Threshold, ThresholdError, load_thresholds

OWN_WORDS = {"why": "it costs time", "advice": "mend it", "source": "proposal"}


@pytest.fixture(autouse=True)
def no_user_file(monkeypatch):
    monkeypatch.delenv("DYNO_THRESHOLDS", raising=False)


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_every_check_has_a_table_and_every_table_a_check():
    owed = [name for probe in PROBES for name in probe.names]
    assert len(set(owed)) == len(owed)
    assert set(load_thresholds()) == set(owed)


def test_every_number_is_bounded_by_a_named_source():
    for name, table in load_thresholds().items():
        assert table.source.strip(), name
        assert table.advice.endswith((".", ")")) or table.advice[-1].isalnum(), name


def test_a_users_file_overrides_single_keys(tmp_path, monkeypatch):
    path = written(tmp_path, "[cpu-steal]\nwarn_above = 7\n")
    ours, theirs = load_thresholds(), load_thresholds(path)
    assert theirs["cpu-steal"] == ours["cpu-steal"].model_copy(update={"warn_above": 7.0})
    assert theirs["cpuset"] == ours["cpuset"]
    assert list(theirs) == list(ours)
    monkeypatch.setenv("DYNO_THRESHOLDS", str(path))
    assert load_thresholds()["cpu-steal"].warn_above == 7
    monkeypatch.setenv("DYNO_THRESHOLDS", "")
    assert load_thresholds()["cpu-steal"] == ours["cpu-steal"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[cpu-stael]\nwarn_above = 1", "no check is named 'cpu-stael'; nearest: 'cpu-steal'"),
        ("[cpu-steal]\nwarn_abov = 1", "[cpu-steal] has no key 'warn_abov'; nearest: 'warn_above'"),
        ("cpu-steal = 1", "a table is needed: [cpu-steal]"),
        ("[cpu-steal]\nwarn_above = 'much'", "cpu-steal.warn_above"),
        ("[cpu-steal]\nwarn_above = true", "cpu-steal.warn_above"),
        ("[cpu-steal]\nwarn_above = nan", "cpu-steal.warn_above"),
        ("[cpu-steal]\nfail_above = inf", "cpu-steal.fail_above"),
        ("[cpu-steal]\nfail_above = 0.5", "warn_above 1 lies above fail_above 0.5"),
        ("[cpu-steal]\nwhen_unknown = 'panic'", "cpu-steal.when_unknown"),
        ("[cpu-steal", "is not TOML"),
    ],
)
def test_a_users_mistake_is_told_by_name(tmp_path, text, said):
    with pytest.raises(ThresholdError) as told:
        load_thresholds(written(tmp_path, text))
    assert said in str(told.value)
    assert "mine.toml" in str(told.value)


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(ThresholdError, match="cannot read"):
        load_thresholds(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ThresholdError, match="not TOML"):
        load_thresholds(tmp_path / "binary.toml")


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(0, "fail"), (1, "warn"), (1.5, "warn"), (2, "pass"), (3, "pass"), (3.1, "warn"), (4, "warn"), (4.1, "fail")],
)
def test_a_bound_itself_passes(value, verdict):
    table = Threshold(fail_below=1, warn_below=2, warn_above=3, fail_above=4, **OWN_WORDS)
    assert table.verdict(value) == verdict
    assert table.words == "warn above 3, fail above 4, warn below 2, fail below 1"


def test_bounds_that_leave_nothing_are_refused():
    with pytest.raises(ValueError, match="no value can pass"):
        Threshold(warn_below=5, warn_above=3, **OWN_WORDS)
    with pytest.raises(ValueError, match="lies below"):
        Threshold(warn_below=1, fail_below=2, **OWN_WORDS)


def test_a_number_is_judged_by_its_table():
    check = load_thresholds().judge("cpu-steal", 3)
    assert (check.verdict, check.value, check.unit, check.threshold) == ("warn", 3.0, "% of time", "warn above 1")
    assert check.why == load_thresholds()["cpu-steal"].why
    assert load_thresholds().judge("cpu-steal", 3, "because").why == "because"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_was_not_measured(value):
    thresholds = load_thresholds()
    for check in (thresholds.judge("cpu-steal", value), thresholds.state("cpu-steal", value, "pass", "well")):
        assert (check.verdict, check.value) == ("unknown", None)
        assert str(value) in check.why


def test_an_unknown_check_is_told_the_nearest():
    with pytest.raises(KeyError, match="nearest: 'cpu-quota'"):
        load_thresholds()["cpu-quoat"]
