import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from probes.cli import default_threads, probes_app
from probes.identity import TRACES
from probes.passport import take_passport
from probes.probe import PROBES, chosen
from probes.store import find_probe

WITHOUT_GPU = pytest.mark.skipif(
    any((Path("/") / trace).exists() for trace in TRACES), reason="this machine has a GPU: it says other things"
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("DYNO_THRESHOLDS", raising=False)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(probes_app, arguments)


def test_the_passport_is_one_json_object():
    found = run("passport", "--json")
    assert found.exit_code == 0
    shown = json.loads(found.stdout)
    assert shown["digest"] == take_passport()["digest"]


def test_the_passport_says_what_is_unknown():
    found = run("passport")
    assert found.exit_code == 0
    assert take_passport()["digest"] in found.stdout
    assert "unknown" in found.stdout


def test_a_cpu_is_probed_and_its_passport_kept():
    found = run("probe", "--for", "cpu", "--json")
    shown = json.loads(found.stdout)
    assert found.exit_code == shown["exit_code"] in (0, 4)
    assert [check["name"] for check in shown["checks"]] == [
        name for probe in chosen("cpu", quick=False) for name in probe.names
    ]
    figures = {check["name"]: check["value"] for check in shown["checks"]}
    assert figures["host-triad"] > 0
    passport = take_passport()
    assert passport["digest"] == shown["passport"]
    assert passport["probe"]["figures"]["host-triad"] == figures["host-triad"]


@WITHOUT_GPU
def test_a_machine_without_a_gpu_is_rejected_for_one():
    found = run("probe", "--quick", "--json")
    shown = json.loads(found.stdout)
    assert (found.exit_code, shown["verdict"], shown["target"]) == (4, "reject", "gpu")
    assert shown["reasons"][0].startswith("gpu: no NVIDIA GPU, and no driver")
    assert {check["verdict"] for check in shown["checks"] if check["name"].startswith("sync-")} == {"unknown"}
    assert find_probe(shown["passport"])["verdict"] == "reject"


@WITHOUT_GPU
def test_every_check_is_made_or_unknown():
    shown = json.loads(run("probe", "--json").stdout)
    assert sorted(check["name"] for check in shown["checks"]) == sorted(name for p in PROBES for name in p.names)


def test_the_table_ends_with_the_verdict_and_its_reasons():
    found = run("probe", "--for", "cpu", "--quick", "--threads", "100000")
    assert found.exit_code == 4
    table, _, verdict = found.stdout.partition("\nreject\n")
    assert "cpuset" in table
    assert "CPUs for 100000 threads" in verdict
    assert f"passport {take_passport()['digest']}" in verdict


def test_a_check_is_explained():
    found = run("probe", "--explain", "cpu-quota")
    assert found.exit_code == 0
    for word in ("warn below 1, fail below 0", "what to do", "source", "research/harness.md"):
        assert word in found.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("probe", "--explain", "sink-p50"), "nearest: 'sync-p50'"),
        (("probe", "--for", "tpu"), "tpu"),
        (("probe", "--threads", "0"), "threads"),
        (("probe", "--thresholds", "none.toml"), "cannot read"),
        (("probe", "--replay", "none.json"), "none.json"),
        (("passport", "--yaml"), "yaml"),
    ],
)
def test_usage_is_two(arguments, said):
    found = run(*arguments)
    assert found.exit_code == 2
    assert said in found.stderr


def test_a_users_thresholds_decide(tmp_path):
    strict = tmp_path / "strict.toml"
    strict.write_text("[memory-limit]\nfail_below = 1e9\nwarn_below = 1e9\n")
    found = run("probe", "--for", "cpu", "--quick", "--json", "--thresholds", str(strict))
    assert found.exit_code == 4
    assert json.loads(found.stdout)["reasons"][0].startswith("memory-limit")


def test_a_verdict_that_cannot_be_kept_is_given_all_the_same(cache):
    (cache / "probes").write_text("a file where the folder should be")
    found = run("probe", "--for", "cpu", "--quick", "--json")
    assert found.exit_code in (0, 4)
    assert "DYNO_CACHE_DIR" in found.stderr
    assert json.loads(found.stdout)["checks"]


def test_the_threads_are_cores_that_can_be_had():
    assert default_threads() >= 1


ROW = {
    "contender": "engine-depthwise",
    "device": "cuda",
    "fit_s": 11.0,
    "syncs": 20_000,
    "passport_before": {"digest": "abc", "probe": {"figures": {"sync-p50": 300.0}}},
}


@pytest.fixture
def row_file(tmp_path):
    def write(**changes):
        path = tmp_path / "rows.jsonl"
        path.write_text(json.dumps(ROW | changes) + "\n")
        return f"{path}:1"

    return write


def test_a_fit_is_explained_by_its_waits(row_file):
    found = run("probe", "--explain-fit", row_file())
    assert found.exit_code == 0
    assert "together 6 s of 11 s, 55%" in found.stdout
    assert "waits beyond a healthy host's (4 us each): 5.92 s" in found.stdout
    assert "not measured" in found.stdout
    values = json.loads(run("probe", "--explain-fit", row_file(), "--json").stdout)
    assert values["seconds"] == pytest.approx(6.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device": "cpu", "syncs": None}, "a fit on the CPU waits for no device"),
        ({"syncs": None}, "--trace FILE"),
        ({"passport_before": {"digest": "abc"}}, "run dyno probe before"),
        ({"passport_before": None}, "run dyno probe before"),
    ],
)
def test_a_fit_of_which_nothing_is_known(row_file, changes, said):
    found = run("probe", "--explain-fit", row_file(**changes))
    assert found.exit_code == 3
    assert said in found.stderr


def test_a_rivals_fit_is_explained_by_its_trace(row_file, tmp_path):
    trace = tmp_path / "api.csv"
    trace.write_text("Total Time (ns),Num Calls,Name\n7000000,10000,cudaStreamSynchronize\n")
    found = run("probe", "--explain-fit", row_file(contender="xgboost-depthwise", syncs=None), "--trace", str(trace))
    assert found.exit_code == 0
    assert "together 3 s of 11 s" in found.stdout
    assert "in the trace" in found.stdout
    assert "0.0070" in found.stdout


@pytest.mark.parametrize(
    "arguments",
    [("--explain-fit", "none.jsonl:1"), ("--trace", "api.csv"), ("--explain-fit", "none", "--trace", "none.csv")],
)
def test_a_row_or_trace_that_is_not_there_is_usage(arguments):
    assert run("probe", *arguments).exit_code == 2


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_ctrl_c_ends_the_probe_and_its_child(more):
    command = [sys.executable, "-c", "from probes.cli import probes_app; probes_app()", "probe", "--for", "cpu", *more]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        give_up = time.monotonic() + 10
        while not (children := psutil.Process(process.pid).children()):
            assert time.monotonic() < give_up
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "no verdict" in errors
    assert "Traceback" not in errors
    assert not psutil.wait_procs(children, timeout=5)[1]
