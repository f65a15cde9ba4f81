"""The form of a host fixture: strict, every unit in its name. May import pydantic, probes.parts, probes.live.nvml."""

from __future__ import annotations

import difflib
import json
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from probes.live.nvml import FIELDS
from probes.parts import AtomicPattern, Direction, HostMemory, Schedule
from probes.parts import GpuModel as GpuModelParts

MOST_ANCESTORS = 8

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Text = Annotated[str, Field(min_length=1)]


class FixtureError(ValueError):
    """A fixture that cannot be replayed; names the file, the key and what is wrong with it."""


class Strict(BaseModel):
    """Unknown keys are refused, and nothing is converted on the way in."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Raises(Strict):
    """A part or a reading that cannot be had, in the words it refuses with."""

    raises: Text


class Moments(Strict):
    """A reading that a load changes: before any, while one runs, and once it is over."""

    before: Any
    during: Any
    after: Any


class Counter(Strict):
    """A reading that rises while the card is at work."""

    start: Annotated[int, Field(ge=0)]
    per_load_second: Rate


FORMS = {"raises": "raises", "during": "moments", "per_load_second": "counter"}
"""The key by which each form of a reading is told; anything else is the value itself."""


def _form(found: Any) -> str:
    keys = found.keys() if isinstance(found, dict) else ()
    return next((form for key, form in FORMS.items() if key in keys), "value")


Reading = Annotated[
    Annotated[Raises, Tag("raises")]
    | Annotated[Moments, Tag("moments")]
    | Annotated[Counter, Tag("counter")]
    | Annotated[Any, Tag("value")],
    Discriminator(_form),
]
Readings = dict[str, Reading]


class Latency(Strict):
    """Two calls in a hundred take ``p99``, the others ``p50``: so these are the percentiles."""

    p50: Seconds
    p99: Seconds


class ClockCost(Strict):
    """What looking at the clock costs."""

    now_s: Seconds = 0.0


class Model(Strict):
    """`probes.parts.GpuModel`."""

    name: Text
    uuid: Text
    pci_bus_id: Text
    capability: tuple[int, int]
    n_processors: Annotated[int, Field(gt=0)]
    clock_hz: Rate
    memory_bytes: Annotated[int, Field(gt=0)]
    memory_peak_bytes_s: Rate | None = None
    driver_cuda: tuple[int, int]
    runtime_cuda: tuple[int, int]

    def as_part(self) -> GpuModelParts:
        """As the checks know it."""
        return GpuModelParts(**self.model_dump())


class AllocFree(Strict):
    """One allocation, release and wait, by the pool's release threshold."""

    at_zero: Seconds
    at_maximum: Seconds


class GpuTimes(Strict):
    """How long each thing takes on the card.

    Attributes
    ----------
    launch_s : float
        To enqueue one kernel.
    round_trip_s : dict
        Launch and wait, by schedule flag.
    after_idle_s : float
        The same after 5 ms or more without a call.
    event_s : float
        Device time of an empty kernel.
    graph_launch_s : float
        To enqueue a graph.
    copy_latency_s, copy_bytes_s : dict
        By host memory; by direction and host memory.
    triad_bytes_s : float
    atomics_per_clock : dict
        On each multiprocessor, by pattern.
    alloc_free_s : AllocFree
    pool_threshold_bytes : int
        That the probe finds, and has to leave.
    """

    model: Model
    launch_s: Seconds
    round_trip_s: dict[Schedule, Latency]
    after_idle_s: Seconds
    event_s: Seconds
    graph_launch_s: Seconds
    copy_latency_s: dict[HostMemory, Seconds]
    copy_bytes_s: dict[Direction, dict[HostMemory, Rate]]
    triad_bytes_s: Rate
    atomics_per_clock: dict[AtomicPattern, Rate]
    alloc_free_s: AllocFree
    pool_threshold_bytes: Annotated[int, Field(ge=0)] = 0


class Link(Strict):
    """A symbolic link in the recorded tree, as ``proc/self/ns`` and ``sys/bus`` are full of."""

    link: Text


class Expect(Strict):
    """What the probe must make of it; the first reason begins with the text given."""

    verdict: Literal["accept", "accept with warnings", "reject"]
    exit_code: Literal[0, 4]
    first_reason: Text | None = None


class Fixture(Strict):
    """One host.

    Attributes
    ----------
    title : str
    like : str
        Another fixture beside this one, of which this says only what differs: objects are merged, a null in the place
        of a key takes it away.
    recorded, written_from : str
        Exactly one: when and where it was recorded, or the publication or incident it was written from.
    assumed : str
        Which figures of a written one nobody has published: chosen, so that the rest can be played.
    target, threads
        As ``--for`` and ``--threads``.
    affinity : int
        Logical CPUs the scheduler would allow.
    gpu, nvml
        Readings, or how opening fails.
    files : dict
        Of the tree that checks read below ``/``: text or links, by relative path.
    host_triad_bytes_s : float or Raises
    libraries : dict
        Distributions installed.
    """

    title: Text
    recorded: Text | None = None
    written_from: Text | None = None
    assumed: Text | None = None
    target: Literal["gpu", "cpu"]
    threads: Annotated[int, Field(gt=0)]
    affinity: Annotated[int, Field(gt=0)] | None = None
    clock: ClockCost = ClockCost()
    gpu: Annotated[Annotated[GpuTimes, Tag("value")] | Annotated[Raises, Tag("raises")], Discriminator(_form)]
    nvml: Annotated[Annotated[Readings, Tag("value")] | Annotated[Raises, Tag("raises")], Discriminator(_form)]
    files: dict[str, str | Link] = {}
    host_triad_bytes_s: Rate | Raises
    libraries: dict[str, str] = {}
    expect: Expect

    @model_validator(mode="after")
    def _tells_where_it_is_from(self) -> Self:
        if (self.recorded is None) == (self.written_from is None):
            raise ValueError("give one of 'recorded' and 'written_from': whose figures are these?")
        return self

    @model_validator(mode="after")
    def _knows_the_fields(self) -> Self:
        for name in self.nvml if isinstance(self.nvml, dict) else ():
            if name not in FIELDS:
                near = difflib.get_close_matches(name, FIELDS, 1, cutoff=0)[0]
                raise ValueError(f"NVML has no field '{name}' here; nearest: '{near}'")
        return self

    @model_validator(mode="after")
    def _stays_in_its_tree(self) -> Self:
        for name in self.files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise ValueError(f"file '{name}' is not below the root: write 'proc/cpuinfo', not '/proc/cpuinfo'")
            for parent in path.parents:
                if str(parent) in self.files:  # a link among them would lead out of the tree
                    raise ValueError(f"file '{name}' cannot lie below '{parent}', which is a file or a link")
        return self


def load_fixture(path: Path) -> Fixture:
    """Read, complete by the fixtures it is like, and check.

    Raises
    ------
    FixtureError
        If a file cannot be read, is not JSON, or is not of the form.
    """
    merged = _completed(Path(path), ())
    try:
        return Fixture.model_validate_json(json.dumps(merged))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"] if part != "value") or "the fixture"
        found = "" if isinstance(first["input"], dict) else f" (found {first['input']!r:.80})"
        raise FixtureError(f"{path}: {where}: {first['msg']}{found}") from None


def _completed(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in below:
        raise FixtureError(f"{path} is like itself, by way of {below[-1].name}")
    if len(below) > MOST_ANCESTORS:
        raise FixtureError(f"{path}: more than {MOST_ANCESTORS} fixtures one like the other")
    own = _read(path)
    like = own.pop("like", None)
    if like is None:
        return own
    if not isinstance(like, str):
        raise FixtureError(f"{path}: like: the name of a fixture beside it is needed (found {like!r})")
    base = _completed(path.parent / like, (*below, path.resolve()))
    # What a host is written from, and what is expected of it, is its own.
    return _merge({key: value for key, value in base.items() if key not in ("recorded", "written_from")}, own)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except OSError as error:
        raise FixtureError(f"cannot read the fixture {path} ({error.strerror})") from None
    except ValueError as error:
        raise FixtureError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise FixtureError(f"{path}: one JSON object is needed, found {type(found).__name__}")
    return found


def _merge(base: Any, over: Any) -> Any:
    if not (isinstance(base, dict) and isinstance(over, dict)) or _whole(base) or _whole(over):
        return over
    merged = base | {key: _merge(base.get(key), value) for key, value in over.items()}
    return {key: value for key, value in merged.items() if value is not None}


def _whole(value: dict[str, Any]) -> bool:
    """Replaced as one: a refusal, a link, or a reading of several keys."""
    return "link" in value or _form(value) != "value"
