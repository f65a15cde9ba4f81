import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.testing import CliRunner

from ladders.bisect import Journal, bisect, line_of
from ladders.cli import app
from results.store import local_store
from tests.ladders.history import MEASURE, git, make_history

PHASES = {"histogram": 1.0, "partition": 0.4}


def state(slower=1.0, noise=0.05, seed=0, broken=False, **exact):
    phases = {**PHASES, "histogram": slower * PHASES["histogram"]}
    exact = {"syncs": 4, "model_digest": "aa", "rmse": 24.5, **exact}
    return json.dumps({"phases": phases, "noise": noise, "seed": seed, "broken": broken, "exact": exact})


@pytest.fixture
def counter(tmp_path, monkeypatch):
    """How many fits were made, a line each."""
    path = tmp_path / "counter"
    path.write_text("")
    monkeypatch.setenv("DYNO_TEST_COUNTER", str(path))
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "cache"))
    return path


def dyno(repository, good, bad, *options):
    words = ["bisect", good, bad, "--repo", str(repository), "--measure", MEASURE, "--json", *options]
    found = CliRunner().invoke(app, [str(word) for word in words])
    return found, json.loads(found.stdout) if found.stdout.startswith("{") else None


def simulated(seed, n, planted, noise=0.05, size=0.1):
    """A line of commits and its measuring, in memory: 10 % slower from a planted place on."""
    rng, line = np.random.default_rng(seed), [f"{place:040x}" for place in range(n)]

    def measure(commit):
        slower = 1 + size if planted is not None and line.index(commit) >= planted else 1.0
        factor = float(np.exp(noise * rng.standard_normal()))
        phases = {"histogram": slower * factor, "partition": 0.0001 * factor}
        syncs = 4 + (planted is not None and line.index(commit) >= planted)
        return {"train_s": sum(phases.values()), "phases": phases, "syncs": syncs, "model_digest": f"{syncs:08x}"}

    return line, measure


@pytest.mark.parametrize("metric", ["train_s", "phase:histogram", "syncs", "model_digest"])
def test_the_planted_commit_in_19_of_20(metric, tmp_path):
    right = 0
    for seed in range(20):
        planted = int(np.random.default_rng(seed).integers(1, 16))
        line, measure = simulated(seed, 16, planted)
        found = bisect(line, metric, measure, Journal(tmp_path, str(seed), metric), "host", 0.05)
        right += found.answer == "found" and found.commits == (line[planted],)
        assert found.runs <= found.planned
    assert right >= 19


@pytest.mark.parametrize("metric", ["train_s", "syncs"])
def test_a_flat_history_in_19_of_20(metric, tmp_path):
    answers = []
    for seed in range(20):
        line, measure = simulated(seed, 16, None)
        answers.append(bisect(line, metric, measure, Journal(tmp_path, str(seed), metric), "host", 0.05).answer)
    assert answers.count("no regression") >= 19


def test_a_slower_phase_in_a_repository(tmp_path, counter):
    commits = make_history(tmp_path / "repo", [state(1.2 if place >= 5 else 1.0, noise=0.02) for place in range(8)])
    found, values = dyno(tmp_path / "repo", commits[0], "main")
    assert found.exit_code == 1, found.output
    assert values["answer"] == "found"
    assert values["commits"] == [commits[5]]
    assert next(iter(values["moved"])) == "histogram"
    assert values["runs"] == len(counter.read_text().splitlines()) <= values["planned"]
    assert git(tmp_path / "repo", "worktree", "list").count("\n") == 0
    text = CliRunner().invoke(
        app, ["bisect", commits[0], "main", "--repo", str(tmp_path / "repo"), "--measure", MEASURE]
    )
    assert "commit 5: train_s" in text.stdout
    assert "phases: histogram" in text.stdout
    assert values["runs"] == len(counter.read_text().splitlines()), "the journal answers, nothing is measured again"


@pytest.mark.parametrize(
    ("metric", "changed"), [("syncs", {"syncs": 5}), ("model_digest", {"model_digest": "ab"}), ("rmse", {"rmse": 24.6})]
)
def test_what_is_exact_needs_one_fit_a_commit(metric, changed, tmp_path, counter):
    commits = make_history(tmp_path / "repo", [state(**(changed if place >= 3 else {})) for place in range(8)])
    found, values = dyno(tmp_path / "repo", commits[0], commits[-1], "--metric", metric)
    assert found.exit_code == 1, found.output
    assert values["commits"] == [commits[3]]
    fits = counter.read_text().splitlines()
    assert len(fits) == len(set(fits)) <= 5


def test_commits_that_do_not_build_are_skipped_and_may_be_the_one(tmp_path, counter):
    states = [state(syncs=5 if place >= 4 else 4, broken=place in (3, 4, 6)) for place in range(8)]
    commits = make_history(tmp_path / "repo", states)
    found, values = dyno(tmp_path / "repo", commits[0], commits[-1], "--metric", "syncs")
    assert found.exit_code == 1, found.output
    assert values["commits"] == commits[3:6]
    assert set(values["skipped"]) <= {commits[3], commits[4], commits[6]}
    assert "does not build" in next(iter(values["skipped"].values()))


def test_an_end_that_cannot_be_measured_is_nothing_measured(tmp_path, counter):
    commits = make_history(tmp_path / "repo", [state(broken=True), state()])
    found, _ = dyno(tmp_path / "repo", commits[0], commits[1], "--metric", "syncs")
    assert found.exit_code == 3
    assert "does not build" in found.stderr


def test_killed_and_called_again_it_goes_on(tmp_path, counter):
    commits = make_history(tmp_path / "repo", [state(1.3 if place >= 5 else 1.0, noise=0.02) for place in range(8)])
    words = ["bisect", commits[0], commits[-1], "--repo", str(tmp_path / "repo"), "--measure", MEASURE, "--json"]
    child = subprocess.Popen([sys.executable, "-m", "ladders.cli", *words], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(counter.read_text().splitlines()) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    (journal,) = (local_store().directory / "bisect").glob("*.jsonl")
    kept = len(journal.read_text().splitlines())
    assert 3 <= kept <= len(counter.read_text().splitlines())
    found, values = dyno(tmp_path / "repo", commits[0], commits[-1])
    assert values["commits"] == [commits[5]]
    assert f"{kept} measurements are there already" in found.stderr
    assert len(counter.read_text().splitlines()) - values["runs"] <= 1, "the kill lost the fit in flight at most"


def test_times_of_another_host_are_passed_over_and_counts_are_not(tmp_path):
    line, measure = simulated(0, 8, 3, noise=0.001)
    for metric, fits in (("train_s", True), ("syncs", False)):
        journal = Journal(tmp_path, metric)
        bisect(line, metric, measure, journal, "host", 0.05)
        before = len(journal.read())
        again = bisect(line, metric, measure, journal, "another host", 0.05)
        assert again.commits == (line[3],)
        assert (len(journal.read()) > before) == fits


def test_a_damaged_journal_loses_the_damaged_line_only(tmp_path):
    line, measure = simulated(0, 8, 3)
    journal = Journal(tmp_path, "x")
    bisect(line, "syncs", measure, journal, "host", 0.05)
    whole = len(journal.read())
    with open(journal.path, "a") as file:
        file.write('{"commit": "half\n[]\n')
    assert len(journal.read()) == whole


@pytest.mark.parametrize("value", [None, "fast", float("nan"), -1.0])
def test_a_fit_without_the_metric_is_told(value, tmp_path):
    with pytest.raises(ValueError, match="cannot be bisected"):
        bisect(["a" * 40, "b" * 40], "train_s", lambda commit: {"train_s": value}, Journal(tmp_path), "host", 0.05)


def test_lines(tmp_path):
    commits = make_history(tmp_path / "repo", [state(seed=place) for place in range(3)])
    assert line_of(tmp_path / "repo", commits[0], commits[2]) == commits
    with pytest.raises(ValueError, match="swapped"):
        line_of(tmp_path / "repo", commits[2], commits[0])
    with pytest.raises(ValueError, match="one commit"):
        line_of(tmp_path / "repo", commits[1], commits[1])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--metric", "speed"), "must be one of"),
        (("--smallest", "0"), "above 0"),
    ],
)
def test_usage(options, told, tmp_path, counter):
    commits = make_history(tmp_path / "repo", [state(seed=place) for place in range(2)])
    found, _ = dyno(tmp_path / "repo", commits[0], commits[1], *options)
    assert found.exit_code == 2
    assert told in found.stderr
    found, _ = dyno(tmp_path / "repo", "no-such-tag", "main")
    assert found.exit_code == 2
    assert "no commit, tag or branch" in found.stderr


@pytest.mark.parametrize(
    ("command", "told"),
    [("true", "printed no line"), ("echo RESULT nonsense", "printed no line"), ("echo oops >&2; exit 3", "oops")],
)
def test_commands_that_show_nothing(command, told, tmp_path, counter):
    commits = make_history(tmp_path / "repo", [state(seed=place) for place in range(2)])
    words = ["bisect", commits[0], commits[1], "--repo", str(tmp_path / "repo"), "--measure", command]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 3
    assert told in found.stderr


def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path, counter):
    commits = make_history(tmp_path / "repo", [state(seed=place) for place in range(2)])
    words = [
        "bisect",
        *commits,
        "--repo",
        str(tmp_path / "repo"),
        "--measure",
        "sleep 60 & sleep 60",
        "--timeout",
        "0.2",
    ]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 3
    assert "0.2 s" in found.stderr
