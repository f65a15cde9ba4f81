import json

from typer.testing import CliRunner

from ladders.cli import app
from probes.passport import take_passport
from results.store import local_store
from tests.results.history import noisy


def dyno(*words):
    return CliRunner().invoke(app, ["plan", *words])


def fill(passport):
    own = {"ladder": "small", "rung": "1k", "passport_before": passport, "passport_after": passport}
    rival = {"contender": "xgboost-depthwise", "library": "xgboost", "knobs_asked": {"other": 1}}
    for row in [*noisy(0, 3, 5, 0.01, **own), *noisy(1, 3, 5, 0.02, **own, **rival)]:
        local_store().append(row)


def test_blocks_and_minutes_from_this_hosts_rows():
    fill({"digest": take_passport()["digest"]})
    found = dyno("--mde", "3%", "--json")
    assert found.exit_code == 0, found.output
    (one,) = json.loads(found.stdout)
    assert (one["contender"], one["control"]) == ("engine-depthwise", "xgboost-depthwise")
    assert 5 < one["blocks"] < 120
    assert one["minutes"] > 0
    assert one["power"] >= 0.9
    shown = dyno("--mde", "3%")
    assert "engine-depthwise" in shown.stdout
    assert "--band 0.015" in shown.stdout


def test_rows_of_another_host_say_nothing():
    fill({"digest": "another host"})
    found = dyno("--mde", "3%")
    assert found.exit_code == 3
    assert "30 rows of small, none of them" in found.stderr
    assert "dyno ladder run small" in found.stderr


def test_usage():
    assert dyno("--mde", "much").exit_code == 2
    assert dyno("--mde", "3%", "--ladder", "smal").exit_code == 2
    assert dyno().exit_code == 2
