import json

import pytest
from typer.testing import CliRunner

from ladders.cli import app
from results.store import local_store
from tests.ladders.history import git
from tests.ladders.project import make_project


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Five commits: two alike, one 10 % slower with other bits, one that does not build, one as before that."""
    slower = ("0.3", 1.1, "ab")
    folder = tmp_path_factory.mktemp("compare")
    make_project(folder / "project", [("0.1", 1.0, "aa"), ("0.2", 1.0, "aa"), slower, None, slower])
    return folder


@pytest.fixture
def project(folder, monkeypatch):
    """The project, with builds that the tests of this file share."""
    monkeypatch.setenv("DYNO_CACHE_DIR", str(folder / "cache"))
    return folder / "project"


def dyno(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def compare(project, scenario_file, a, b, *options):
    words = ["results", "compare", a, b, "--repo", project, "--ladder", scenario_file, "--control", "lightgbm"]
    return dyno(*words, "--contender", "engine-depthwise", "--threads", 1, *options)


def test_slower_then_judged_again_from_its_rows(project, scenario_file):
    found = compare(project, scenario_file, "main~4", "main~2", "--blocks", 7, "--json")
    assert found.exit_code == 1, found.output
    (one,) = json.loads(found.stdout)["comparisons"]
    assert (one["name"], one["blocks"], one["control_contender"]) == ("slower", 5, "lightgbm")
    assert one["ratio"] == pytest.approx(1.1)
    assert one["moved"] == {"histogram": 1.0}
    assert one["changed"]["model_digest"] == {"a": "aa" * 32, "b": "ab" * 32}

    rows = local_store().read("small").rows
    assert len(rows) == 5 * 8
    assert [row.contender for row in rows[:8]] == ["engine-depthwise", "lightgbm"] * 4
    first, last = git(project, "rev-parse", "main~4"), git(project, "rev-parse", "main~2")
    assert [row.commit for row in rows[:8:2]] == [first, last, last, first]
    assert {row.release for row in rows} == {"0.1", "0.3"}
    assert f"dyno results compare {first} {last}" in rows[0].command

    again = compare(project, scenario_file, "main~4", "main~2", "--stored")
    assert again.exit_code == 1, again.output
    assert "slower" in again.stdout
    assert len(local_store().read("small").rows) == len(rows)


def test_the_same(project, scenario_file):
    found = compare(project, scenario_file, "main~4", "main~3", "--blocks", 5)
    assert found.exit_code == 0, found.output
    assert found.stdout.startswith("same: small/tall engine-depthwise")


def test_few_blocks_are_ambiguous(project, scenario_file):
    assert compare(project, scenario_file, "main~4", "main~2", "--blocks", 1).exit_code == 5


def test_bisection_by_the_ladder_skips_what_does_not_build(project, scenario_file):
    words = ["bisect", "main~4", "main", "--repo", project, "--ladder", scenario_file, "--threads", 1, "--json"]
    found = dyno(*words, "--metric", "model_digest")
    assert found.exit_code == 1, found.output
    assert json.loads(found.stdout)["commits"] == [git(project, "rev-parse", "main~2")]
    times = json.loads(dyno(*words, "--metric", "phase:histogram").stdout)
    assert times["commits"] == [git(project, "rev-parse", "main~2")]
    assert times["moved"] == {"histogram": 1.0}


def test_what_cannot_be_compared_says_why(project, scenario_file):
    found = compare(project, scenario_file, "main~2", "main~1")
    assert found.exit_code == 2
    assert "does not build" in found.stderr
    found = compare(project, scenario_file, "main~4", "main~2", "--stored")
    assert found.exit_code == 3
    assert "measure it first" in found.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--metric", "speed"), "--metric 'speed'"),
        (("--band", "0"), "above 0"),
        (("--blocks", 0), "--blocks 0"),
        (("--rung", "talk"), "did you mean 'tall'"),
        (("--contender", "catbost"), "did you mean 'catboost'"),
    ],
)
def test_usage(options, told, project, scenario_file):
    words = [
        "results",
        "compare",
        "main~4",
        "main~3",
        "--repo",
        project,
        "--ladder",
        scenario_file,
        "--control",
        "none",
    ]
    found = dyno(*words, *options)
    assert found.exit_code == 2
    assert told in found.stderr


def test_a_paired_control_needs_the_engine(project, scenario_file):
    found = dyno("results", "compare", "main~4", "main~3", "--repo", project, "--contender", "lightgbm")
    assert found.exit_code == 2
    assert "name a rival or none" in found.stderr
