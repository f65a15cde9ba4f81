import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ladders.cli import app
from probes.identity import TRACES
from results.store import local_store

WITHOUT_GPU = pytest.mark.skipif(
    any((Path("/") / trace).exists() for trace in TRACES), reason="this machine has a GPU: it says other things"
)


def dyno(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_list():
    found = dyno("ladder", "list")
    assert found.exit_code == 0
    assert all(name in found.stdout for name in ("flights", "msd-shaped", "tall"))
    listed = json.loads(dyno("ladder", "list", "--json").stdout)
    assert {scenario["name"] for scenario in listed} >= {"flights", "msd-shaped", "tall"}


def test_plan_then_run_then_nothing_left(scenario_file, steady_tree):
    path = scenario_file
    plan = json.loads(dyno("ladder", "plan", path, "--json").stdout)
    assert len(plan) == 4
    assert all(fit["to_do"] for fit in plan)
    assert "4 of 4 fits to do" in dyno("ladder", "plan", path).stdout

    ran = dyno("ladder", "run", path, "--repeats", 1)
    assert ran.exit_code == 0, ran.output
    assert "xgboost-depthwise" in ran.stdout
    assert "[2/2]" in ran.stderr
    assert {row.status for row in local_store().read("small").rows} == {"ok"}

    assert "2 of 2 fits are measured already" in dyno("ladder", "run", path, "--repeats", 1).stderr
    plan = json.loads(dyno("ladder", "plan", path, "--json").stdout)
    assert [fit["to_do"] for fit in plan] == [False, False, True, True]
    scaled = json.loads(dyno("ladder", "plan", path, "--scale", 0.5, "--json").stdout)
    assert all(fit["to_do"] for fit in scaled)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("flight",), "did you mean 'flights'"),
        (("none.toml",), "cannot read scenario"),
        (("flights", "--scale", 0), "scale 0.0"),
        (("flights", "--scale", "nan"), "scale nan"),
        (("flights", "--repeats", 0), "repeats 0"),
        (("flights", "--threads", 0), "threads 0"),
        (("flights", "--threads", "1,two"), "whole numbers, comma-separated"),
        (("flights", "--threads", "2,2"), "names a number twice"),
        (("flights", "--rungs", "delays"), "did you mean 'delay'"),
        (("flights", "--rungs", ","), "no rung is named"),
        (("flights", "--contenders", "catbost"), "did you mean 'catboost'"),
        (("flights", "--contenders", ","), "no contender"),
        (("flights", "--data", "none.zip"), "is not a file"),
        (("flights", "--data", __file__), "'flights' makes its own"),
    ],
)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_usage(command, arguments, told):
    found = dyno("ladder", command, *arguments)
    assert found.exit_code == 2
    assert told in found.stderr


def test_a_plan_makes_nothing(scenario_file, empty_cache):
    found = dyno("ladder", "plan", scenario_file)
    assert found.exit_code == 0
    assert not empty_cache.exists()
    for told in ("2,000 + 400 rows, 6 columns", "2 of 2", "host GB", "to be made", "4 of 4 fits to do, about"):
        assert told in found.stdout


@WITHOUT_GPU
def test_a_plan_of_a_gpu_ladder_says_what_is_missing(empty_cache):
    found = dyno("ladder", "plan", "gpu-tall", "--rungs", "16m-128", "--threads", 4096)
    assert found.exit_code == 0
    assert not empty_cache.exists()
    for told in (
        "skipped on 16m-128: lightgbm: this LightGBM was built without CUDA",
        "this host has no GPU",
        "4096 th",
    ):
        assert told in found.stdout


def test_data_that_cannot_be_had_are_nothing_measured(tmp_path):
    (tmp_path / "copy.txt").write_text("2001,1\n")
    found = dyno("ladder", "run", "msd", "--rungs", "sixteenth", "--data", tmp_path / "copy.txt")
    assert found.exit_code == 3
    assert "2 columns, YearPredictionMSD has 91" in found.stderr
    assert "msd-shaped" in found.stderr


def test_knobs_of_two_libraries(scenario_file):
    shown = json.loads(dyno("ladder", "knobs", scenario_file, "--json").stdout)
    assert [one["contender"] for one in shown] == ["xgboost-depthwise", "lightgbm"]
    assert shown[0]["found"]["device"] == "cpu"
    assert dyno("ladder", "knobs", "smal").exit_code == 2


def test_the_predict_ladder_shows_calls_by_rows(scenario_file):
    text = scenario_file.read_text().replace("repeats = 2", 'repeats = 1\nreport = "predict"')
    scenario_file.write_text(text + "predictions = true\n")
    found = dyno("ladder", "run", scenario_file)
    assert found.exit_code == 0, found.output
    assert "raw 1 " in found.stdout
    assert "dataset 400" in found.stdout
    assert "M rows/s" in found.stdout


def test_nothing_measured_is_three(scenario_file):
    path = scenario_file
    path.write_text(path.read_text().replace("timeout_s = 120.0", "timeout_s = 0.01"))
    found = dyno("ladder", "run", path, "--repeats", 1)
    assert found.exit_code == 3
    assert "timeout" in found.stderr
    assert {row.status for row in local_store().read("small").rows} == {"timeout"}


def test_a_cache_that_cannot_be_written(scenario_file, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "file" / "cache"))
    found = dyno("ladder", "run", scenario_file)
    assert found.exit_code == 2
    assert "DYNO_CACHE_DIR" in found.stderr


def test_rows_that_cannot_be_written(scenario_file, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DYNO_RESULTS_DIR", str(tmp_path / "file" / "rows"))
    found = dyno("ladder", "run", scenario_file, "--repeats", 1)
    assert found.exit_code == 2
    assert "no room for a row" in found.stderr
    assert "nothing was measured" in found.stderr


@pytest.mark.parametrize("command", [(), ("ladder",), ("ladder", "run"), ("standings",), ("passport",), ("engine",)])
def test_every_command_has_help(command):
    found = dyno(*command, "--help")
    assert found.exit_code == 0
    assert "Usage" in found.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dyno ladder run fl", "flights"),
        ("dyno ladder run flights --contenders catboost,lig", "catboost,lightgbm"),
        ("dyno ladder plan cpu-pairs --rungs tall,msd-y", "tall,msd-year"),
    ],
)
def test_shell_completion(typed, offered):
    asked = {"_DYNO_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    assert CliRunner().invoke(app, env=asked, prog_name="dyno").stdout.split() == [offered]


def test_every_ladder_command_shows_an_example():
    for command in ("list", "plan", "run"):
        assert "Example: dyno ladder" in dyno("ladder", command, "--help").stdout


@pytest.fixture
def strict_thresholds(tmp_path, monkeypatch):
    """This host is rejected, whatever it is."""
    (tmp_path / "strict.toml").write_text("[memory-limit]\nfail_below = 1e9\nwarn_below = 1e9\n")
    monkeypatch.setenv("DYNO_THRESHOLDS", str(tmp_path / "strict.toml"))


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def data_in(cache):
    return list(cache.rglob("*.npy"))


@pytest.mark.parametrize("accepted", [(), ("--accept-unhealthy",)])
def test_a_cpu_ladder_on_a_rejected_host_runs_and_its_rows_are_marked(scenario_file, strict_thresholds, accepted):
    found = dyno("ladder", "run", scenario_file, "--repeats", 1, *accepted)
    assert found.exit_code == 3
    assert "host: memory-limit" in found.stderr
    assert "host: rejected, and run all the same" in found.stderr
    rows = local_store().read("small").rows
    assert [(row.status, row.valid) for row in rows] == [("ok", False)] * 2
    assert all("memory-limit" in row.invalid_reason for row in rows)


def test_more_threads_than_cores_are_usage_unless_accepted(scenario_file, empty_cache):
    cores = len(os.sched_getaffinity(0))
    found = dyno("ladder", "run", scenario_file, "--threads", f"1,{cores + 1}")
    assert found.exit_code == 2
    assert re.search(rf"{cores + 1} threads are more than the \d+ cores", found.stderr)
    assert "--accept-unhealthy" in found.stderr
    assert not data_in(empty_cache)
    arguments = ("--threads", cores + 1, "--repeats", 1, "--contenders", "lightgbm", "--accept-unhealthy")
    assert "threads are more" not in dyno("ladder", "run", scenario_file, *arguments).stderr
    assert [row.threads for row in local_store().read("small").rows] == [cores + 1]


@WITHOUT_GPU
def test_a_gpu_ladder_needs_a_gpu(scenario_file, empty_cache):
    scenario_file.write_text(scenario_file.read_text().replace("repeats = 2", 'repeats = 1\ntarget = "gpu"'))
    found = dyno("ladder", "run", scenario_file)
    assert found.exit_code == 4
    assert "host: gpu: no NVIDIA GPU" in found.stderr
    assert not data_in(empty_cache)


@WITHOUT_GPU
def test_a_gpu_ladder_that_runs_all_the_same_says_what_is_missing(scenario_file):
    text = scenario_file.read_text().replace("repeats = 2", 'repeats = 1\ntarget = "gpu"')
    scenario_file.write_text(text.replace('"xgboost-depthwise"', '"engine-depthwise"'))
    assert dyno("ladder", "run", scenario_file, "--accept-unhealthy").exit_code == 3
    rows = {row.contender: row for row in local_store().read("small").rows}
    assert {(row.device, row.valid) for row in rows.values()} == {("cuda", False)}
    assert rows["engine-depthwise"].status == "error"
    assert "CuPy" in rows["engine-depthwise"].message
    assert rows["lightgbm"].status == "unsupported"
    assert "built without CUDA" in rows["lightgbm"].message


def test_thresholds_that_cannot_be_read_are_usage(scenario_file, monkeypatch):
    monkeypatch.setenv("DYNO_THRESHOLDS", "none.toml")
    found = dyno("ladder", "run", scenario_file)
    assert found.exit_code == 2
    assert "none.toml" in found.stderr


def test_a_measured_row_is_explained_by_its_name(scenario_file):
    dyno("ladder", "run", scenario_file, "--repeats", 1, "--contenders", "lightgbm")
    found = dyno("probe", "--explain-fit", "small:1")
    assert found.exit_code == 3
    assert "lightgbm (small:1)" in found.stdout
    assert "a fit on the CPU waits for no device" in found.stderr
    assert dyno("probe", "--explain-fit", "small:99").exit_code == 2
