import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from ladders.contenders import CONTENDERS
from ladders.plan import make_plan
from ladders.runner import answering, measure, missing, prepare_steps
from ladders.scenario import load_scenario
from results.store import Store, StoreError, local_store


@pytest.fixture
def plan(scenario_file):
    return make_plan(load_scenario(str(scenario_file)), cores=1, repeats=1)


def test_measured_steps_are_done_and_only_those(plan, tmp_path):
    store = Store(tmp_path / "rows")
    steps = prepare_steps(plan)
    assert missing(steps, []) == steps
    row = measure(steps[0], plan, store)
    assert row.status == "ok"
    assert row.knobs_asked == steps[0].fit.asked.model_dump()
    assert row.data_hash == steps[0].stored.digest
    rows = store.read("small").rows
    assert rows == [row]
    assert missing(steps, rows) == steps[1:]
    assert answering(steps, rows) == rows


OTHER_MEASUREMENTS = (
    {"release": "9.9"},
    {"commit": "0" * 40},
    {"scale": 0.5},
    {"threads": 3},
    {"repeat": 1},
    {"version": "0.0"},
    {"data_hash": "other"},
    {"rung": "other"},
    {"knobs_asked": {"max_depth": 9}},
    {"passport_before": {"digest": "other"}, "passport_after": {"digest": "other"}},
    {"status": "error", "message": "no"},
    {"status": "oom", "message": "no"},
    {"valid": False, "invalid_reason": "drift"},
)


def test_a_row_of_another_measurement_does_not_count(plan, tmp_path):
    (step, _) = prepare_steps(plan)
    row = measure(step, plan, Store(tmp_path))
    for changes in OTHER_MEASUREMENTS:
        other = type(row).model_validate({**row.model_dump(by_alias=True), **changes})
        assert missing([step], [other]) == [step], changes
        assert missing([step], [other, row]) == []


def test_a_failing_contender_is_a_row_and_the_run_goes_on(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    monkeypatch.setenv("MISBEHAVE", "segfault")
    monkeypatch.setitem(CONTENDERS, "lightgbm", replace(CONTENDERS["lightgbm"], module="misbehaving"))
    store = Store(tmp_path)
    steps = prepare_steps(plan)
    rows = {row.contender: row for row in (measure(step, plan, store) for step in steps)}
    assert rows["xgboost-depthwise"].status == "ok"
    assert rows["lightgbm"].status == "error"
    assert "SIGSEGV" in rows["lightgbm"].message
    assert [step.fit.contender for step in missing(steps, store.read("small").rows)] == ["lightgbm"]


def test_a_library_that_is_not_installed_is_unsupported_and_final(plan, tmp_path, monkeypatch):
    absent = replace(CONTENDERS["lightgbm"], package="no_such_package", distributions=("no-such",))
    monkeypatch.setitem(CONTENDERS, "lightgbm", absent)
    steps = prepare_steps(plan)
    (step,) = [step for step in steps if step.fit.contender == "lightgbm"]
    row = measure(step, plan, Store(tmp_path))
    assert row.status == "unsupported"
    assert "no-such is not installed; python -m pip install" in row.message
    assert missing([step], [row]) == []


def run_command(path, *more):
    return [sys.executable, "-m", "ladders.cli", "ladder", "run", str(path), "--threads", "1", "--json", *more]


def rows_when(count, process, deadline=90):
    """Wait until the store holds so many rows and the next worker is at work; returns the workers."""
    end = time.monotonic() + deadline
    while time.monotonic() < end and process.poll() is None:
        workers = psutil.Process(process.pid).children(recursive=True)
        if len(local_store().read("small").rows) >= count and workers:
            return workers
        time.sleep(0.02)
    raise AssertionError(f"no {count} rows within {deadline} s; exit code {process.poll()}")


def test_kill_leaves_whole_rows_no_workers_and_a_run_that_resumes(scenario_file, steady_tree):
    path = scenario_file
    with subprocess.Popen(run_command(path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        workers = rows_when(2, process)
        process.send_signal(signal.SIGKILL)
    alive = psutil.wait_procs(workers, timeout=10)[1]
    assert not alive
    content = local_store().read("small")
    assert not content.problems
    before = content.rows
    assert 2 <= len(before) < 4

    done = subprocess.run(run_command(path), capture_output=True, text=True, check=True)
    measured = [json.loads(line) for line in done.stdout.splitlines()]
    rows = local_store().read("small").rows
    assert rows[: len(before)] == before
    assert len(rows) == len(before) + len(measured) == 4
    assert len({(row.contender, row.repeat) for row in rows}) == 4

    again = subprocess.run(run_command(path), capture_output=True, text=True, check=True)
    assert again.stdout == ""
    fresh = subprocess.run(run_command(path, "--fresh", "--repeats", "1"), capture_output=True, text=True, check=True)
    assert len(fresh.stdout.splitlines()) == 2


def test_ctrl_c_stops_with_a_sentence_on_how_to_go_on(scenario_file):
    path = scenario_file
    with subprocess.Popen(run_command(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        workers = rows_when(1, process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Go on with the same command" in errors
    assert "Traceback" not in errors
    assert not psutil.wait_procs(workers, timeout=10)[1]
    assert not local_store().read("small").problems


def test_two_ladders_at_once_are_refused(scenario_file):
    path = scenario_file
    with subprocess.Popen(run_command(path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        rows_when(1, process)
        process.send_signal(signal.SIGSTOP)  # or it may be done before the second has started
        second = subprocess.run(run_command(path), capture_output=True, text=True)
        process.kill()
    assert second.returncode == 2
    assert "another ladder is running" in second.stderr


def test_rows_that_could_not_be_kept_are_refused_before_the_fit(plan, tmp_path):
    in_the_way = tmp_path / "a file where the directory should be"
    in_the_way.touch()
    with pytest.raises(StoreError, match="nothing was measured"):
        measure(prepare_steps(plan)[0], plan, Store(in_the_way))


def test_a_row_stands_between_two_probes(plan, tmp_path):
    row = measure(prepare_steps(plan)[0], plan, Store(tmp_path))
    for passport in (row.passport_before, row.passport_after):
        assert passport["quick"]["verdict"] in ("accept", "accept with warnings")
        assert passport["quick"]["figures"]["cpuset"] >= 0
    assert row.valid


def test_a_host_that_is_rejected_marks_the_row(plan, tmp_path, monkeypatch):
    (tmp_path / "strict.toml").write_text("[memory-limit]\nfail_below = 1e9\nwarn_below = 1e9\n")
    monkeypatch.setenv("DYNO_THRESHOLDS", str(tmp_path / "strict.toml"))
    steps = prepare_steps(plan)
    row = measure(steps[0], plan, Store(tmp_path))
    assert (row.status, row.valid) == ("ok", False)
    assert row.invalid_reason.startswith("rejected before the fit: memory-limit")
    assert missing(steps, [row]) == steps


def test_repeats_see_different_data_and_every_contender_of_a_block_the_same(scenario_file, tmp_path):
    text = scenario_file.read_text()
    scenario_file.write_text(text.replace(", seed = 1 }", " }\nvaried = { seed = [1, 2, 3] }"))
    plan = make_plan(load_scenario(str(scenario_file)), cores=1, repeats=4)
    steps = prepare_steps(plan)
    seen = {repeat: {step.stored.digest for step in steps if step.fit.repeat == repeat} for repeat in range(4)}
    assert all(len(hashes) == 1 for hashes in seen.values())
    assert seen[0] == seen[3]
    assert len(set.union(*seen.values())) == 3
    assert len({step.fields["data_family"] for step in steps}) == 1
    fewer = prepare_steps(make_plan(load_scenario(str(scenario_file)), cores=1, repeats=1))
    assert [step.fields for step in fewer] == [{**step.fields} for step in steps[:2]]
    second = next(step for step in steps if step.fit.repeat == 1)
    row = measure(second, plan, Store(tmp_path / "rows"))
    assert (row.status, row.data_hash) == ("ok", second.stored.digest)
    assert missing(steps, [row]) == [step for step in steps if step is not second]


def test_data_that_do_not_vary_have_no_family(plan):
    assert {step.fields["data_family"] for step in prepare_steps(plan)} == {None}
