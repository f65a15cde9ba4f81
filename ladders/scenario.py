"""What a scenario file may say: rungs, knobs, limits; strict. May import contenders and data sources.

A scenario is a TOML file: one of ours by name (`scenarios/*.toml`), or the caller's own by path.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from ladders.contenders import CONTENDERS
from ladders.contenders.knobs import Knobs, Objective
from ladders.data.sources import check_options

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,40}$")]
Growth = Literal["depthwise", "leafwise", "levelwise"]
Repeats = Annotated[int, Field(ge=1, le=1000)]
Threads = Annotated[list[Annotated[int, Field(ge=1, le=4096)]], Field(min_length=1)]


class Strict(BaseModel):
    """Frozen, nothing unknown, nothing coerced."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Limits(Strict):
    """How far one growth may go; 0 is no limit."""

    max_depth: Annotated[int, Field(ge=0, le=16)] = 0
    max_leaves: Annotated[int, Field(ge=0, le=65_536)] = 0

    @model_validator(mode="after")
    def _one_binds(self) -> Self:
        if not (self.max_depth or self.max_leaves):
            raise ValueError("max_depth and max_leaves are both 0: give at least one a limit")
        return self


class Common(Strict):
    """Knobs that every contender of a scenario shares, in our own names (see `engine.Params`)."""

    n_estimators: Annotated[int, Field(ge=1, le=100_000)] = 100
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 0.1
    max_bin: Annotated[int, Field(ge=2, le=255)] = 255
    min_child_weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    min_samples_leaf: Annotated[int, Field(ge=1)] = 1
    reg_lambda: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    random_state: Annotated[int, Field(ge=0, lt=2**31)] = 42
    patience: Annotated[int, Field(ge=0)] = 0


class Rung(Strict):
    """One task of the ladder: a data source, its options, what is learned, and where it departs from the scenario.

    Attributes
    ----------
    name, data, options, objective
        The task.
    varied : dict of option to list
        Options of the source that differ by repeat: repeat r takes the value at r modulo their number, so that quality
        is judged over several data sets and not by the luck of one. Lists of one length are taken in step.
    repeats : int, optional
        Instead of the scenario's: a rung that takes minutes is repeated less often than one that takes a second.
    threads : list of int, optional
        Instead of the scenario's.
    knobs : Common
        Those given replace the scenario's, one by one.
    limits : dict of growth to Limits
        Each replaces the scenario's for that growth.
    timing_mode : {"in_memory", "pipeline"}
        Whether `fit_s` begins with arrays or with a CSV file that must be read.
    held_out : float in [0, 0.5]
        Share of the training rows, their last ones, that is not trained on.
    watch : bool
        Whether the held-out rows are looked at after every tree.
    predictions : bool
        Whether prediction is timed at several numbers of rows, from raw rows and from a data set.
    """

    name: Name
    data: str
    options: dict[str, Any] = {}
    varied: dict[str, Annotated[list[Any], Field(min_length=1)]] = {}
    objective: Objective
    repeats: Repeats | None = None
    threads: Threads | None = None
    knobs: Common = Common()
    limits: dict[Growth, Limits] = {}
    timing_mode: Literal["in_memory", "pipeline"] = "in_memory"
    held_out: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    watch: bool = False
    predictions: bool = False

    @model_validator(mode="after")
    def _source_knows(self) -> Self:
        if doubled := sorted(self.varied.keys() & self.options.keys()):
            raise ValueError(f"option '{doubled[0]}' stands in options and in varied: leave it in one of them")
        lengths = {name: len(values) for name, values in self.varied.items()}
        if len(set(lengths.values())) > 1:
            counted = ", ".join(f"{number} of {name}" for name, number in lengths.items())
            raise ValueError(f"varied has {counted}: give as many values of each, one a data set")
        for options in self.sets:
            check_options(self.data, options)
        return self

    @property
    def sets(self) -> list[dict[str, Any]]:
        """The source's options of every data set, in the order in which repeats take them; one if nothing varies."""
        turns = zip(*self.varied.values(), strict=True)
        return [{**dict(zip(self.varied, turn, strict=True)), **self.options} for turn in turns] or [self.options]

    def options_at(self, repeat: int) -> dict[str, Any]:
        """The source's options of the data that a repeat sees."""
        return self.sets[repeat % len(self.sets)]


class Scenario(Strict):
    """One ladder.

    Attributes
    ----------
    name, title : str
    division : {"perf", "quality"}
        Which figures of its rows may be cited.
    repeats : int
        Fits of each contender, each in its own interleaved block.
    seed : int
        Of the order within the blocks.
    timeout_s : float
        Of one whole worker, warm-up and prediction included.
    target : {"cpu", "gpu"}
        Where it is measured, and so what the host is probed for.
    threads : list of int, optional
        Every contender is measured at each of these numbers of threads; if not given, once, at all usable cores.
    report : {"standings", "pairs", "growth", "predict"}
        What a run shows at its end: see `results.render` and its neighbours of those names.
    contenders : tuple of str
        All that are known, if not given.
    knobs : Common
    limits : dict of growth to Limits
    rungs : tuple of Rung
    """

    name: Name
    title: str
    division: Literal["perf", "quality"] = "perf"
    repeats: Repeats = 5
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 42
    timeout_s: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    target: Literal["cpu", "gpu"] = "cpu"
    threads: Threads | None = None
    report: Literal["standings", "pairs", "growth", "predict"] = "standings"
    contenders: Annotated[list[str], Field(min_length=1)] = list(CONTENDERS)
    knobs: Common
    limits: dict[Growth, Limits]
    rungs: Annotated[list[Rung], Field(min_length=1)]

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        check_contenders(self.contenders)
        names = [rung.name for rung in self.rungs]
        if len(set(names)) < len(names):
            raise ValueError(f"rung names must differ, got {', '.join(names)}")
        needed = {CONTENDERS[name].growth for name in self.contenders}
        for growth in sorted(needed - set(self.limits)):
            raise ValueError(f"limits.{growth} is missing: a contender of that growth takes part")
        for rung in self.rungs:
            if rung.watch and not rung.held_out:
                raise ValueError(f"rung '{rung.name}' watches rows, and none are held_out: give their share")
            if self._common(rung)["patience"] and not rung.watch:
                raise ValueError(f"rung '{rung.name}' has patience, and nothing to watch: set watch and held_out")
        for threads in (self.threads, *(rung.threads for rung in self.rungs)):
            if threads and len(set(threads)) < len(threads):
                raise ValueError(f"threads {threads} names a number twice")
        return self

    def chosen_rungs(self, names: Sequence[str] | None) -> list[Rung]:
        """The rungs of these names, in the scenario's order; all if None.

        Raises
        ------
        ValueError
            For no name or one that is no rung's; says the nearest.
        """
        if names is None:
            return self.rungs
        known = [rung.name for rung in self.rungs]
        if not names:
            raise ValueError(f"no rung is named; '{self.name}' has {', '.join(known)}")
        for name in names:
            if name not in known:
                raise ValueError(f"no rung '{name}'{_nearest(name, known)}; '{self.name}' has {', '.join(known)}")
        return [rung for rung in self.rungs if rung.name in names]

    def asked(self, contender: str, rung: Rung, threads: int) -> Knobs:
        """The knobs one contender is asked for, in our names."""
        growth = CONTENDERS[contender].growth
        return Knobs(
            objective=rung.objective,
            growth=growth,
            n_threads=threads,
            device=self.target,
            **self._common(rung),
            **rung.limits.get(growth, self.limits[growth]).model_dump(),
        )

    def _common(self, rung: Rung) -> dict[str, Any]:
        return {**self.knobs.model_dump(), **rung.knobs.model_dump(exclude_unset=True)}


def check_contenders(names: list[str]) -> None:
    """Refuse no contender, an unknown or a doubled one, with the nearest known one.

    Raises
    ------
    ValueError
    """
    if not names:
        raise ValueError(f"no contender is named; known: {', '.join(CONTENDERS)}")
    for name in names:
        if name not in CONTENDERS:
            raise ValueError(f"unknown contender '{name}'{_nearest(name, CONTENDERS)}; known: {', '.join(CONTENDERS)}")
    if len(set(names)) < len(names):
        raise ValueError(f"a contender is named twice in {', '.join(names)}")


def scenario_names() -> list[str]:
    """Names of the scenarios that come with the package."""
    return sorted(path.name.removesuffix(".toml") for path in _folder().iterdir() if path.name.endswith(".toml"))


def load_scenario(name: str) -> Scenario:
    """A scenario by name, or by path if it ends in ``.toml``.

    Raises
    ------
    ValueError
        Names the file, the key, what is wrong and the nearest known key or scenario.
    """
    if not name.endswith(".toml") and name not in scenario_names():
        raise ValueError(f"unknown ladder '{name}'{_nearest(name, scenario_names())}; see: dyno ladder list")
    path = Path(name) if name.endswith(".toml") else _folder() / f"{name}.toml"
    try:
        return Scenario.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ValueError(f"cannot read scenario {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"scenario {path} is not TOML: {error}") from None
    except ValidationError as error:
        raise ValueError(f"scenario {path}: " + "; ".join(_explain(item) for item in error.errors())) from None


def _folder() -> Any:
    return files("ladders") / "scenarios"


def _explain(item: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"unknown key '{name}'{_nearest(str(item['loc'][-1]), _keys())}"
    if item["type"] == "missing":
        return f"'{name}' is missing"
    message = item["msg"].removeprefix("Value error, ")
    return f"{name or 'file'}: {message}" if item["type"] == "value_error" else f"{name}={item['input']!r}: {message}"


def _keys() -> list[str]:
    return [key for model in (Scenario, Common, Limits, Rung) for key in model.model_fields]


def _nearest(name: str, known: Any) -> str:
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""
