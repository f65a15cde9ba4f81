from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def own_directories(tmp_path, tmp_path_factory, monkeypatch):
    """No test reads or writes the user's cache, machine file or rows; data are shared by the tests of one session."""
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("ASV_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(autouse=True)
def forgiving_thresholds(tmp_path_factory, monkeypatch):
    """Tests share their cores with other tests: that a neighbour shows must not mark their rows."""
    path = tmp_path_factory.getbasetemp() / "forgiving.toml"
    path.write_text("".join(f"[cpu-{what}-under-load]\nfail_above = 101\n" for what in ("throttled", "stolen")))
    monkeypatch.setenv("DYNO_THRESHOLDS", str(path))
