"""Is the card's memory, or the card itself, failing: ECC, remapped rows, retired pages, Xid. May import probes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from probes.check import Check
from probes.kernel_log import kernel_messages
from probes.parts import Nvml, Parts, Schedule, UnavailableError
from probes.pci import sysfs_address
from probes.reading import check_fields, read_or_none
from probes.thresholds import Thresholds

XID = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F]{4,}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})[^)]*\): (\d+)")

XID_FAIL = frozenset({48, 64, 74, 79, 95, 119, 120, 140})
XID_WARN = frozenset({31, 32, 38, 39, 42, 43, 54, 56, 57, 58, 60, 61, 62, 63, 78, 94})
"""DCGM's health watch (DcgmHealthWatch.cpp, by research/harness.md §3). Others are a program's own faults."""

COUNTERS = {
    "ecc-uncorrected": ("ecc_uncorrected_volatile", "{:.0f} uncorrectable memory errors since the driver was loaded"),
    "ecc-aggregate": ("ecc_uncorrected_aggregate", "{:.0f} uncorrectable memory errors in the card's life"),
    "rows-remapped": ("rows_remapped_uncorrectable", "{:.0f} rows remapped after uncorrectable errors"),
    "pages-retired": ("pages_retired", "{:.0f} pages retired"),
}

FLAGS = {
    "row-remap-failed": ("row_remap_failed", "fail", "a row remapping failed: memory is broken for good"),
    "row-remap-pending": ("row_remap_pending", "warn", "a row remapping waits for a reset of the card"),
    "page-retirement-pending": ("page_retirement_pending", "warn", "a page retirement waits for a reset of the card"),
    "sram-threshold": ("sram_threshold_exceeded", "fail", "the SRAM error threshold at which NVIDIA replaces cards"),
}


@dataclass(frozen=True)
class MemoryHealthProbe:
    """ECC counters and pending repairs by NVML, and Xid errors by the kernel log."""

    name: str = "memory-health"
    needs: Literal["nvml"] = "nvml"
    quick: bool = True
    limit_s: float = 2.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = (*FLAGS, *COUNTERS)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Read each counter and flag; those that the card does not keep are unknown."""
        nvml = parts.open_nvml()
        flags = [_flag(thresholds, nvml, name, *what) for name, what in FLAGS.items()]
        return flags + [_counter(thresholds, nvml, name, *what) for name, what in COUNTERS.items()]


@dataclass(frozen=True)
class XidProbe:
    """The driver's own error reports. Needs no NVML: after the worst of them it answers no more."""

    name: str = "xid"
    needs: Literal["host"] = "host"
    quick: bool = True
    limit_s: float = 2.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("xid",)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """The worst Xid since boot of our card, or of any where ours is not known."""
        seen = [match.groups() for line in kernel_messages(parts.root) if (match := XID.search(line))]
        ours = _our_slot(parts)
        codes = Counter(int(code) for slot, code in seen if ours is None or _slot(slot) == ours)
        listed = ", ".join(f"Xid {code} ({times}x)" for code, times in sorted(codes.items()))
        for verdict, known in (("fail", XID_FAIL), ("warn", XID_WARN)):
            worst = sorted(known & codes.keys())
            if worst:
                why = f"the driver reported {listed} since boot: {_meaning(worst[0])}"
                return [thresholds.state("xid", worst[0], verdict, why)]
        why = f"nothing but a program's own faults since boot: {listed}" if codes else "no Xid since boot"
        return [thresholds.state("xid", min(codes, default=None), "pass", why)]


def _flag(thresholds: Thresholds, nvml: Nvml, name: str, field: str, raised: str, means: str) -> Check:
    def judged(value: bool) -> Check:
        return thresholds.state(name, value, raised if value else "pass", means if value else f"not so: {means}")

    return check_fields(thresholds, name, nvml, [field], judged)


def _counter(thresholds: Thresholds, nvml: Nvml, name: str, field: str, words: str) -> Check:
    return check_fields(
        thresholds, name, nvml, [field], lambda value: thresholds.judge(name, value, words.format(value))
    )


def _our_slot(parts: Parts) -> str | None:
    try:
        bus_id = read_or_none(parts.open_nvml(), "pci_bus_id")
    except UnavailableError:
        return None
    return _slot(bus_id) if bus_id else None


def _slot(bus_id: str) -> str:
    """Without the function, which the kernel log leaves out."""
    return sysfs_address(bus_id).partition(".")[0]


def _meaning(code: int) -> str:
    return {
        48: "double-bit ECC error",
        63: "a row was remapped or a page retired",
        64: "a row remapping or page retirement failed",
        74: "NVLink error",
        79: "the GPU has fallen off the bus",
        94: "contained ECC error",
        95: "uncontained ECC error",
        119: "the GPU's system processor timed out",
        120: "the GPU's system processor failed",
        140: "unrecovered ECC error",
    }.get(code, "see NVIDIA's list of Xid errors")
