"""A fixture played back: the parts of a host, and its files in a temporary directory. May import probes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from probes.parts import Call, Gpu, Nvml, Parts, Schedule, UnavailableError
from probes.replay.clock import ReplayedClock
from probes.replay.fixture import Fixture, Link, Raises, load_fixture
from probes.replay.gpu import Load, ReplayedGpu
from probes.replay.nvml import ReplayedNvml


@dataclass(frozen=True)
class Replay:
    """One fixture, ready to be probed."""

    fixture: Fixture

    @property
    def target(self) -> Literal["gpu", "cpu"]:
        """What the host is to be judged for."""
        return self.fixture.target

    @property
    def threads(self) -> int:
        """That its user wants."""
        return self.fixture.threads

    @contextmanager
    def parts(self, schedule: Schedule, threads: int) -> Iterator[Parts]:
        """The host's parts, under one schedule flag; its files are gone when this ends."""
        with TemporaryDirectory(prefix="dyno-replay-") as root:
            _unpack(self.fixture.files, Path(root))
            yield _parts(self.fixture, Path(root), schedule, threads)


def load_replay(path: Path) -> Replay:
    """Read a fixture.

    Raises
    ------
    probes.replay.fixture.FixtureError
        A ValueError: the file cannot be read, or is no fixture.
    """
    return Replay(load_fixture(path))


def _parts(fixture: Fixture, root: Path, schedule: Schedule, threads: int) -> Parts:
    clock = ReplayedClock(fixture.clock.now_s)
    load = Load(clock)

    def open_gpu() -> Gpu:
        if isinstance(fixture.gpu, Raises):
            raise UnavailableError(fixture.gpu.raises)
        return ReplayedGpu(fixture.gpu, schedule, clock, load)

    def open_nvml() -> Nvml:
        if isinstance(fixture.nvml, Raises):
            raise UnavailableError(fixture.nvml.raises)
        return ReplayedNvml(fixture.nvml, load)

    def bind_host_triad(nbytes: int, threads: int) -> tuple[Call, int]:
        if isinstance(fixture.host_triad_bytes_s, Raises):
            raise UnavailableError(fixture.host_triad_bytes_s.raises)
        seconds = nbytes / fixture.host_triad_bytes_s
        return lambda: clock.advance(seconds), nbytes

    affinity = None if fixture.affinity is None else tuple(range(fixture.affinity))
    return Parts(clock, root, affinity, open_gpu, open_nvml, bind_host_triad, dict(fixture.libraries), threads)


def _unpack(files: dict[str, str | Link], root: Path) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            path.symlink_to(content.link)
        else:
            path.write_text(content)
