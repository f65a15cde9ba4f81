import pytest

from ladders.contenders import CONTENDERS
from ladders.data.cache import cached, prepare
from ladders.foresight import data_notes, foresee, refused_builds
from ladders.plan import make_plan
from ladders.progress import START_S, scaled_seconds
from ladders.runner import foresee_steps, measure, missing, prepare_steps
from ladders.scenario import load_scenario
from results.store import Store


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(path, **chosen):
    return make_plan(load_scenario(str(path)), cores=1, **chosen)


def test_nothing_is_made_and_everything_is_known(scenario_file, empty_cache):
    plan = make(scenario_file)
    steps = foresee_steps(plan)
    found = foresee(plan, steps, steps, [])
    assert not empty_cache.exists()
    assert [(line.contender, line.fits, line.to_do) for line in found] == [
        ("xgboost-depthwise", 2, 2),
        ("lightgbm", 2, 2),
    ]
    assert {(line.train_rows, line.test_rows, line.columns) for line in found} == {(2000, 400, 6)}
    assert all(line.host_bytes > 4 * 2400 * 7 and line.seconds > START_S and line.skipped is None for line in found)
    assert data_notes(plan) == ["data of tall: 6.7e-05 GB to be made"]


def test_foreseen_steps_are_the_prepared_ones_once_the_data_are_there(scenario_file):
    plan = make(scenario_file)
    assert {step.fields["data_hash"] for step in foresee_steps(plan)} == {None}
    prepared = prepare_steps(plan)
    assert foresee_steps(plan) == prepared
    assert data_notes(plan) == []


def test_a_measured_fit_is_done_and_times_the_others(scenario_file, tmp_path, steady_tree):
    plan = make(scenario_file, repeats=1)
    steps = prepare_steps(plan)
    row = measure(steps[0], plan, Store(tmp_path))
    to_do = missing(foresee_steps(plan), [row])
    found = {line.contender: line for line in foresee(plan, foresee_steps(plan), to_do, [row])}
    assert found[row.contender].to_do == 0
    assert found[row.contender].seconds == pytest.approx(START_S + row.fit_s + row.predict_s)
    half = make(scenario_file, repeats=1, scale=0.5)
    line = {one.contender: one for one in foresee(half, foresee_steps(half), [], [row])}[row.contender]
    assert line.seconds == pytest.approx(scaled_seconds(row, 1000 * 6, 1))
    assert scaled_seconds(row, 2000 * 6, 2) == pytest.approx(START_S + (row.fit_s + row.predict_s) / 2)


def test_data_larger_than_this_host_are_skipped_and_never_made(scenario_file, empty_cache):
    text = scenario_file.read_text()
    scenario_file.write_text(text.replace("rows = 2_000, columns = 6", "rows = 2_000_000_000, columns = 1_000"))
    plan = make(scenario_file, repeats=1)
    steps = prepare_steps(plan)
    assert not empty_cache.exists()
    assert all("the data alone need 8010 GB of memory" in step.unsupported for step in steps)
    assert all("8010 GB" in line.skipped for line in foresee(plan, steps, steps, []))


def test_libraries_say_themselves_whether_they_can_train_on_a_gpu():
    names = ["xgboost-depthwise", "catboost"]
    refused = refused_builds(make_plan(load_scenario("gpu-tall"), cores=2, contenders=names))
    import xgboost

    assert refused.keys() == (set() if xgboost.build_info()["USE_CUDA"] else {"xgboost-depthwise"})
    assert refused_builds(make_plan(load_scenario("tall"), cores=2, contenders=names)) == {}


def test_the_largest_ladders_are_foreseen_at_once():
    for name in ("gpu-tall", "gpu-wide", "gpu-extreme", "msd"):
        plan = make_plan(load_scenario(name), cores=16)
        steps = foresee_steps(plan)
        found = foresee(plan, steps, steps, [], card_bytes=96 * 10**9)
        assert [line.contender for line in found[:10]] == list(CONTENDERS)
        if name != "msd":
            assert all(line.device_bytes > 10**9 for line in found)
            assert cached(plan.rungs[0].data, plan.rungs[0].options) is None


def test_every_data_set_that_repeats_see_is_foreseen(scenario_file, empty_cache):
    text = scenario_file.read_text()
    scenario_file.write_text(text.replace(", seed = 1 }", " }\nvaried = { seed = [1, 2], test_rows = [400, 500] }"))
    plan = make(scenario_file, repeats=3)
    steps = foresee_steps(plan)
    assert {(line.data_sets, line.fits, line.test_rows) for line in foresee(plan, steps, steps, [])} == {(2, 3, 400)}
    assert data_notes(plan) == ["data of tall: 0.00014 GB to be made, 2 of 2 data sets"]
    assert not empty_cache.exists()
    prepare("tall", plan.rungs[0].sets[0])
    assert data_notes(plan) == ["data of tall: 7e-05 GB to be made, 1 of 2 data sets"]
    prepare_steps(plan)
    assert data_notes(plan) == []
