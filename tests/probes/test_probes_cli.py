import json

from typer.testing import CliRunner

from probes.cli import probes_app
from probes.passport import take_passport


def test_the_passport_is_one_json_object():
    found = CliRunner().invoke(probes_app, ["passport", "--json"])
    assert found.exit_code == 0
    shown = json.loads(found.stdout)
    assert shown["digest"] == take_passport()["digest"]
    assert shown["gpu"] is None


def test_the_passport_says_what_is_unknown():
    found = CliRunner().invoke(probes_app, ["passport"])
    assert found.exit_code == 0
    assert take_passport()["digest"] in found.stdout
    assert "unknown" in found.stdout


def test_an_unknown_option_is_usage():
    assert CliRunner().invoke(probes_app, ["passport", "--yaml"]).exit_code == 2
