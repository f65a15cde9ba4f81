"""NVML of this machine, one GPU of it, by our own field names. May import pynvml and probes.parts.

It only reads: no function of NVML that sets, locks or clears anything is called here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pynvml

from probes.parts import UnavailableError

EVENT_REASONS = {
    pynvml.nvmlClocksEventReasonGpuIdle: "idle",
    pynvml.nvmlClocksEventReasonApplicationsClocksSetting: "application-clocks",
    pynvml.nvmlClocksEventReasonSwPowerCap: "power-cap",
    pynvml.nvmlClocksEventReasonHwSlowdown: "hardware-slowdown",
    pynvml.nvmlClocksEventReasonSyncBoost: "sync-boost",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "software-thermal",
    pynvml.nvmlClocksEventReasonHwThermalSlowdown: "hardware-thermal",
    pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown: "power-brake",
    pynvml.nvmlClocksEventReasonDisplayClockSetting: "display-clock",
}
"""Why the clocks are where they are: bits of NVML's mask, and our names of them."""

Handle = Any
Reader = Callable[[Handle], Any]


class LiveNvml:
    """NVML's view of one GPU."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def read(self, field: str) -> Any:
        """One reading, plain JSON values in SI units.

        Raises
        ------
        UnavailableError
            With NVML's own words: not supported by this card, not permitted in this container, GPU lost, …
        """
        try:
            return FIELDS[field](self._handle)
        except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
            raise UnavailableError(f"NVML does not tell {field}: {error}") from error


def open_nvml() -> LiveNvml:
    """NVML of the GPU that CUDA's device 0 is.

    ``CUDA_VISIBLE_DEVICES`` is heeded where it names the GPU by UUID or, as NVML counts, by PCI order.

    Raises
    ------
    UnavailableError
        No driver, no GPU, or none visible.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if chosen in ("", "-1"):
        raise UnavailableError("CUDA_VISIBLE_DEVICES hides every GPU: unset it")
    try:
        pynvml.nvmlInit()
        return LiveNvml(_handle(chosen))
    except pynvml.NVMLError as error:
        raise UnavailableError(f"NVML cannot be opened: {error}") from error


def _handle(chosen: str) -> Handle:
    if chosen.isdecimal():
        return pynvml.nvmlDeviceGetHandleByIndex(int(chosen))
    handle = pynvml.nvmlDeviceGetHandleByUUID(chosen)
    if pynvml.nvmlDeviceIsMigDeviceHandle(handle):
        return pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    return handle


def _driver_cuda(_: Handle) -> str:
    version = pynvml.nvmlSystemGetCudaDriverVersion_v2()
    return f"{version // 1000}.{version % 1000 // 10}"


def _memory_used(handle: Handle) -> int:
    # Version 2 leaves out what the driver keeps for itself; version 1 counts it as used.
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used
    except pynvml.NVMLError_FunctionNotFound:
        return pynvml.nvmlDeviceGetMemoryInfo(handle).used


def _mig_mode(handle: Handle) -> bool:
    # A card that knows no MIG cannot be a slice: that is an answer, not a missing one.
    try:
        return pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE
    except pynvml.NVMLError_NotSupported:
        return False


def _ecc(error: int, counter: int) -> Reader:
    return lambda handle: pynvml.nvmlDeviceGetTotalEccErrors(handle, error, counter)


def _sram_threshold_exceeded(handle: Handle) -> bool:
    status = pynvml.c_nvmlEccSramErrorStatus_v1_t()
    pynvml.nvmlDeviceGetSramEccErrorStatus(handle, pynvml.byref(status))
    return bool(status.bThresholdExceeded)


def _pages_retired(handle: Handle) -> int:
    causes = range(pynvml.NVML_PAGE_RETIREMENT_CAUSE_COUNT)
    return sum(len(pynvml.nvmlDeviceGetRetiredPages(handle, cause)) for cause in causes)


def _event_reasons(handle: Handle) -> list[str]:
    try:
        mask = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except pynvml.NVMLError_FunctionNotFound:  # the name before driver 535
        mask = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return [name for bit, name in EVENT_REASONS.items() if mask & bit]


def _processes(handle: Handle) -> list[dict[str, int | None]]:
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return [{"pid": process.pid, "memory_bytes": process.usedGpuMemory} for process in running]


FIELDS: dict[str, Reader] = {
    "name": pynvml.nvmlDeviceGetName,
    "uuid": pynvml.nvmlDeviceGetUUID,
    "pci_bus_id": lambda handle: pynvml.nvmlDeviceGetPciInfo(handle).busId,
    "vbios": pynvml.nvmlDeviceGetVbiosVersion,
    "driver_version": lambda _: pynvml.nvmlSystemGetDriverVersion(),
    "driver_cuda": _driver_cuda,
    "memory_total_bytes": lambda handle: pynvml.nvmlDeviceGetMemoryInfo(handle).total,
    "memory_used_bytes": _memory_used,
    "mig_mode": _mig_mode,
    "busy": lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
    "processes": _processes,
    "link_generation": pynvml.nvmlDeviceGetCurrPcieLinkGeneration,
    "link_generation_max": pynvml.nvmlDeviceGetMaxPcieLinkGeneration,
    "link_width": pynvml.nvmlDeviceGetCurrPcieLinkWidth,
    "link_width_max": pynvml.nvmlDeviceGetMaxPcieLinkWidth,
    "pcie_replays": pynvml.nvmlDeviceGetPcieReplayCounter,
    "ecc_uncorrected_volatile": _ecc(pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
    "ecc_uncorrected_aggregate": _ecc(pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
    "sram_threshold_exceeded": _sram_threshold_exceeded,
    "rows_remapped_uncorrectable": lambda handle: pynvml.nvmlDeviceGetRemappedRows(handle)[1],
    "row_remap_pending": lambda handle: bool(pynvml.nvmlDeviceGetRemappedRows(handle)[2]),
    "row_remap_failed": lambda handle: bool(pynvml.nvmlDeviceGetRemappedRows(handle)[3]),
    "pages_retired": _pages_retired,
    "page_retirement_pending": lambda handle: bool(pynvml.nvmlDeviceGetRetiredPagesPendingStatus(handle)),
    "sm_clock_hz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM) * 1e6,
    "sm_clock_max_hz": lambda handle: pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM) * 1e6,
    "event_reasons": _event_reasons,
    "power_limit_w": lambda handle: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
    "power_limit_default_w": lambda handle: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000,
    "temperature_c": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
    "persistence": lambda handle: pynvml.nvmlDeviceGetPersistenceMode(handle) == pynvml.NVML_FEATURE_ENABLED,
}
"""Our name of each reading, and how NVML gives it: bytes, hertz, watts, seconds; fractions of one; degrees Celsius."""
