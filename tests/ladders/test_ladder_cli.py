import json

import pytest
from typer.testing import CliRunner

from ladders.cli import app
from results.store import local_store


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
    ],
)
@pytest.mark.parametrize("command", ["plan", "run"])
def test_usage(command, arguments, told):
    found = dyno("ladder", command, *arguments)
    assert found.exit_code == 2
    assert told in found.stderr


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
    assert "cannot append" in found.stderr


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
