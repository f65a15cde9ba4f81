"""Builds the native module under a sanitizer, faults planted beside the right code, and runs tests on it.

Python itself is not instrumented; the sanitizer's library is loaded before it and sees its locks. While a fault is
live every worker of a team has its share of every run, whatever the system schedules: a race shows only where two
threads had work, which a busy machine does not grant (CI once saw none in five attempts). With no fault live
the schedule is the team's own. Imports the machinery of tests/engine/planted_faults.py only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import nanobind

from tests.engine.planted_faults import ENGINE, SWITCH, Fault, library_of_compiler, read_faults, with_fault

FAULTS = Path(__file__).with_name("faults.toml")
AT_START = Path(__file__).with_name("at_start")
FOUND = 66
"""Exit code of a process in which a sanitizer found something."""

SHARED_OUT = {
    "for (;;) {": "for (long long share = worker;; share += size()) {",
    "const long long i = next_.fetch_add(1, std::memory_order_relaxed);": (
        "const long long i = FAULT ? share : next_.fetch_add(1, std::memory_order_relaxed);"
    ),
    "if ((gate & kOpen) == 0) continue;": (
        "if ((gate & kOpen) == 0) continue;\n            entered_.fetch_add(1, std::memory_order_relaxed);"
    ),
    "gate_.fetch_and(~kOpen);": (
        "while (FAULT && entered_.load(std::memory_order_relaxed) != threads()) std::this_thread::yield();\n"
        "        entered_.store(0, std::memory_order_relaxed);\n"
        "        gate_.fetch_and(~kOpen);"
    ),
    "long long n_tasks_ = 0;": (
        "long long n_tasks_ = 0;\n"
        "    std::atomic<std::size_t> entered_{0};\n"
        "    std::size_t threads() const { return state_->threads.size(); }"
    ),
}
"""In team.hpp: worker w has the tasks w, w + size, ..., and a run stays open until every worker has entered it."""


@dataclass(frozen=True)
class Sanitizer:
    """How to build for it, and how to run."""

    options: tuple[str, ...]
    library: str
    settings: str

    def environment(self) -> dict[str, str]:
        """What a process needs that loads a module built for it."""
        # With the C++ library, or AddressSanitizer would not find what throws exceptions: Python is no C++ program.
        libraries = f"{library_of_compiler(self.library)} {library_of_compiler('libstdc++.so.6')}"
        options = dict.fromkeys(("TSAN_OPTIONS", "ASAN_OPTIONS", "UBSAN_OPTIONS"), f"{self.settings} exitcode={FOUND}")
        return {"LD_PRELOAD": libraries} | options


SANITIZERS = {
    "thread": Sanitizer(("-fsanitize=thread",), "libtsan.so", "die_after_fork=0"),
    "address": Sanitizer(
        ("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
        "libasan.so",
        "detect_leaks=0 print_stacktrace=1",  # Python never frees all it has
    ),
}


def native_faults() -> list[Fault]:
    """As listed; `found_by` names the sanitizer, `problem` the tests that it needs for that."""
    return read_faults(FAULTS)


def build(sanitizer: Sanitizer, folder: Path) -> None:
    """Make _native.so in `folder`, from a copy of the sources there, every fault in it switched off."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    _plant(folder)
    headers = [nanobind.include_dir(), Path(nanobind.include_dir()).parent / "ext/robin_map/include"]
    flags = ["-std=c++20", "-O1", "-g1", "-fPIC", "-shared", "-pthread", "-fvisibility=hidden", "-fno-strict-aliasing"]
    flags += ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", *sanitizer.options]
    flags += ["-include", "planted_fault.hpp"]
    flags += [f"-I{path}" for path in (folder, *headers, sysconfig.get_path("include"))]
    sources = [*sorted(folder.glob("*.cpp")), Path(nanobind.source_dir()) / "nb_combined.cpp"]
    subprocess.run(["c++", *flags, *sources, "-o", folder / "_native.so"], check=True)


def run_tests(sanitizer: Sanitizer, module: Path, *selected: str, fault: int = 0) -> tuple[int, str]:
    """Exit code of pytest on the selected tests, and what it and the sanitizer said, with fault number `fault` live."""
    environment = {
        **os.environ,
        **sanitizer.environment(),
        "SANITISED_NATIVE": str(module),
        "PLANTED_FAULT": str(fault),
        "PYTHONPATH": str(AT_START),
        "OPENBLAS_NUM_THREADS": "1",
    }
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--capture=no"]
    command = [sys.executable, "-m", "pytest", *options, *selected]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, cwd=ENGINE.parent)
    return done.returncode, f"{done.stdout[-4000:]}\n{done.stderr[:4000]}"


def _plant(folder: Path) -> None:
    for path in (*(ENGINE / "native").glob("*.?pp"), *(ENGINE / "kernels").glob("*.cuh")):
        shutil.copy(path, folder)
    (folder / "planted_fault.hpp").write_text(SWITCH)
    for number, fault in enumerate(native_faults(), 1):
        _put(folder, fault, f"(planted_fault == {number})")
    for old, new in SHARED_OUT.items():
        _put(folder, Fault("shared out", "team.hpp", old, new, found_by=""), "(planted_fault != 0)")


def _put(folder: Path, fault: Fault, switch: str) -> None:
    path = folder / fault.file
    path.write_text(with_fault(path.read_text(), fault, switch))
