"""One measured row: its fields, ranges and invariants, checked on write and on read. May import pydantic only.

Schema version policy. `SCHEMA` is the version written into every row.

- A new optional field does not raise it: older readers drop keys they do not know, newer readers fill the default.
- Removing or renaming a field, or changing a unit or a meaning, raises it by one, with a line in the table below.
- A reader refuses a row of any other version by name; published rows are never rewritten in place.

==  =====================================================================
1   first light: the fields of DESIGN.md §7
==  =====================================================================

Units: seconds, bytes; times of day are UTC. ``null`` means *not measured*, never zero.
"""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    model_validator,
)

SCHEMA = 1

Status = Literal["ok", "oom", "timeout", "unsupported", "rejected", "error"]
Growth = Literal["depthwise", "leafwise", "levelwise"]


def _finite_json(value: JsonValue) -> JsonValue:
    """JSON has no NaN and no infinity; a knob or probe that is one must say null."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number; write null for 'not measured'")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite_json(item)
    return value


def _has_digest(passport: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if not isinstance(passport.get("digest"), str) or not passport["digest"]:
        raise ValueError("a passport needs a non-empty string 'digest'; take one from probes.passport")
    return passport


Name = Annotated[str, Field(min_length=1, max_length=200)]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
JsonObject = Annotated[dict[str, JsonValue], AfterValidator(_finite_json), PlainSerializer(lambda value: value)]
"""Written as it stands: pydantic's own way asks Python for each value's type and drops a Ctrl-C there."""
Knobs = JsonObject
Passport = Annotated[JsonObject, AfterValidator(_has_digest)]

CLOCK_SLACK_S = 1e-3
"""How far `ingest_s + train_s` may pass the outer wall `fit_s`: rounding of printed seconds, nothing more."""


class Row(BaseModel):
    """One fit of one contender; immutable, strict, unknown keys refused (see `read` for the tolerant side).

    Attributes
    ----------
    schema_version : int
        `SCHEMA`; the key in the file is ``schema``.
    ts : datetime
        When the fit ended, with a time zone.
    commit, dirty, release : str or None, bool, str
        Commit of the project's tree (hex), whether tracked files differ from it, and the project's version.
    division : {"perf", "quality"}
        Which figures may be cited: times, or the metric.
    ladder, rung, scale : str, str, float > 0
        What was run, and the factor on its rows (1 is the full rung). The ladder also names its file.
    contender, growth, grower : str
        Who ran; the pair group it is compared in; the library's own name for that growth.
    library, version : str, str or None
        None if the library is not installed.
    device, threads : str, int >= 1
    repeat, block, order, seed : int >= 0
        Repeat of this contender; interleaving block; place within the block; seed of that order.
    timing_mode : {"in_memory", "pipeline"}
        Whether reading the data is inside `fit_s`.
    knobs_asked, knobs_found : dict, dict or None
        In our own names, equal between the contenders of a pair; and as read back from the trained model.
    ingest_s, train_s, fit_s, predict_s : float or None
        `fit_s` is the outer wall around ingest and train, never their sum.
    read_s : float or None
        Of the CSV file, inside `fit_s`; ``pipeline`` only.
    rounds, best_round : int or None
        Trees that were trained, and those that predict: fewer where the fit watched for the best round.
    predictions : dict or None
        Median seconds of a call by what was predicted: ``raw_1000``, ``dataset_50000``, from raw rows or a data set.
    metric, value : str or None, float or None
        On the test part.
    rss_bytes, device_bytes : int or None
        Peak resident memory over the resident input; peak device memory of the process.
    syncs, launches, replayed_launches, replays, copies, bytes_up, bytes_down : int or None
        Times the host waited for the device; kernels launched, and those of them inside replayed graphs; graphs
        replayed; copies over the bus and their bytes.
    phases, model_digest : dict or None, str or None
        Seconds of the fit by phase; SHA-256 of the model's bytes, as hex.
    status, message : str, str or None
        Everything but ``ok`` needs a message.
    data_hash, n_rows, n_features : str or None, int or None
        Of the arrays the contender was given; shape of the training part.
    data_family : str or None
        Where repeats see different data in turn: hash over the hashes of them all. Rows of one family are one work.
    passport_before, passport_after : dict, dict or None
        `probes.passport` around the fit; None after where the worker died.
    valid, invalid_reason : bool, str or None
        False keeps the row and its figures out of every comparison. Rows are never deleted.
    command : str
        Reproduces the row.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, populate_by_name=True)

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    ts: AwareDatetime
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,64}$")] | None
    dirty: bool
    release: Name
    division: Literal["perf", "quality"] = "perf"
    ladder: Slug
    rung: Name
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    contender: Name
    growth: Growth
    grower: Name
    library: Name
    version: Name | None
    device: Name
    threads: Annotated[int, Field(ge=1, le=2**20)]
    repeat: Count
    block: Count
    order: Count
    seed: Count
    timing_mode: Literal["in_memory", "pipeline"] = "in_memory"
    knobs_asked: Knobs
    knobs_found: Knobs | None = None
    ingest_s: Seconds | None = None
    train_s: Seconds | None = None
    fit_s: Seconds | None = None
    predict_s: Seconds | None = None
    read_s: Seconds | None = None
    rounds: Count | None = None
    best_round: Count | None = None
    predictions: Annotated[dict[Name, Seconds], Field(max_length=100)] | None = None
    metric: Name | None = None
    value: Finite | None = None
    rss_bytes: Count | None = None
    device_bytes: Count | None = None
    syncs: Count | None = None
    launches: Count | None = None
    replayed_launches: Count | None = None
    replays: Count | None = None
    copies: Count | None = None
    bytes_up: Count | None = None
    bytes_down: Count | None = None
    phases: Annotated[dict[Name, Seconds], Field(max_length=100)] | None = None
    model_digest: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")] | None = None
    status: Status
    message: Annotated[str, Field(max_length=20_000)] | None = None
    data_hash: Name | None = None
    data_family: Name | None = None
    n_rows: Annotated[int, Field(ge=1)] | None = None
    n_features: Annotated[int, Field(ge=1)] | None = None
    passport_before: Passport
    passport_after: Passport | None = None
    valid: bool = True
    invalid_reason: Annotated[str, Field(min_length=1, max_length=2000)] | None = None
    command: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _status_agrees(self) -> Self:
        if self.status != "ok":
            if not self.message:
                raise ValueError(f"status '{self.status}' needs a message that says why")
            return self
        needed = (
            "version",
            "knobs_found",
            "ingest_s",
            "train_s",
            "fit_s",
            "metric",
            "value",
            "data_hash",
            "passport_after",
        )
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise ValueError(f"status 'ok' needs {', '.join(missing)}; use another status if it was not measured")
        if self.ingest_s + self.train_s > self.fit_s + CLOCK_SLACK_S:
            raise ValueError(
                f"ingest_s {self.ingest_s} + train_s {self.train_s} is more than fit_s {self.fit_s}: "
                "fit_s is the outer wall around both"
            )
        return self

    @model_validator(mode="after")
    def _validity_agrees(self) -> Self:
        if self.valid == (self.invalid_reason is not None):
            raise ValueError("invalid_reason belongs to rows with valid=false, and to all of them")
        after = self.passport_after
        if self.valid and after is not None and after["digest"] != self.passport_before["digest"]:
            raise ValueError(
                f"the passport changed during the row ({self.passport_before['digest']} to {after['digest']}): "
                "write it with valid=false and that as invalid_reason"
            )
        return self

    def to_line(self) -> str:
        """The row as one line of ASCII JSON, without the newline."""
        return json.dumps(self.model_dump(mode="json", by_alias=True), allow_nan=False, separators=(",", ":"))

    @classmethod
    def read(cls, line: str | bytes) -> Self:
        """Parse one stored line; keys of later writers are dropped.

        Raises
        ------
        ValueError
            If the line is not one JSON object, is of another schema version, or breaks a range or an invariant
            (pydantic's ValidationError is a ValueError).
        """
        found = json.loads(line, parse_constant=_refuse_constant)
        if not isinstance(found, dict):
            raise ValueError(f"a row is a JSON object, this line is {type(found).__name__}")
        version = found.get("schema")
        if version != SCHEMA or isinstance(version, bool):
            raise ValueError(
                f"schema {version!r} is not {SCHEMA}, the version this build reads; use the build that wrote it"
            )
        known = {key: value for key, value in found.items() if key in _KEYS}
        return cls.model_validate_json(json.dumps(known))


_KEYS = frozenset(field.alias or name for name, field in Row.model_fields.items())


def json_schema() -> dict[str, Any]:
    """The row as JSON Schema (draft 2020-12), for readers outside Python."""
    return Row.model_json_schema(by_alias=True)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON; a row writes null for 'not measured'")
