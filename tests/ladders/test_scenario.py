import pytest

from ladders.contenders import CONTENDERS
from ladders.data.sources import SOURCES
from ladders.scenario import Rung, load_scenario, scenario_names


def test_ours_load_and_pair_every_growth():
    assert {"flights", "msd-shaped", "tall"} <= set(scenario_names())
    for name in scenario_names():
        scenario = load_scenario(name)
        assert scenario.name == name
        assert {CONTENDERS[contender].growth for contender in scenario.contenders} == set(scenario.limits)


def test_knobs_of_a_pair_are_equal():
    scenario = load_scenario("flights")
    asked: dict[str, set] = {}
    for name in scenario.contenders:
        knobs = scenario.asked(name, scenario.rungs[0], 2)
        asked.setdefault(knobs.growth, set()).add(knobs)
    assert all(len(knobs) == 1 for knobs in asked.values())
    assert {knobs.max_leaves for knobs in asked["leafwise"]} == {255}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("repeats", "repeat", "unknown key 'repeat'; did you mean 'repeats'"),
        ("n_estimators", "n_estimator", "unknown key 'knobs.n_estimator'; did you mean 'n_estimators'"),
        ("objective", "objectiv", "unknown key 'rungs.0.objectiv'"),
        ("repeats = 2", "repeats = 0", "repeats=0"),
        ("repeats = 2", 'repeats = "2"', "repeats='2'"),
        ("timeout_s = 120.0", "timeout_s = nan", "timeout_s=nan"),
        ("max_depth = 3", "max_depth = 0", "give at least one a limit"),
        ('"lightgbm"', '"lightgmb"', "unknown contender 'lightgmb'; did you mean 'lightgbm'"),
        ('"lightgbm"', '"xgboost-depthwise"', "named twice"),
        ("leafwise = {", "levelwise = {", "limits.leafwise is missing"),
        ('data = "tall"', 'data = "tal"', "unknown data source 'tal'"),
        ("columns = 6", "colums = 6", "no option 'colums'"),
        ("seed = 1 }", "seed = 1 }\nvaried = { sed = [1, 2] }", "no option 'sed'"),
        ("seed = 1 }", "seed = 1 }\nvaried = { seed = [1, 2] }", "option 'seed' stands in options and in varied"),
        (", seed = 1 }", " }\nvaried = { seed = [] }", "rungs.0.varied.seed=[]"),
        (", seed = 1 }", " }\nvaried = { seed = [1, '2'] }", "option seed='2' of data source 'tall' must be int"),
        (
            ", seed = 1 }",
            " }\nvaried = { seed = [1, 2], test_rows = [9] }",
            "varied has 2 of seed, 1 of test_rows: give",
        ),
        ('"squared_error"', '"absolute_error"', "objective='absolute_error'"),
        ('title = "a small one"', "", "'title' is missing"),
        ("repeats = 2", "repeats = 2\nthreads = [1, 1]", "threads [1, 1] names a number twice"),
        ("repeats = 2", "repeats = 2\nthreads = []", "threads=[]"),
        ("repeats = 2", "repeats = 2\nthreads = [0]", "threads.0=0"),
        ("repeats = 2", 'repeats = 2\nreport = "pair"', "report='pair'"),
        ('objective = "sq', 'knobs = { n_estimator = 3 }\nobjective = "sq', "did you mean 'n_estimators'"),
        ('objective = "sq', 'repeats = 0\nobjective = "sq', "rungs.0.repeats=0"),
        ('objective = "sq', 'limits = { depthwise = { max_depth = 17 } }\nobjective = "sq', "max_depth=17"),
        ('objective = "sq', 'watch = true\nobjective = "sq', "watches rows, and none are held_out"),
        ('objective = "sq', 'knobs = { patience = 3 }\nobjective = "sq', "has patience, and nothing to watch"),
        ('objective = "sq', 'held_out = 0.6\nobjective = "sq', "rungs.0.held_out=0.6"),
        ('objective = "sq', 'timing_mode = "all"\nobjective = "sq', "timing_mode='all'"),
        ("[knobs]", "[knobs", "is not TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_key(scenario_file, old, new, told):
    path = scenario_file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match="scenario") as caught:
        load_scenario(str(path))
    assert told in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_rung_departs_from_the_scenario_where_it_says_so(scenario_file):
    text = scenario_file.read_text()
    rung = text.partition("[[rungs]]")[2].replace('name = "tall"', 'name = "other"')
    changes = "knobs = { n_estimators = 7, max_bin = 31 }\nlimits = { leafwise = { max_leaves = 4 } }\n"
    scenario_file.write_text(f"{text}\n[[rungs]]{rung}{changes}")
    scenario = load_scenario(str(scenario_file))
    plain, other = scenario.rungs
    for contender in scenario.contenders:
        usual, changed = (scenario.asked(contender, found, 1) for found in (plain, other))
        different = {"n_estimators": 7, "max_bin": 31}
        if changed.growth == "leafwise":
            different["max_leaves"] = 4
        assert changed == usual.model_copy(update=different)


def test_the_growth_ladder_moves_one_thing_at_a_time():
    scenario = load_scenario("cpu-growth")
    base, *others = scenario.rungs

    def state(rung):
        options = {name: value for name, value in rung.options.items() if name != "seed"}
        asked = scenario.asked("engine-leafwise", rung, 2).model_dump()
        return {**options, "leaves": asked["max_leaves"], "bins": asked["max_bin"]}

    for rung in others:
        differs = [name for name in state(base) if state(base)[name] != state(rung)[name]]
        assert len(differs) == 1, rung.name
        levelwise, leafwise = (scenario.asked(f"engine-{growth}", rung, 2) for growth in ("levelwise", "leafwise"))
        assert 2**levelwise.max_depth == leafwise.max_leaves


def test_two_rungs_of_one_name(scenario_file):
    path = scenario_file
    rung = path.read_text().partition("[[rungs]]")[2]
    path.write_text(f"{path.read_text()}\n[[rungs]]{rung}")
    with pytest.raises(ValueError, match="rung names must differ"):
        load_scenario(str(path))


def test_unknown_names_and_files(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'flights'"):
        load_scenario("flight")
    with pytest.raises(ValueError, match="No such file"):
        load_scenario(str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not TOML"):
        load_scenario(str(tmp_path / "binary.toml"))


def test_the_ladders_of_the_issue_have_its_shapes():
    shapes = {
        ("gpu-tall", "16m-128"): (16_777_216, 500_000, 128),
        ("gpu-tall", "16m-100"): (16_000_000, 500_000, 100),
        ("gpu-wide", "131k-16k"): (131_072, 26_214, 16_384),
        ("gpu-extreme", "16m-1k"): (16_777_216, 500_000, 1_024),
        ("cpu-tall", "2m-128"): (2_097_152, 419_430, 128),
        ("cpu-wide", "16k-16k"): (16_384, 3_276, 16_384),
        ("msd", "sixteenth"): (28_982, 51_630, 90),
        ("msd", "quarter-csv"): (115_929, 51_630, 90),
        ("msd", "whole"): (463_715, 51_630, 90),
        ("small", "100k"): (100_000, 50_000, 20),
    }
    for (name, rung), shape in shapes.items():
        scenario = load_scenario(name)
        (found,) = scenario.chosen_rungs([rung])
        assert SOURCES[found.data].shape(**found.options) == shape
        assert scenario.target == ("gpu" if name.startswith("gpu") else "cpu")
        assert {scenario.asked(one, found, 2).device for one in scenario.contenders} == {scenario.target}


@pytest.mark.parametrize("name", ["early-stop", "gpu-early-stop"])
def test_off_eval_and_stop_train_on_the_same_rows(name):
    off, watched, stop = load_scenario(name).rungs
    assert off.options == watched.options == stop.options
    assert {rung.held_out for rung in (off, watched, stop)} == {0.1}
    assert [rung.watch for rung in (off, watched, stop)] == [False, True, True]
    asked = {load_scenario(name).asked(one, stop, 2).patience for one in CONTENDERS}
    assert asked == {50}


def test_repeats_take_what_varies_in_turn_and_in_step():
    (tall,) = load_scenario("tall").rungs
    assert tall.sets == [tall.options]
    assert tall.options_at(7) == tall.options
    varied = Rung(
        name="x", data="tall", objective="logistic", options={"rows": 9}, varied={"seed": [1, 2], "test_rows": [3, 4]}
    )
    assert varied.sets == [{"seed": 1, "test_rows": 3, "rows": 9}, {"seed": 2, "test_rows": 4, "rows": 9}]
    assert [varied.options_at(repeat)["seed"] for repeat in range(5)] == [1, 2, 1, 2, 1]


def test_quality_of_the_pairs_is_judged_over_several_data_sets_where_one_is_luck():
    five_seeds = ({"seed": [42, 43, 44, 45, 46]}, 5)
    wanted = {
        "flights-delay": ({"fold": [0, 1, 2, 3, 4]}, 5),
        "flights-late": ({"fold": [0, 1, 2, 3, 4]}, 5),
        "small-1k": five_seeds,
        "small-10k": ({"seed": list(range(42, 57))}, 15),
        "small-50k": five_seeds,
        "small-10k-class": five_seeds,
    }
    for rung in load_scenario("cpu-pairs").rungs:
        assert (rung.varied, rung.repeats) == wanted.get(rung.name, ({}, None))
