"""Plants faults into the kernels, one at a time, and shows who notices: the bits of a model, or ThreadSanitizer.

``make faults``, or ``python tests/engine/planted_faults.py --all``. The faults are listed in faults.toml. All of them
stand in one build beside the right code, each behind a switch (mutant schemata: Untch, Offutt, Harrold 1993), so that a
fault costs a run and no build. With no fault switched on, nothing may be found.

Each fault runs in a process of its own: one that crashes or never ends is noticed as well.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ENGINE = Path(__file__).parents[2] / "engine"
FAULTS = Path(__file__).with_name("faults.toml")
SEEDS = 40
SECONDS = 240
RACE = 66
"""Exit code of ThreadSanitizer, where the program itself would have ended well."""

SWITCH = """\
#pragma once
extern "C" {
__attribute__((visibility("default"))) inline int planted_fault = 0;
}
"""


@dataclass(frozen=True)
class Fault:
    """A wrong piece of text beside the right one."""

    name: str
    file: str
    old: str
    new: str
    found_by: str
    problem: str | None = None
    quick: bool = False
    gap: str = ""


@dataclass(frozen=True)
class Verdict:
    """Who noticed a fault, and how it showed; `found_by` is nothing if nobody did."""

    fault: str
    expected: str
    found_by: str
    how: str

    @property
    def is_expected(self) -> bool:
        """Whether it went as faults.toml says."""
        return self.found_by == self.expected


def main() -> int:
    """Plant, build, run; 1 if a fault was noticed by another, or nobody, than faults.toml says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--all", action="store_true", help="every fault, not only the quick ones")
    parser.add_argument("--only", default="", help="faults whose name or file has this in it")
    parser.add_argument("--json", action="store_true", dest="as_json", help="one verdict a line, as JSON")
    arguments = parser.parse_args()
    faults = read_faults()
    chosen = [
        number
        for number, fault in enumerate(faults, 1)
        if (arguments.all or arguments.only or fault.quick) and arguments.only in f"{fault.file} {fault.name}"
    ]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for verdict in verdicts(faults, chosen, Path(folder)):
            wrong += not verdict.is_expected
            print(json.dumps(asdict(verdict)) if arguments.as_json else described(verdict), flush=True)
    return 1 if wrong else 0


def read_faults(listed: Path = FAULTS) -> list[Fault]:
    """As listed; fault number i of the build is the i-th, counted from 1."""
    return [Fault(**entry) for entry in tomllib.loads(listed.read_text())["fault"]]


def described(verdict: Verdict) -> str:
    """One line."""
    mark = "ok " if verdict.is_expected else "NOT AS EXPECTED: "
    return f"{mark}{verdict.fault}: found by {verdict.found_by} ({verdict.how})"


# ---- planting -------------------------------------------------------------------------------------------------------


def plant(faults: list[Fault], folder: Path) -> None:
    """Write the kernels with every fault in them, switched off, into an empty folder."""
    for path in (ENGINE / "kernels").glob("*.cuh"):
        shutil.copy(path, folder)
    (folder / "planted_fault.cuh").write_text(SWITCH)
    for number, fault in enumerate(faults, 1):
        path = folder / fault.file
        path.write_text(with_fault(path.read_text(), fault, f"(planted_fault == {number})"))
    semantics = folder / "semantics.cuh"
    semantics.write_text('#include "planted_fault.cuh"\n' + semantics.read_text())


def with_fault(text: str, fault: Fault, switch: str) -> str:
    """The text with the fault beside what it replaces, live where the expression `switch` is true."""
    old, new = fault.old.strip("\n"), fault.new.strip("\n")
    if text.count(old) != 1:
        raise SystemExit(f"{fault.file} has this {text.count(old)} times, not once; faults.toml must follow it:\n{old}")
    return text.replace(old, new.replace("FAULT", switch))


def build(kernels: Path, lanes: str, *options: str) -> Path:
    """The emulator made of these kernels, with fibers or threads for lanes."""
    out = kernels / f"{lanes}.so"
    environment = {**os.environ, "KERNELS": str(kernels), "LANES": lanes}
    subprocess.run([ENGINE / "native/emulator/build", out, "-O1", *options], check=True, env=environment)
    return out


# ---- running --------------------------------------------------------------------------------------------------------


def verdicts(faults: list[Fault], chosen: list[int], folder: Path) -> Iterator[Verdict]:
    """One for the build without a fault switched on, then one for each chosen fault."""
    plant(faults, folder)
    fibers = build(folder, "fibers")
    threads = build(folder, "threads", "-fsanitize=thread")
    yield _verdict(None, "nothing", *run_fibers(fibers, 0), "under fibers")
    for problem in sorted({faults[number - 1].problem for number in chosen} - {None}):
        yield _verdict(None, "nothing", *run_threads(threads, 0, problem), f"under threads, {problem}")
    for number in chosen:
        fault = faults[number - 1]
        found_by, how = run_fibers(fibers, number)
        if found_by == "nothing" and fault.problem:
            found_by, how = run_threads(threads, number, fault.problem)
        yield _verdict(fault, fault.found_by, found_by, how)


def _verdict(fault: Fault | None, expected: str, found_by: str, how: str, where: str = "") -> Verdict:
    name = f"no fault, {where}" if fault is None else f"{fault.file}: {fault.name}"
    return Verdict(name, expected, found_by, how)


def run_fibers(emulator: Path, number: int) -> tuple[str, str]:
    """Whether a model's bits, or the emulator, tell: who noticed, and how."""
    code, text = _run(emulator, {}, "bits", str(number))
    if code == 0:
        found = text.strip().splitlines()[-1]
        return ("nothing", found) if found.startswith("the same bits") else ("bits", found)
    return "bits", "never ends" if code is None else f"ends with exit code {code}"


def run_threads(emulator: Path, number: int, problem: str) -> tuple[str, str]:
    """Whether ThreadSanitizer tells, on one problem."""
    suppressions = emulator.with_name("suppressions")
    suppressions.write_text("called_from_lib:_native\n")  # not instrumented: its locks cannot be seen
    environment = {
        "LD_PRELOAD": library_of_compiler("libtsan.so"),
        "TSAN_OPTIONS": f"history_size=0 exitcode={RACE} suppressions='{suppressions}'",
        "OPENBLAS_NUM_THREADS": "1",
    }
    code, text = _run(emulator, environment, "threads", str(number), problem)
    if code == 0:
        return "nothing", "ThreadSanitizer is silent"
    if code == RACE and "data race" in text:
        summary = [line for line in text.splitlines() if line.startswith("SUMMARY")]
        return "threads", summary[0].rpartition(" in ")[2] if summary else "data race"
    return "threads", "never ends" if code is None else f"ends with exit code {code}: {text[-300:]}"


def library_of_compiler(name: str) -> str:
    """Where the compiler keeps a library of its own, which must be loaded before Python itself."""
    command = ["c++", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _run(emulator: Path, environment: dict[str, str], *arguments: str) -> tuple[int | None, str]:
    environment = {**os.environ, "DYNO_EMULATOR": str(emulator), **environment}
    command = [sys.executable, __file__, "--inside", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout + done.stderr


# ---- inside the process that runs a fault ---------------------------------------------------------------------------


def inside(kind: str, number: str, problem: str = "") -> None:
    """Switch the fault on and fit; the last line printed says what was seen."""
    ctypes.c_int.in_dll(ctypes.CDLL(os.environ["DYNO_EMULATOR"]), "planted_fault").value = int(number)
    if kind == "threads":
        THREADED[problem]("emulated")
    else:
        print(difference())


def difference() -> str:
    """The first schedule seed and problem where the emulated device differs from the CPU, and how."""
    expected = {name: problem("cpu") for name, problem in PROBLEMS.items()}
    for seed in range(SEEDS):
        os.environ["DYNO_SCHEDULE_SEED"] = str(seed)
        for name, problem in PROBLEMS.items():
            try:
                if problem("emulated") != expected[name]:
                    return f"other bits: {name}, schedule seed {seed}"
            except Exception as error:
                return f"{type(error).__name__}: {name}, schedule seed {seed}: {str(error).splitlines()[0]}"
    return f"the same bits for {SEEDS} schedule seeds"


def fit(device: str, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, **params: object) -> bytes:
    """All that a fit gives, as bytes: the model, its history on an eval set, and predictions at its own thresholds."""
    import engine

    data = engine.Dataset(X, y, weight=weight, max_bin=params.pop("max_bin", 255))
    unlike = np.where(X > 1, np.nan, X)[::3]
    unlike[:, 1] += 0.5  # between whole numbers, where the cuts are
    evaluated = engine.Dataset(unlike, y[::3], cuts_from=data)
    model = engine.train({"n_estimators": 2, "device": device, **params}, data, eval_set=evaluated)
    forest = model.forest
    at_thresholds = np.tile(forest.threshold[np.isfinite(forest.threshold)][:200, None], X.shape[1])
    prediction = model.predict(at_thresholds, output="margin", device=device)
    return model.to_bytes() + repr(model.history).encode() + prediction.tobytes()


def rows(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are smooth, tied, full of holes, doubled, or mostly one value; and something to learn from them."""
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, n_features))
    X[:, 1::5] = np.round(X[:, 1::5])
    X[:, 2::5] = np.where(rng.random(X[:, 2::5].shape) < 0.3, np.nan, X[:, 2::5])
    X[:, 3::5] = X[:, 0::5][:, : X[:, 3::5].shape[1]]
    signal = np.nan_to_num(X[:, :: max(1, n_features // 5)]).sum(axis=1)  # some in every warp and tile
    return X, signal + rng.normal(size=n_rows)


def twins(device: str, **params: object) -> bytes:
    """Two halves of the data that differ in nothing but the first feature: every gain of one is one of the other."""
    half = np.arange(32.0)
    X = np.column_stack([np.repeat([0.0, 1.0], 32), np.tile(half, 2)])
    y = np.tile(np.where(half < 16, -1.0, 1.0), 2) + 10 * X[:, 0]
    return fit(device, X, y, **params)


def missing_ties(device: str) -> bytes:
    """Missing rows that would do as much good on either side."""
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [np.nan, 0.0]], 10, axis=0)
    y = np.repeat([-1.0, 1.0, -1.0, 1.0], [10, 10, 5, 5])
    return fit(device, X, y, max_depth=1, n_estimators=1)


def mirrored_levels(device: str) -> bytes:
    """Two features whose scores are the same numbers, met from left to right and from right to left: sums of doubles
    that only their order tells apart.
    """
    rng = np.random.default_rng(13)
    effect = rng.uniform(0.5, 1.0, 4)
    node, a, b = (grid.ravel() for grid in np.meshgrid(np.arange(4), [-0.5, 0.5], [-0.5, 0.5], indexing="ij"))
    X = np.column_stack([node // 2, node % 2, a, b])
    y = np.array([-3.0, -1.0, 1.0, 3.0])[node] + effect[node] * a + effect[3 - node] * b
    X, y = np.repeat(X, 16, axis=0), np.repeat(y, 16)
    return fit(device, X, y, grower="levelwise", max_depth=3, n_estimators=1, reg_lambda=0.37, base_score=0)


def already_there(device: str) -> bytes:
    """Columns that lie in the device's memory when the caller gives them."""
    import engine
    from engine.device.emulated import EmulatedDevice

    X, y = rows(100, 3)
    there = EmulatedDevice().array(X) if device == "emulated" else X
    return engine.train({"n_estimators": 1, "device": device}, engine.Dataset(there, y)).to_bytes()


def _weighted_leafwise(device: str) -> bytes:
    X, y = rows(1300, 5)
    weight = np.linspace(0.5, 2.0, len(y))
    return fit(device, X, y > 0, weight, objective="logistic", grower="leafwise", max_leaves=12, min_samples_leaf=5)


def _repeated_levelwise(device: str) -> bytes:
    X, y = rows(1301, 5)
    weight = np.arange(len(y)) % 3 + 1.0
    return fit(device, X, np.abs(y), weight, objective="poisson", grower="levelwise", max_depth=4, max_bin=300)


PROBLEMS: dict[str, Callable[[str], bytes]] = {
    "twins, depthwise": lambda device: twins(device, max_leaves=3),
    "twins, leafwise": lambda device: twins(device, grower="leafwise", max_leaves=3),
    "columns already there": already_there,
    "missing ties": missing_ties,
    "mirrored levels": mirrored_levels,
    "four chunks": lambda device: fit(device, *rows(3300, 2), max_depth=2, n_estimators=1),
    "deep": lambda device: fit(device, *rows(500, 4), max_depth=7),
    "levelwise, frequencies, 16 bits": _repeated_levelwise,
    "leafwise, weights, counted": _weighted_leafwise,
    "three groups of features": lambda device: fit(device, *rows(1600, 48), max_depth=2, n_estimators=1),
    "wide and deep": lambda device: fit(device, *rows(300, 48), max_depth=6, n_estimators=1),
}

THREADED: dict[str, Callable[[str], bytes]] = {
    "tiny depthwise": lambda device: fit(device, *rows(530, 4), max_depth=1, max_bin=8, n_estimators=1),
    "tiny leafwise": lambda device: fit(device, *rows(48, 4), grower="leafwise", max_leaves=3, n_estimators=1),
    "three chunks": lambda device: fit(device, *rows(2100, 2), max_depth=1, max_bin=8, n_estimators=1),
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        inside(*sys.argv[2:])
    else:
        sys.exit(main())
