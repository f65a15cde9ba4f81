import os
import platform
import subprocess
import sys
from importlib.metadata import version

import psutil

from probes.host import read_host, read_load, read_software


def test_this_host_is_read():
    host = read_host()
    assert host.kernel == platform.release()
    assert host.logical_cpus == os.cpu_count()
    assert host.memory_bytes == psutil.virtual_memory().total
    assert host.affinity == sorted(os.sched_getaffinity(0))
    with open("/proc/sys/kernel/random/boot_id") as file:
        assert host.boot == file.read().strip()


def test_two_processes_of_one_container_agree():
    code = "from probes.host import read_host; print(repr(read_host()))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == repr(read_host())


def test_what_is_hidden_is_none(tmp_path):
    host = read_host(tmp_path)
    assert (host.boot, host.container, host.system, host.cpu_quota, host.memory_limit_bytes) == (None,) * 5


def test_a_recorded_host_is_read(tmp_path):
    (tmp_path / "proc/self/ns").mkdir(parents=True)
    (tmp_path / "proc/1").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(
        "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) 6952P\nmodel name\t: other\n"
    )
    (tmp_path / "etc/os-release").write_text('NAME="x"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    for name, number in (("pid", 1), ("mnt", 2)):
        (tmp_path / "proc/self/ns" / name).symlink_to(f"{name}:[{number}]")
    # Field 22 of proc(5) stat is the start time; the name in field 2 may hold anything.
    fields = [str(field) for field in range(3, 53)]
    (tmp_path / "proc/1/stat").write_text(f"1 (in it) 7) {' '.join(fields)}\n")
    host = read_host(tmp_path)
    assert host.processor == "Intel(R) Xeon(R) 6952P"
    assert host.system == "Debian GNU/Linux 12 (bookworm)"
    assert host.container == "pid:[1] mnt:[2] init:[22]"


def test_software_names_what_is_installed():
    software = read_software()
    assert software["python"] == platform.python_version()
    assert software["numpy"] == version("numpy")
    assert None not in software.values() or platform.libc_ver() == ("", "")


def test_load_is_of_now():
    load = read_load()
    assert 0 < load["memory_available_bytes"] <= psutil.virtual_memory().total
    assert load["load_1m"] >= 0
