"""What the PCIe link of a GPU can carry one way, from its generation and width. May import probes' parts
and pci.

By its own best generation, since links rest at a lower one, and its width of now, which does not rest: a link that is
too narrow is told by its own check, and a copy is held against the link that there is.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.parts import Parts, UnavailableError
from probes.pci import DEVICES, sysfs_address

LANE_BYTES_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Of one lane, one way, after line coding (8b/10b, 128b/130b; PCIe 6 after FLIT overhead): PCI-SIG."""

_GENERATION_BY_SPEED = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}
"""sysfs gives gigatransfers a second."""


@dataclass(frozen=True)
class LinkPeak:
    """Bytes a second one way, and which link that is."""

    generation: int
    width: int

    @property
    def bytes_s(self) -> float:
        """Of all lanes."""
        return LANE_BYTES_S[self.generation] * self.width

    @property
    def words(self) -> str:
        """As in ``63.0 GB/s of PCIe 5 x16``."""
        return f"{self.bytes_s / 1e9:.1f} GB/s of PCIe {self.generation} x{self.width}"


def link_peak(parts: Parts, pci_bus_id: str) -> LinkPeak:
    """The peak by NVML, else by sysfs.

    Raises
    ------
    UnavailableError
        If neither tells, or what they tell is no link that is known here.
    """
    try:
        nvml = parts.open_nvml()
        found = LinkPeak(nvml.read("link_generation_max"), nvml.read("link_width"))
    except UnavailableError as error:
        found = _by_sysfs(parts, pci_bus_id, str(error))
    if found.generation not in LANE_BYTES_S or not 1 <= found.width <= 32:
        raise UnavailableError(f"PCIe generation {found.generation} x{found.width} is no link that is known here")
    return found


def _by_sysfs(parts: Parts, pci_bus_id: str, refusal: str) -> LinkPeak:
    folder = parts.root / DEVICES / sysfs_address(pci_bus_id)
    try:
        speed = (folder / "max_link_speed").read_text().split()[0]
        width = int((folder / "current_link_width").read_text())
        return LinkPeak(_GENERATION_BY_SPEED[speed], width)
    except (OSError, ValueError, KeyError, IndexError):
        raise UnavailableError(f"{refusal}, and {folder} does not tell") from None
