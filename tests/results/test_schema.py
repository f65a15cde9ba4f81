import json
from datetime import UTC

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from results.schema import SCHEMA, Row, json_schema

NAMES = st.text(min_size=1, max_size=40)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FINITE | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KNOBS = st.dictionaries(NAMES, JSON, max_size=4)
COUNTS = st.integers(0, 2**63 - 1)


@st.composite
def rows(draw):
    ingest, train, rest = (draw(st.floats(0, 1e9)) for _ in range(3))
    digest = draw(NAMES)
    ok = draw(st.booleans())
    valid = draw(st.booleans())
    return Row(
        ts=draw(st.datetimes(timezones=st.just(UTC))),
        commit=draw(st.none() | st.text("0123456789abcdef", min_size=7, max_size=40)),
        dirty=draw(st.booleans()),
        release=draw(NAMES),
        ladder=draw(st.from_regex(r"[a-z0-9][a-z0-9._-]{0,9}", fullmatch=True)),
        rung=draw(NAMES),
        scale=draw(st.floats(min_value=0, exclude_min=True, allow_infinity=False)),
        contender=draw(NAMES),
        growth=draw(st.sampled_from(["depthwise", "leafwise", "levelwise"])),
        grower=draw(NAMES),
        library=draw(NAMES),
        version=draw(NAMES),
        device=draw(NAMES),
        threads=draw(st.integers(1, 2**20)),
        repeat=draw(COUNTS),
        block=draw(COUNTS),
        order=draw(COUNTS),
        seed=draw(COUNTS),
        knobs_asked=draw(KNOBS),
        knobs_found=draw(KNOBS),
        ingest_s=ingest,
        train_s=train,
        fit_s=ingest + train + rest,
        metric=draw(NAMES),
        value=draw(FINITE),
        rss_bytes=draw(st.none() | COUNTS),
        status="ok" if ok else draw(st.sampled_from(["oom", "timeout", "unsupported", "rejected", "error"])),
        message=None if ok else draw(st.text(min_size=1, max_size=200)),
        data_hash=draw(NAMES),
        passport_before={"digest": digest, "host": draw(JSON)},
        passport_after={"digest": digest},
        valid=valid,
        invalid_reason=None if valid else draw(NAMES),
        command=draw(NAMES),
    )


@given(rows())
def test_a_row_survives_its_line_bit_by_bit(row):
    line = row.to_line()
    assert line.isascii()
    assert "\n" not in line
    again = Row.read(line)
    assert again == row
    assert again.to_line() == line


def test_null_is_written_for_what_was_not_measured(row):
    written = json.loads(row().to_line())
    assert written["schema"] == SCHEMA
    assert written["device_bytes"] is None
    assert set(written) == set(json_schema()["properties"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"train_s": float("nan")}, "finite"),
        ({"train_s": float("inf")}, "finite"),
        ({"train_s": -1.0}, "greater than or equal to 0"),
        ({"train_s": None}, "needs train_s"),
        ({"value": None, "metric": None}, "needs metric, value"),
        ({"knobs_found": None}, "needs knobs_found"),
        ({"passport_after": None}, "needs passport_after"),
        ({"fit_s": 1.7}, "outer wall"),
        ({"status": "oom"}, "needs a message"),
        ({"status": "fine"}, "Input should be"),
        ({"threads": 0}, "greater than or equal to 1"),
        ({"threads": True}, "valid integer"),
        ({"threads": np.int64(2)}, "valid integer"),
        ({"threads": "2"}, "valid integer"),
        ({"scale": 0.0}, "greater than 0"),
        ({"ladder": "../flights"}, "pattern"),
        ({"commit": "HEAD"}, "pattern"),
        ({"contender": ""}, "at least 1 character"),
        ({"knobs_asked": {"deep": [{"nan": float("nan")}]}}, "not a JSON number"),
        ({"passport_before": {"digest": ""}}, "non-empty"),
        ({"passport_before": {}}, "non-empty"),
        ({"passport_after": {"digest": "another"}}, "passport changed"),
        ({"valid": False}, "invalid_reason"),
        ({"invalid_reason": "loaded host"}, "invalid_reason"),
        ({"message": "\ud800"}, "unicode"),
        ({"sped": 1}, "Extra inputs"),
    ],
)
def test_a_bad_row_is_refused_on_write(row, changes, said):
    with pytest.raises(ValidationError, match=said):
        row(**changes)


def test_a_naive_time_is_refused(row):
    with pytest.raises(ValidationError, match="timezone"):
        row(ts=row().ts.replace(tzinfo=None))


def test_a_changed_passport_is_kept_as_an_invalid_row(row):
    kept = row(passport_after={"digest": "another"}, valid=False, invalid_reason="the passport changed")
    assert Row.read(kept.to_line()) == kept


def test_a_failed_fit_needs_no_figures(row):
    nothing = dict.fromkeys(
        ["ingest_s", "train_s", "fit_s", "metric", "value", "data_hash", "passport_after", "knobs_found"]
    )
    failed = row(status="unsupported", message="not installed", version=None, **nothing)
    assert Row.read(failed.to_line()) == failed


def test_keys_of_a_later_writer_are_dropped_on_read(row):
    later = {**json.loads(row().to_line()), "joules": 12.5, "nested": {"a": [1]}}
    assert Row.read(json.dumps(later)) == row()


@pytest.mark.parametrize("version", [2, 0, None, True, "1", 1.5])
def test_another_schema_version_is_refused_by_name(row, version):
    other = {**json.loads(row().to_line()), "schema": version}
    with pytest.raises(ValueError, match=r"schema .* is not 1"):
        Row.read(json.dumps(other))


@pytest.mark.parametrize("line", ["", "null", "[1]", '"row"', "{", '{"schema": NaN}', "\xff", b"\xff\xfe", "{} {}"])
def test_what_is_no_row_is_refused(line):
    with pytest.raises(ValueError, match=r".+"):
        Row.read(line)


def test_a_row_cannot_be_changed(row):
    with pytest.raises(ValidationError, match="frozen"):
        row().train_s = 0.1
