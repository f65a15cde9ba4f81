"""Histories with known changes, for the tests of series, regressions, verdicts and power."""

from datetime import UTC, datetime, timedelta

import numpy as np

from tests.results.conftest import make_row

PHASES = {"ingest": 0.3, "histogram": 1.0, "partition": 0.4, "leaves": 0.1}
"""Seconds of a fit by phase; all but ingest are training."""


def commit(place):
    return f"{place + 0xABC:040x}"


def fit(place, slower=1.0, phase="histogram", **changes):
    """One row at a commit with one phase slower by a factor."""
    phases = {name: seconds * (slower if name == phase else 1.0) for name, seconds in PHASES.items()}
    train = sum(phases.values()) - phases["ingest"]
    fields = {
        "commit": commit(place),
        "ts": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=place),
        "ingest_s": phases["ingest"],
        "train_s": train,
        "fit_s": train + phases["ingest"],
        "predict_s": 0.05,
        "phases": phases,
    }
    return make_row(**{**fields, **changes})


def noisy(seed, n_commits, repeats, noise, slow_from=None, slower=1.1, **changes):
    """Rows of a history under lognormal noise of every fit."""
    rng = np.random.default_rng(seed)
    rows = []
    for place in range(n_commits):
        for repeat in range(repeats):
            row = fit(place, slower if slow_from is not None and place >= slow_from else 1.0, repeat=repeat, **changes)
            factor = float(np.exp(noise * rng.standard_normal()))
            times = {name: getattr(row, name) * factor for name in ("ingest_s", "train_s", "fit_s", "predict_s")}
            phases = {name: seconds * factor for name, seconds in row.phases.items()}
            rows.append(row.model_copy(update={**times, "phases": phases}))
    return rows
