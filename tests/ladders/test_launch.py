import time
from pathlib import Path

import pytest

from ladders.launch import launch


def test_an_honest_worker(job):
    result = launch(job("ladders.contenders.xgboost"), 60)
    assert result["status"] == "ok"
    assert result["train_s"] > 0


@pytest.mark.parametrize(
    ("how", "status", "told"),
    [
        ("raise", "error", "RuntimeError: no luck today"),
        ("memory", "oom", "cannot have 9 GB"),
        ("bad_alloc", "oom", "bad_alloc"),
        ("segfault", "error", "SIGSEGV"),
        ("exit", "error", "exit code 7 and no result; its last words: a library's farewell"),
        ("nan", "error", "finite"),
    ],
)
def test_however_it_ends_it_is_a_result(job, monkeypatch, how, status, told):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("MISBEHAVE", how)
    result = launch(job("misbehaving"), 60)
    assert result["status"] == status
    assert told in result["message"]


def test_killed_by_someone_else_is_no_lack_of_memory(job, monkeypatch):
    """Unless the kernel does not count, or kills in the same moment, in which case it says so."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("MISBEHAVE", "kill")
    result = launch(job("misbehaving"), 60)
    assert (result["status"], "memory" in result["message"]) in {("error", False), ("oom", True)}


def test_a_hang_ends_at_the_timeout(job, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("MISBEHAVE", "hang")
    start = time.monotonic()
    result = launch(job("misbehaving"), 3)
    assert result["status"] == "timeout"
    assert "3 s" in result["message"]
    assert time.monotonic() - start < 20


def test_a_module_that_is_not_there(job):
    result = launch(job("ladders.contenders.none"), 60)
    assert result["status"] == "error"
    assert "ladders.contenders.none" in result["message"]


@pytest.mark.parametrize("hashes", ["0" * 64, ""])
def test_data_other_than_planned(job, hashes):
    changed = job("ladders.contenders.xgboost").model_copy(update={"data_hash": hashes})
    result = launch(changed, 60)
    assert result["status"] == "error"
    assert "run again" in result["message"]
