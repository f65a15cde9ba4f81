import os
from pathlib import Path

import pytest

from probes.cores import Throttling, affinity, cpu_quota, memory_limit, throttling, usable_cores


def write(root: Path, files: dict[str, str]) -> Path:
    """A recorded host: what the kernel showed, file by file."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V2_MOUNT = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTS = (
    "31 23 0:27 {root} /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "32 23 0:28 {root} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
)


@pytest.fixture
def pod(tmp_path):
    """cgroup v2, own namespace: a pod of 16 cores inside a slice of 4."""
    return write(
        tmp_path,
        {
            "proc/self/cgroup": "0::/slice/pod\n",
            "proc/self/mountinfo": V2_MOUNT.format(root="/"),
            "sys/fs/cgroup/slice/pod/cpu.max": "1600000 100000\n",
            "sys/fs/cgroup/slice/cpu.max": "400000 100000\n",
            "sys/fs/cgroup/slice/pod/memory.max": "max\n",
            "sys/fs/cgroup/slice/memory.max": "8589934592\n",
            "sys/fs/cgroup/slice/pod/cpu.stat": (
                "usage_usec 900\nnr_periods 100\nnr_throttled 7\nthrottled_usec 2500000\n"
            ),
        },
    )


@pytest.fixture
def docker_v1(tmp_path):
    """cgroup v1 without a namespace: the path names the host's hierarchy, the mount shows only the container's part."""
    return write(
        tmp_path,
        {
            "proc/self/cgroup": "9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
            "proc/self/mountinfo": V1_MOUNTS.format(root="/docker/abc"),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "250000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.stat": "nr_periods 10\nnr_throttled 1\nthrottled_time 1500000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "4294967296\n",
        },
    )


def test_the_tightest_group_above_counts(pod):
    assert cpu_quota(pod) == 4.0
    assert memory_limit(pod) == 8 * 2**30
    assert throttling(pod) == Throttling(periods=100, throttled_periods=7, throttled_s=2.5)


def test_cgroup_v1_in_a_container(docker_v1):
    assert cpu_quota(docker_v1) == 2.5
    assert memory_limit(docker_v1) == 4 * 2**30
    assert throttling(docker_v1) == Throttling(periods=10, throttled_periods=1, throttled_s=1.5)


def test_no_limit_is_not_unknown(tmp_path):
    host = write(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/\n9:memory:/\n0::/\n",
            "proc/self/mountinfo": V1_MOUNTS.format(root="/"),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    )
    assert cpu_quota(host) == "unlimited"
    assert memory_limit(host) == "unlimited"


def test_a_path_outside_the_mount_falls_back_to_what_is_shown(pod):
    (pod / "proc/self/cgroup").write_text("0::/../../elsewhere\n")
    (pod / "sys/fs/cgroup/cpu.max").write_text("300000 100000\n")
    assert cpu_quota(pod) == 3.0


@pytest.mark.parametrize("text", ["", "garbage", "100000", "1 0\n", "-5 100000\n", "a b c"])
def test_what_cannot_be_understood_is_unknown(pod, text):
    for group in ("slice/pod", "slice"):
        (pod / "sys/fs/cgroup" / group / "cpu.max").write_text(text)
        (pod / "sys/fs/cgroup" / group / "memory.max").write_text("much\n")
        (pod / "sys/fs/cgroup" / group / "cpu.stat").write_text("nr_periods many\nnr_throttled\n")
    assert cpu_quota(pod) is None
    assert memory_limit(pod) is None
    assert throttling(pod) is None


def test_a_host_that_shows_nothing_is_unknown(tmp_path):
    assert cpu_quota(tmp_path) is None
    assert memory_limit(tmp_path) is None
    assert throttling(tmp_path) is None
    assert usable_cores(tmp_path) == len(affinity())


def test_the_smaller_of_affinity_and_quota_is_usable(pod):
    for quota in (50_000, 10**9):
        (pod / "sys/fs/cgroup/slice/cpu.max").write_text(f"{quota} 100000\n")
        (pod / "sys/fs/cgroup/slice/pod/cpu.max").write_text("max 100000\n")
        assert usable_cores(pod) == min(len(affinity()), quota / 100_000)


def test_affinity_follows_the_scheduler():
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert affinity() == [min(allowed)]
        assert usable_cores() <= 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_this_machine_answers():
    assert 0 < usable_cores() <= os.cpu_count()
    assert cpu_quota() in (None, "unlimited") or cpu_quota() > 0
