"""Is the driver new enough for what is installed: each rival's CUDA, CuPy's, NVRTC's. May import probes.

A wheel built for a newer CUDA than the driver knows does not always fail: XGBoost has trained on the CPU instead, and
said nothing (research/harness.md §1, the placement guard).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.parts import Parts, Schedule
from probes.thresholds import Thresholds

Libraries = dict[str, str]

BUILT_FOR = {
    "catboost": (11, "its documentation asks for driver 450.80, which is CUDA 11.0"),
    "bonsai-gbt": (12, "its wheel 2.10.0 holds code of the CUDA compiler 12.8"),
}
"""CUDA major of wheels whose names and companions do not tell it: it is linked in."""


LIBRARIES = ("cupy", "xgboost", "lightgbm", "catboost", "bonsai")


@dataclass(frozen=True)
class VersionsProbe:
    """The driver's CUDA against that of each library, all by their distributions' metadata; nothing is imported."""

    name: str = "versions"
    needs: Literal["nvml"] = "nvml"
    quick: bool = False
    limit_s: float = 3.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = (*(f"driver-{library}" for library in LIBRARIES), "nvrtc")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """One check a library; a library that is not installed has nothing to mismatch and passes as absent."""
        driver = parts.open_nvml().read("driver_cuda")
        checks = [
            _held_against(thresholds, f"driver-{library}", driver, *built_for(library, parts.libraries))
            for library in LIBRARIES
        ]
        return [*checks, _nvrtc(thresholds, parts.libraries)]


def built_for(library: str, libraries: Libraries) -> tuple[int | None, str]:
    """(CUDA major, in words); 0 where it needs none, None where nothing tells it.

    Parameters
    ----------
    library : str
        One of `LIBRARIES`.
    libraries : dict of str to str
        Distributions installed, with their versions.
    """
    readers = {"cupy": _cupy, "xgboost": _xgboost, "lightgbm": _lightgbm, "bonsai": _bonsai, "catboost": _catboost}
    return readers[library](libraries)


def _held_against(thresholds: Thresholds, name: str, driver: str, major: int | None, why: str) -> Check:
    if major is None:
        return thresholds.unknown(name, why)
    newest = int(driver.partition(".")[0])
    if major == 0:
        return thresholds.state(name, "absent", "pass", why)
    if major > newest:
        why = f"{why}, but the driver knows CUDA {driver} at most: it would fail, or train on the CPU without saying so"
        return thresholds.state(name, f"CUDA {major}", "fail", why)
    return thresholds.state(name, f"CUDA {major}", "pass", f"{why}; the driver knows CUDA {driver}")


def _xgboost(libraries: Libraries) -> tuple[int | None, str]:
    # One Python package, four distributions: its wheel names its CUDA by itself or by the NCCL that it requires.
    present = sorted({"xgboost", "xgboost-cu12", "xgboost-cu13"} & libraries.keys())
    if not present:
        return (0, "xgboost-cpu trains on the CPU") if "xgboost-cpu" in libraries else (0, "xgboost is not installed")
    named = _suffixes("xgboost-cu", present) or _suffixes("nvidia-nccl-cu", libraries)
    if not named:
        return None, f"no NCCL wheel beside {present[0]} {libraries[present[0]]} tells which CUDA it was built for"
    major = max(named)
    return major, f"{present[0]} {libraries[present[0]]} was built for CUDA {major}"


def _lightgbm(libraries: Libraries) -> tuple[int | None, str]:
    if "lightgbm" not in libraries:
        return 0, "lightgbm is not installed"
    return None, f"lightgbm {libraries['lightgbm']}: wheels hold no CUDA; which one a build from source has is not told"


def _catboost(libraries: Libraries) -> tuple[int | None, str]:
    return _linked_in(libraries, "catboost")


def _bonsai(libraries: Libraries) -> tuple[int | None, str]:
    return _linked_in(libraries, "bonsai-gbt")


def _linked_in(libraries: Libraries, name: str) -> tuple[int | None, str]:
    if name not in libraries:
        return 0, f"{name} is not installed"
    major, evidence = BUILT_FOR[name]
    return major, f"{name} {libraries[name]} needs CUDA {major} ({evidence})"


def _cupy(libraries: Libraries) -> tuple[int | None, str]:
    majors = _suffixes("cupy-cuda", libraries)
    if len(majors) > 1:
        return max(majors), f"CuPy is installed {len(majors)} times, of which one must go"
    if majors:
        return majors[0], f"cupy-cuda{majors[0]}x {libraries[f'cupy-cuda{majors[0]}x']} was built for CUDA {majors[0]}"
    if "cupy" in libraries:
        return None, f"cupy {libraries['cupy']} was built from source, for a CUDA that its metadata does not tell"
    return 0, "CuPy is not installed: device='cuda' is not available"


def _nvrtc(thresholds: Thresholds, libraries: Libraries) -> Check:
    """The compiler that CuPy's CUDA needs; a toolkit outside Python's packages cannot be seen from here."""
    cupy = _suffixes("cupy-cuda", libraries)
    compilers = _suffixes("nvidia-cuda-nvrtc-cu", libraries)
    if "nvidia-cuda-nvrtc" in libraries:  # from CUDA 13 on the major is in the version alone
        compilers.append(int(libraries["nvidia-cuda-nvrtc"].partition(".")[0]))
    if not cupy:
        return thresholds.state("nvrtc", "absent", "pass", "CuPy is not installed, so nothing is to be compiled")
    if cupy[0] in compilers:
        return thresholds.state("nvrtc", f"CUDA {cupy[0]}", "pass", f"NVRTC of CUDA {cupy[0]} is installed for CuPy")
    others = f"only that of CUDA {', '.join(map(str, compilers))}" if compilers else "none"
    return thresholds.unknown("nvrtc", f"CuPy needs NVRTC of CUDA {cupy[0]} and {others} is among Python's packages")


def _suffixes(prefix: str, names: Libraries | list[str]) -> list[int]:
    """Numbers behind a prefix: 12 for ``nvidia-nccl-cu12`` and ``cupy-cuda12x``."""
    return sorted(int(found[1]) for name in names if (found := re.fullmatch(rf"{prefix}(\d+)x?", name)))
