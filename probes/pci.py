"""Where the GPU stands in sysfs: its own directory and the ports above it. May import probes.parts."""

from __future__ import annotations

import re
from pathlib import Path

from probes.parts import Parts, UnavailableError

DEVICES = "sys/bus/pci/devices"
NVIDIA = "0x10de"
DISPLAY = "0x03"
"""PCI class of display controllers, with and without a monitor."""

ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def find_gpu(parts: Parts) -> Path:
    """Directory of the GPU below ``sys/devices``: the one NVML speaks of, else the only one there is.

    Raises
    ------
    UnavailableError
        If sysfs is hidden, or shows no NVIDIA GPU, or several and NVML does not say which.
    """
    devices = parts.root / DEVICES
    try:
        address = sysfs_address(parts.open_nvml().read("pci_bus_id"))
    except UnavailableError as error:
        return _only_gpu(devices, str(error))
    found = (devices / address).resolve()
    if not found.is_dir():
        raise UnavailableError(f"sysfs does not show the GPU {address}: it is hidden in this container")
    return found


def sysfs_address(bus_id: str) -> str:
    """NVML's and CUDA's ``00000000:3B:00.0`` as sysfs writes it: ``0000:3b:00.0``."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def ports_above(gpu: Path) -> list[Path]:
    """Bridges between the GPU and the processor, nearest first."""
    return [parent for parent in gpu.parents if ADDRESS.fullmatch(parent.name)]


def attribute(device: Path, name: str) -> str | None:
    """One sysfs attribute, stripped; None where it is missing or hidden."""
    try:
        return (device / name).read_text(errors="replace").strip() or None
    except OSError:
        return None


def _only_gpu(devices: Path, why_unnamed: str) -> Path:
    try:
        gpus = [device.resolve() for device in sorted(devices.iterdir()) if _is_nvidia_gpu(device)]
    except OSError as error:
        raise UnavailableError(f"sysfs cannot be read ({error.strerror})") from None
    if not gpus:
        raise UnavailableError("sysfs shows no NVIDIA GPU")
    if len(gpus) > 1:
        raise UnavailableError(f"sysfs shows {len(gpus)} NVIDIA GPUs and which is ours is not known: {why_unnamed}")
    return gpus[0]


def _is_nvidia_gpu(device: Path) -> bool:
    return attribute(device, "vendor") == NVIDIA and (attribute(device, "class") or "").startswith(DISPLAY)
