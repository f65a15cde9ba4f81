"""The tuner on a clock that only builds and waits move: it finds what is fastest there, and waits do not blur it."""

import json

import pytest

from engine.device.tuner import FLOORS_PER_SAMPLE, LARGEST_DIRECT, LEAST_NODE, NEVER, Tuner, Tuning
from engine.device.tuning_store import TuningStore, tune_directory

FLOOR = 30e-6


class Bench:
    """A device whose builds cost what a formula says, and each wait costs `FLOOR`; sample `slow` takes longer."""

    def __init__(self, cost, slow=-1):
        self.now, self.queued, self.builds, self.samples = 0.0, 0.0, 0, []
        self._cost, self._slow = cost, slow

    def prepare(self, tuning, rows):
        self._price = self._cost(tuning, rows)

    def build(self):
        self.queued += self._price
        self.builds += 1

    def synchronise(self):
        if self.builds:
            self.queued *= 10 if len(self.samples) == self._slow else 1
            self.samples.append((self.builds, self.queued + FLOOR))
        self.now += self.queued + FLOOR
        self.queued, self.builds = 0.0, 0

    def tune(self, n_rows):
        return Tuner(self.prepare, self.build, self.synchronise, lambda: self.now).tune(n_rows)


def priced(best_tile, crossing):
    """Tiles cost least a row at `best_tile`; below `crossing` rows, adding straight to memory is cheaper."""

    def cost(tuning, rows):
        direct = 2e-9 * rows
        if tuning.least_tiled > rows:
            return direct
        away = max(tuning.tile_rows, best_tile) / min(tuning.tile_rows, best_tile)
        return 1e-9 * (rows + crossing) * (1 + 0.05 * (away - 1))

    return cost


@pytest.mark.parametrize("best_tile", [1024, 4096, 32768])
@pytest.mark.parametrize(("crossing", "least"), [(100, 256), (500, 1024), (3000, 4096)])
def test_the_fastest_tile_and_the_smallest_node_that_still_tiles(best_tile, crossing, least):
    assert Bench(priced(best_tile, crossing)).tune(2**20) == Tuning(best_tile, least)


@pytest.mark.parametrize("n_rows", [1000, LARGEST_DIRECT, 2**20])
def test_nodes_that_are_cheaper_without_tiles_go_without(n_rows):
    assert Bench(priced(4096, 2**22)).tune(n_rows).least_tiled == min(n_rows, LARGEST_DIRECT) + 1


def test_a_sample_is_never_one_build_and_covers_sixteen_waits():
    bench = Bench(priced(4096, 2000))
    bench.tune(2**18)
    last_comparison = bench.samples[-6:]  # two candidates, three turns
    assert all(n > 1 and seconds >= FLOORS_PER_SAMPLE * FLOOR for n, seconds in last_comparison)


def test_one_slow_sample_changes_nothing_whenever_it_comes():
    calm = Bench(priced(8192, 2000))
    expected = calm.tune(2**20)
    for slow in range(0, len(calm.samples), 5):
        bench = Bench(priced(8192, 2000), slow)
        assert bench.tune(2**20) == expected


def test_few_rows_are_not_measured():
    bench = Bench(priced(4096, 0))
    assert bench.tune(LEAST_NODE - 1).least_tiled == NEVER
    assert bench.now == 0.0


def test_a_store_gives_back_what_was_put_for_that_device_and_build_only(tmp_path):
    TuningStore("H200", "build1", tmp_path).put("shape", Tuning(1024, 256))
    (written,) = tmp_path.glob("*.json")
    stored = json.loads(written.read_text())
    stored["other"] = {"tile_rows": 2048, "least_tiled": 4096}  # by another process: this one has not seen it
    written.write_text(json.dumps(stored))
    assert TuningStore("H200", "build1", tmp_path).get("shape") == Tuning(1024, 256)
    assert TuningStore("H200", "build1", tmp_path).get("other") == Tuning(2048, 4096)
    assert TuningStore("H200", "build2", tmp_path).get("shape") is None
    assert TuningStore("L40S", "build1", tmp_path).get("shape") is None


@pytest.mark.parametrize("text", ["", "[]", '{"shape": 3}', '{"shape": {"tile_rows": 1}', '{"shape": {"rows": 1}}'])
def test_a_damaged_file_is_no_answer_and_is_replaced(tmp_path, text):
    store = TuningStore("device", "build", tmp_path)
    store.put("first", Tuning())
    (path,) = tmp_path.glob("*.json")
    path.write_text(text)
    assert store.get("shape") is None
    store.put("second", Tuning(1024, 256))
    assert json.loads(path.read_text()) == {"second": {"tile_rows": 1024, "least_tiled": 256}}


def test_a_directory_that_cannot_be_made_keeps_answers_in_memory(tmp_path):
    (tmp_path / "file").touch()
    store = TuningStore("device", "build", tmp_path / "file" / "below")
    store.put("shape", Tuning(1024, 256))
    assert store.get("shape") == Tuning(1024, 256)


def test_where_the_store_lives(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_TUNE_DIR", str(tmp_path))
    assert tune_directory() == tmp_path
    monkeypatch.setenv("DYNO_TUNE_DIR", "")
    assert tune_directory() is None
    monkeypatch.delenv("DYNO_TUNE_DIR")
    assert "gbt-dyno" in str(tune_directory())
