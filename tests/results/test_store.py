import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from results.store import ROOM_BYTES, Store, StoreError, local_store, records_store

CONFTEST = Path(__file__).with_name("conftest.py")

WRITER = """
import runpy, sys
from results.store import Store
make_row = runpy.run_path(sys.argv[1])["make_row"]
store, writer, length, count = Store(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
for repeat in range(count):
    store.append(make_row(seed=writer, repeat=repeat, status="error", message="x" * length))
    print(repeat, flush=True)
"""


def start_writer(directory, writer, *, length, count):
    command = [sys.executable, "-c", WRITER, str(CONFTEST), str(directory), str(writer), str(length), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_rows_come_back_in_order_from_one_file_a_ladder(tmp_path, row):
    store = Store(tmp_path / "made" / "on" / "demand")
    written = [row(repeat=0), row(repeat=1), row(ladder="tall")]
    paths = [store.append(each) for each in written]
    assert [path.name for path in paths] == ["flights.jsonl", "flights.jsonl", "tall.jsonl"]
    assert store.read().rows == written
    assert store.read("tall").rows == written[2:]
    assert [(found.path.name, found.line) for found in store.read("flights").stored] == [
        ("flights.jsonl", 1),
        ("flights.jsonl", 2),
    ]


def test_a_directory_that_is_not_there_holds_nothing_and_is_not_made(tmp_path):
    content = Store(tmp_path / "none").read()
    assert content.rows == []
    assert content.problems == ()
    assert not (tmp_path / "none").exists()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_torn_tail_is_reported_and_never_merged(tmp_path, row, data):
    store, path = Store(tmp_path), tmp_path / "flights.jsonl"
    first, torn, after = row(repeat=0), row(repeat=1), row(repeat=2)
    whole = torn.to_line().encode()
    cut = data.draw(st.integers(0, len(whole)) | st.sampled_from([1, len(whole) - 1, len(whole)]))
    path.write_bytes(first.to_line().encode() + b"\n" + whole[:cut])

    survives = cut == len(whole)
    before = store.read()
    assert before.rows == [first] + [torn] * survives
    assert [problem.line for problem in before.problems] == [2] * (0 < cut < len(whole))
    assert all("torn last line" in str(problem) and f"{path}:2: " in str(problem) for problem in before.problems)

    store.append(after)
    content = store.read()
    assert content.rows == [first] + [torn] * survives + [after]
    assert len(content.problems) == len(before.problems)
    assert whole[:cut] in path.read_bytes()
    assert path.read_bytes().endswith(after.to_line().encode() + b"\n")


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_writer_stopped_at_any_moment_loses_nothing_it_acknowledged(tmp_path, row, stop):
    store, delays = Store(tmp_path), random.Random(20180130)
    acknowledged = set()
    for writer in range(6):
        process = start_writer(tmp_path, writer, length=18_000, count=10_000)
        assert process.stdout.readline() == "0\n", process.stderr.read()
        time.sleep(delays.uniform(0.0, 0.03))
        process.send_signal(stop)
        rest, _ = process.communicate(timeout=30)
        assert process.returncode != 0, "it finished before it was stopped: raise its count"
        # Python writes a line by one call; a last line without newline would be an acknowledgement cut short.
        acknowledged |= {(writer, 0)} | {(writer, int(line)) for line in rest.splitlines() if line}
        content = store.read()
        present = [(found.seed, found.repeat) for found in content.rows]
        assert len(present) == len(set(present))
        assert acknowledged <= set(present)
        assert len(content.problems) <= writer + 1
    damaged = store.read().problems
    store.append(row(seed=99))
    assert store.read().rows[-1].seed == 99
    assert len(store.read().problems) == len(damaged)


def test_four_processes_append_whole_lines_beside_each_other(tmp_path):
    processes = [start_writer(tmp_path, writer, length=9_000, count=15) for writer in range(4)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    content = Store(tmp_path).read()
    assert content.problems == ()
    assert sorted((row.seed, row.repeat) for row in content.rows) == [(w, k) for w in range(4) for k in range(15)]
    for writer in range(4):
        assert [row.repeat for row in content.rows if row.seed == writer] == list(range(15))


@pytest.mark.parametrize("room", [0, 1, 500])
def test_a_full_disk_takes_nothing_and_loses_nothing(tmp_path, row, room):
    store, path = Store(tmp_path), tmp_path / "flights.jsonl"
    store.append(row(repeat=0))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + room, hard))
    try:
        with pytest.raises(StoreError, match=r"flights\.jsonl.*nothing was lost.*DYNO_RESULTS_DIR"):
            store.append(row(repeat=1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    store.append(row(repeat=2))
    assert [found.repeat for found in store.read().rows] == [0, 2]


@pytest.mark.parametrize("room", [0, 1, ROOM_BYTES - 1])
def test_a_disk_without_room_for_a_row_is_an_error_before_the_fit(tmp_path, room):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(StoreError, match=r"no room for a row.*nothing was measured.*DYNO_RESULTS_DIR"):
            Store(tmp_path).require_room()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    Store(tmp_path).require_room()
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_directory_is_said_and_still_readable(tmp_path, row):
    Store(tmp_path).append(row())
    (tmp_path / "flights.jsonl.lock").unlink()
    tmp_path.chmod(0o555)
    code = f"""
import os, runpy
from results.store import Store, StoreError
make_row = runpy.run_path({str(CONFTEST)!r})["make_row"]
os.chdir({str(tmp_path)!r})
if os.geteuid() == 0:
    os.setuid(65534)
assert len(Store(".").read().rows) == 1
try:
    Store(".").append(make_row())
except StoreError as error:
    print(error)
"""
    # Root writes anywhere: the child gives that up, after its imports and from inside the directory.
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Permission denied" in child.stdout, child.stderr
    assert len(Store(tmp_path).read().rows) == 1


def test_a_file_where_the_directory_should_be_is_said(tmp_path, row):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot append"):
        Store(tmp_path / "file").append(row())


def test_damage_in_the_middle_costs_one_line(tmp_path, row):
    store, path = Store(tmp_path), tmp_path / "flights.jsonl"
    for repeat in range(3):
        store.append(row(repeat=repeat))
    lines = path.read_bytes().split(b"\n")
    lines[1] = b"\x00" * len(lines[1])
    path.write_bytes(b"\n".join(lines) + b"[" * 100_000 + b"\n")
    content = store.read()
    assert [found.repeat for found in content.rows] == [0, 2]
    assert [problem.line for problem in content.problems] == [2, 4]
    assert not any("torn" in problem.reason for problem in content.problems)


def test_the_environment_names_the_local_store(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_RESULTS_DIR", str(tmp_path))
    assert local_store().directory == tmp_path
    monkeypatch.delenv("DYNO_RESULTS_DIR")
    assert local_store().directory.parts[-2:] == ("results", "local")
    assert records_store().directory.parts[-2:] == ("results", "records")
