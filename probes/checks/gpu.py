"""Whether there is a GPU, which one, and whose CPUs it is near. May import probes' parts and cores."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Literal

from probes.check import Check
from probes.parts import Nvml, Parts, UnavailableError
from probes.pci import find_gpu
from probes.thresholds import Thresholds

DIGEST_LENGTH = 16
"""Hex digits kept of the hash of a UUID: the card is told from others, and cannot be looked up."""

IDENTITY = {
    "gpu-name": "name",
    "gpu-uuid": "uuid",
    "gpu-vbios": "vbios",
    "gpu-driver": "driver_version",
    "gpu-memory": "memory_total_bytes",
    "gpu-mig": "mig_mode",
}
"""Check to NVML field: what the passport says of the card, none of which changes without a reset."""


@dataclass(frozen=True)
class GpuProbe:
    """Whether CUDA opens a GPU; without one nothing else of it can be said."""

    name: str = "gpu"
    needs: Literal["gpu"] = "gpu"
    quick: bool = True
    limit_s: float = 2.0
    schedule: Literal["auto"] = "auto"
    names: tuple[str, ...] = ("gpu",)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Opened, or the most telling reason why not."""
        try:
            model = parts.open_gpu().model
        except UnavailableError as error:
            return [self._not_opened(str(error), parts, thresholds)]
        architecture = "sm_{}{}".format(*model.capability)
        return [thresholds.state("gpu", model.name, "pass", f"{architecture}, {model.n_processors} processors")]

    def _not_opened(self, reason: str, parts: Parts, thresholds: Thresholds) -> Check:
        seen = _driver_seen(parts)
        if seen is None:
            found = "an NVIDIA device on the PCI bus" if _device_seen(parts) else "no NVIDIA GPU"
            return thresholds.state("gpu", None, "fail", f"{found}, and no driver that serves one here")
        if not any(name.startswith("cupy") for name in parts.libraries):
            why = f"{seen}, but CuPy is not installed: nothing on it was measured; pip install 'gbt-dyno[cuda12]'"
            return thresholds.state("gpu", None, "warn", why)
        return thresholds.state("gpu", None, "fail", f"{seen}, but CUDA cannot use it: {reason}")


@dataclass(frozen=True)
class IdentityProbe:
    """Which card it is, for the passport."""

    name: str = "identity"
    needs: Literal["nvml"] = "nvml"
    quick: bool = True
    limit_s: float = 2.0
    schedule: Literal["auto"] = "auto"
    names: tuple[str, ...] = tuple(IDENTITY)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Facts; the UUID hashed."""
        nvml = parts.open_nvml()
        return [_fact(check, nvml, field, thresholds) for check, field in IDENTITY.items()]


@dataclass(frozen=True)
class NumaProbe:
    """Whether this process may run on the CPUs that the card is attached to."""

    name: str = "numa"
    needs: Literal["nvml"] = "nvml"
    quick: bool = True
    limit_s: float = 2.0
    schedule: Literal["auto"] = "auto"
    names: tuple[str, ...] = ("card-numa",)

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """The card's node, by sysfs."""
        device = find_gpu(parts)
        try:
            node = int((device / "numa_node").read_text())
            cpus = _cpu_list((device / "local_cpulist").read_text())
        except (OSError, ValueError):
            raise UnavailableError(f"sysfs does not say on which node {device.name} is") from None
        if node < 0:
            return [thresholds.state("card-numa", node, "pass", "the machine has one node, or does not say")]
        near = cpus & set(parts.affinity or ())
        why = f"{len(near)} of the {len(parts.affinity or ())} CPUs of this process are on node {node}, the card's"
        if near:
            return [thresholds.state("card-numa", node, "pass", why)]
        return [thresholds.state("card-numa", node, "warn", f"{why}; {thresholds['card-numa'].why}")]


def _fact(check: str, nvml: Nvml, field: str, thresholds: Thresholds) -> Check:
    try:
        value: Any = nvml.read(field)
    except UnavailableError as error:
        return thresholds.unknown(check, str(error))
    if check == "gpu-uuid":
        value = hashlib.sha256(str(value).encode()).hexdigest()[:DIGEST_LENGTH]
    return thresholds.state(check, value, "pass", "for the passport")


def _driver_seen(parts: Parts) -> str | None:
    """A trace of the driver that does not need CUDA, in words."""
    try:
        return f"NVML shows a {parts.open_nvml().read('name')}"
    except UnavailableError:
        pass
    for trace in ("proc/driver/nvidia/version", "dev/nvidia0", "dev/nvidiactl"):
        if (parts.root / trace).exists():
            return f"/{trace} is here"
    return None


def _device_seen(parts: Parts) -> bool:
    try:
        return find_gpu(parts).is_dir()
    except UnavailableError:
        return False


def _cpu_list(text: str) -> set[int]:
    """As in ``0-23,48-71``."""
    cpus: set[int] = set()
    for span in filter(None, text.strip().split(",")):
        first, _, last = span.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
