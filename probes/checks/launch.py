"""What it costs to give the GPU work: a launch, a graph of launches, an empty kernel. May import probes."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import Literal

from probes.check import Check
from probes.parts import Parts, Schedule
from probes.thresholds import Thresholds
from probes.timing import slope

LAUNCHES = (64, 512)
"""Few and many: well under the 1,024 launches that CUDA keeps pending before the host must wait."""

GRAPH_KERNELS, REPLAYS = 64, (2, 10)
"""About a tree's kernels, and few enough replays that no queue fills."""

EVENTS = 50


@dataclass(frozen=True)
class LaunchProbe:
    """Microseconds of the host a launch and a graph replay, and of the device an empty kernel."""

    name: str = "launch"
    needs: Literal["gpu"] = "gpu"
    quick: bool = False
    limit_s: float = 5.0
    schedule: Schedule = "auto"
    names: tuple[str, ...] = ("launch-enqueue", "event-time", "graph-replay")

    def run(self, parts: Parts, thresholds: Thresholds) -> list[Check]:
        """Slopes over launches that nobody waits for; the median of events around single kernels."""
        gpu = parts.open_gpu()
        launch, wait = gpu.bind_empty()
        enqueue = slope(parts.clock, launch, wait, *LAUNCHES) * 1e6
        event = median(gpu.event_seconds() for _ in range(EVENTS)) * 1e6
        replay = slope(parts.clock, gpu.bind_graph(GRAPH_KERNELS), wait, *REPLAYS) * 1e6
        return [
            thresholds.judge("launch-enqueue", enqueue, f"enqueueing a kernel takes the host {enqueue:.2f} us"),
            thresholds.state("event-time", event, "pass", f"an empty kernel takes {event:.2f} us between two events"),
            thresholds.judge(
                "graph-replay",
                replay,
                f"replaying a graph of {GRAPH_KERNELS} kernels takes the host {replay:.1f} us, "
                f"launching them one by one {enqueue * GRAPH_KERNELS:.0f}",
            ),
        ]
