"""NVML as a fixture has it. May import probes.parts and probes.replay."""

from __future__ import annotations

from typing import Any

from probes.parts import UnavailableError
from probes.replay.fixture import Counter, Moments, Raises
from probes.replay.gpu import Load


class ReplayedNvml:
    """`probes.parts.Nvml` by a fixture's readings."""

    def __init__(self, readings: dict[str, Any], load: Load) -> None:
        self._readings = readings
        self._load = load

    def read(self, field: str) -> Any:
        """The reading of this moment; one that the fixture lacks was not recorded."""
        if field not in self._readings:
            raise UnavailableError(f"NVML does not tell {field}: not in the recording")
        reading = self._readings[field]
        if isinstance(reading, Raises):
            raise UnavailableError(f"NVML does not tell {field}: {reading.raises}")
        if isinstance(reading, Counter):
            return reading.start + int(reading.per_load_second * self._load.total_s)
        return getattr(reading, self._load.moment) if isinstance(reading, Moments) else reading
