from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from results.schema import Row

PASSPORT = {"digest": "5a1e7c0ffee0b00c", "host": {"processor": "AMD EPYC", "affinity": [0, 1]}}


def make_row(**changes: Any) -> Row:
    """A whole, valid row; `changes` replaces fields."""
    fields = {
        "ts": datetime(2026, 11, 29, 12, tzinfo=UTC),
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "dirty": False,
        "release": "0.1.0",
        "ladder": "flights",
        "rung": "delay",
        "contender": "engine-depthwise",
        "growth": "depthwise",
        "grower": "depthwise",
        "library": "engine",
        "version": "0.1.0",
        "device": "cpu",
        "threads": 2,
        "repeat": 0,
        "block": 0,
        "order": 0,
        "seed": 42,
        "knobs_asked": {"max_bin": 255},
        "knobs_found": {"max_bin": 255},
        "ingest_s": 0.25,
        "train_s": 1.5,
        "fit_s": 1.8,
        "metric": "rmse",
        "value": 24.5,
        "status": "ok",
        "data_hash": "feedface",
        "passport_before": PASSPORT,
        "passport_after": PASSPORT,
        "command": "dyno ladder run flights",
    }
    return Row(**{**fields, **changes})


@pytest.fixture
def row() -> Callable[..., Row]:
    return make_row


@pytest.fixture
def fixture_rows() -> list[Row]:
    """Two rungs with a win, a loss, ties, refusals, failures, and rows of four other classes."""
    lines = (Path(__file__).parent / "rows.jsonl").read_text().splitlines()
    return [Row.read(line) for line in lines]
