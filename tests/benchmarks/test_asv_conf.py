"""asv.conf.json says nothing that asv does not know: asv itself takes any key and passes over those it mistypes."""

import json
import re
from pathlib import Path

import asv.build_cache
import asv.config
import asv.environment
import asv.plugins.virtualenv
import jsonschema
import pytest
from asv import util

ROOT = Path(__file__).parents[2]

JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def settings():
    """Plain JSON, without the comments that asv would let pass."""
    return json.loads((ROOT / "asv.conf.json").read_text())


def schema():
    """Of the installed asv: every key that its Config has or its code asks for, typed as its default is."""
    defaults = {**vars(asv.config.Config()), "version": 1}
    for module in (asv.build_cache, asv.environment):
        for name in re.findall(r"getattr\(conf, ['\"](\w+)['\"]|\bconf\.(\w+)", Path(module.__file__).read_text()):
            defaults.setdefault(next(filter(None, name)), None)
    properties = {
        name: {} if value is None else {"type": "number" if type(value) is float else JSON_TYPES[type(value)]}
        for name, value in defaults.items()
    }
    commands = {"type": "array", "items": {"type": "string"}}
    properties |= {f"{step}_command": commands for step in ("build", "install", "uninstall")}
    properties |= {
        "repo": {"type": "string"},
        "branches": commands,
        "build_cache_size": {"type": "integer"},
        "environment_type": {"enum": [tool.tool_name for tool in util.iter_subclasses(asv.environment.Environment)]},
        "launch_method": {"enum": ["auto", "spawn", "forkserver"]},
    }
    required = ["version", "project", "repo"]
    return {"type": "object", "properties": properties, "additionalProperties": False, "required": required}


def test_is_valid():
    jsonschema.validate(settings(), schema())


@pytest.mark.parametrize(
    "wrong",
    [
        {"regression_thresholds": {}},  # pandas has this typo of regressions_thresholds
        {"launch_method": "fork"},
        {"build_cache_size": "20"},
        {"environment_type": "venv"},
        {"install_command": "python -m pip install {wheel_file}"},
    ],
)
def test_the_schema_sees_what_asv_would_pass_over(wrong):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**settings(), **wrong}, schema())


def test_is_what_asv_loads():
    conf = asv.config.Config.load(str(ROOT / "asv.conf.json"))
    assert (conf.project, conf.environment_type, conf.launch_method) == ("gbt-dyno", "virtualenv", "spawn")
    assert conf.build_cache_size >= 10


def test_what_asv_writes_is_ignored_by_git():
    conf = asv.config.Config.load(str(ROOT / "asv.conf.json"))
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {Path(folder).parts[0] + "/" for folder in (conf.env_dir, conf.results_dir, conf.html_dir)} <= set(ignored)
