"""Cores by affinity and by quota, with the kernel's files as a directory tree of our own."""

import os

import pytest

from engine.cores import spinning_threads, usable_cores, worker_threads
from engine.errors import ParamError

ALLOWED = len(os.sched_getaffinity(0))


def cores(tmp_path, files, membership="0::/a/b\n", count=usable_cores):
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "cgroup" / "a" / "b").mkdir(parents=True, exist_ok=True)
    (tmp_path / "membership").write_text(membership)
    return count(tmp_path / "cgroup", tmp_path / "membership")


def test_here():
    assert 1 <= usable_cores() <= ALLOWED


def test_no_files_at_all(tmp_path):
    assert usable_cores(tmp_path / "nothing", tmp_path / "nothing") == ALLOWED


def test_no_limit(tmp_path):
    assert cores(tmp_path, {"a/b/cpu.max": "max 100000\n"}) == ALLOWED


@pytest.mark.parametrize("quota", [1000, 100_000])
def test_a_quota_of_a_core_or_less_is_one(tmp_path, quota):
    assert cores(tmp_path, {"a/b/cpu.max": f"{quota} 100000\n"}) == 1


def test_a_quota_above_the_affinity_does_not_raise_it(tmp_path):
    assert cores(tmp_path, {"a/b/cpu.max": f"{(ALLOWED + 3) * 100_000} 100000\n"}) == ALLOWED


def test_the_least_quota_on_the_way_up_holds(tmp_path):
    assert cores(tmp_path, {"a/cpu.max": "100000 100000\n", "a/b/cpu.max": "max 100000\n"}) == 1


def test_version_one(tmp_path):
    files = {"cpu/a/b/cpu.cfs_quota_us": "50000\n", "cpu/a/b/cpu.cfs_period_us": "100000\n"}
    assert cores(tmp_path, files, "3:cpu,cpuacct:/a/b\n0::/\n") == 1


def test_version_one_without_limit(tmp_path):
    files = {"cpu/a/b/cpu.cfs_quota_us": "-1\n", "cpu/a/b/cpu.cfs_period_us": "100000\n"}
    assert cores(tmp_path, files, "3:cpu,cpuacct:/a/b\n") == ALLOWED


def test_affinity(tmp_path):
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(everywhere)})
    try:
        assert usable_cores(tmp_path, tmp_path / "nothing") == 1
    finally:
        os.sched_setaffinity(0, everywhere)


def test_no_number_of_threads_is_one_a_core():
    assert worker_threads(0) == usable_cores()
    assert worker_threads(3) == 3


@pytest.mark.parametrize("asked", [-1, 4097, 1.5, "2", True, None])
def test_a_number_of_threads_that_is_none_is_refused(asked):
    with pytest.raises(ParamError, match=r"n_threads=.*4096"):
        worker_threads(asked)


def test_threads_spin_only_where_no_quota_is_used_up(tmp_path):
    assert cores(tmp_path, {"a/b/cpu.max": "max 100000\n"}, count=spinning_threads) == ALLOWED
    assert cores(tmp_path, {"a/b/cpu.max": f"{(ALLOWED + 3) * 100_000} 100000\n"}, count=spinning_threads) == 0
