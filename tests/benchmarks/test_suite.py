import io
import json
import platform
from importlib.util import find_spec

import pytest
from asv_runner.benchmarks.mark import SkipNotImplemented
from asv_runner.check import _check
from asv_runner.discovery import list_benchmarks

from benchmarks import host, rows
from benchmarks.rows import Reader
from ladders.contenders import CONTENDERS
from ladders.scenario import load_scenario
from probes.passport import take_passport
from probes.store import keep_probe
from probes.verdict import Judgement
from results.store import Store
from tests.benchmarks.conftest import ROOT

FOLDER = str(ROOT / "benchmarks")


@pytest.fixture(scope="module")
def listed():
    """The suite as asv finds it."""
    text = io.StringIO()
    list_benchmarks(FOLDER, text)
    return {benchmark["name"]: benchmark for benchmark in json.loads(text.getvalue())}


@pytest.fixture(autouse=True)
def forget():
    """What is asked once a process is asked once a test."""
    for function in (host._reasons, rows.commit, rows.run_of_asv):
        function.cache_clear()


def read_small(benchmark, store):
    return Reader(benchmark, "cpu", "engine-depthwise", "small", store).next()


def test_asv_finds_nothing_wrong(capsys):
    with pytest.raises(SystemExit) as ended:
        _check([FOLDER])
    assert ended.value.code == 0, capsys.readouterr()


def test_covers_every_part(listed):
    parts = {name.split(".")[0] for name in listed}
    assert parts == {"early_stop", "fit", "import_time", "ingest", "kernels", "predict", "probes", "rivals"}
    kinds = {name.split(".")[-1].split("_")[0] for name in listed}
    assert kinds == {"time", "timeraw", "track", "peakmem"}


def test_every_version_is_pinned(listed):
    """asv's default is a hash of the source: an edited comment would cut a series in two."""
    assert {benchmark["version"] for benchmark in listed.values()} <= {str(number) for number in range(1, 100)}


def test_timed_benchmarks_give_enough_samples(listed):
    """With six against six, asv's test can find no two commits different (research/harness.md §2)."""
    fits = [benchmark for name, benchmark in listed.items() if ".time_" in name]
    assert fits
    assert all(benchmark["rounds"] * benchmark["repeat"] >= 7 for benchmark in fits)


def test_lists_only_what_this_host_can_run(listed):
    for name, benchmark in listed.items():
        if name.startswith(("fit.Fit.", "rivals.Rivals.")):
            contenders = [eval(value) for value in benchmark["params"][0]]
            assert all(find_spec(CONTENDERS[contender].package) for contender in contenders)
    named = {
        eval(value)
        for name in ("fit.Fit.time_train", "rivals.Rivals.time_train")
        for value in listed[name]["params"][0]
    }
    assert named == {name for name, contender in CONTENDERS.items() if find_spec(contender.package)}
    assert host.has_gpu() == any("OnGpu" in name for name in listed)


def test_a_missing_rival_is_left_out(monkeypatch):
    monkeypatch.setattr(host, "find_spec", lambda package: None if package == "lightgbm" else find_spec(package))
    assert "lightgbm" not in host.contenders(ours=False)
    assert "xgboost-depthwise" in host.contenders(ours=False)


@pytest.mark.parametrize("target", ["cpu", "gpu"])
def test_the_suite_of_each_target_is_a_ladder(target):
    suite = load_scenario(str(rows.SUITES[target]))
    assert suite.target == target
    assert [rung.name for rung in suite.rungs] == host.rungs(target) == ["small", "tall", "wide"]


def test_what_one_benchmark_has_fitted_another_reads(tmp_path):
    store = Store(tmp_path / "rows")
    first = read_small("time_train", store)
    assert read_small("track_quality", store) == first
    assert len(store.read().rows) == 1
    second = read_small("time_train", store)
    assert second.ts > first.ts
    assert read_small("track_quality", store) == second
    assert len(store.read().rows) == 2
    assert first.status == "ok"
    assert first.rung == "small"


def test_another_commit_and_another_run_are_fitted_anew(tmp_path, monkeypatch):
    store = Store(tmp_path / "rows")
    monkeypatch.setenv("ASV_COMMIT", "1" * 40)
    first = read_small("time_train", store)
    monkeypatch.setenv("ASV_COMMIT", "2" * 40)
    rows.commit.cache_clear()
    second = read_small("time_train", store)
    assert [first.commit, second.commit] == ["1" * 40, "2" * 40]
    monkeypatch.setattr(rows, "run_of_asv", lambda: second.ts.replace(year=second.ts.year + 1))
    read_small("time_train", store)
    assert len(store.read().rows) == 3


def test_a_row_that_may_not_be_compared_is_not_available(tmp_path, capsys):
    store = Store(tmp_path / "rows")
    good = read_small("time_train", store)
    store.append(good.model_copy(update={"valid": False, "invalid_reason": "the host was throttled"}))
    with pytest.raises(SkipNotImplemented, match="throttled"):
        read_small("time_train", store)
    assert "throttled" in capsys.readouterr().err


def test_a_failed_fit_fails_the_benchmark(tmp_path):
    store = Store(tmp_path / "rows")
    good = read_small("time_train", store)
    store.append(good.model_copy(update={"status": "oom", "message": "no memory left"}))
    with pytest.raises(RuntimeError, match="oom: no memory left"):
        read_small("time_train", store)


def test_a_rejected_host_is_not_available_and_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "cache"))
    keep_probe(take_passport()["digest"], "cpu", [], Judgement("reject", ("memory triad is 0.1 GB/s",)))
    with pytest.raises(NotImplementedError, match=r"rejected: memory triad is 0\.1 GB/s"):
        host.refuse_unbelievable("cpu")
    host._reasons.cache_clear()
    host.refuse_unbelievable("gpu")  # that verdict is not about the card


def test_a_host_that_is_not_the_one_in_the_machine_file_is_refused(tmp_path):
    path = tmp_path / ".asv-machine.json"
    path.write_text(json.dumps({platform.node(): {"machine": "old", "passport": "0123"}, "version": 1}))
    with pytest.raises(NotImplementedError, match="run dyno asv-machine"):
        host.refuse_unbelievable("cpu")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', "no json"])
def test_a_machine_file_of_asvs_own_is_fine(tmp_path, text):
    (tmp_path / ".asv-machine.json").write_text(text)
    host.refuse_unbelievable("cpu")


def test_counts_of_the_kernels_are_those_of_one_fit():
    from benchmarks.kernels import GROWERS, Kernels

    suite = Kernels()
    counts = suite.setup_cache()
    again = suite.setup_cache()
    assert counts == again
    for grower in GROWERS:
        assert suite.track_launches(counts, grower) > suite.track_syncs(counts, grower) > 0
        assert suite.track_bytes_up(counts, grower) > 2_000 * 12
        assert 0 < suite.track_model_digest(counts, grower) < 2**48


def test_the_timer_stands_where_rows_have_put_it(tmp_path):
    from benchmarks.fit import Fit

    fits = Fit()
    before = fits.timer()
    fits.time_train("engine-depthwise", "small")
    (row,) = Store(rows.rows_folder()).read().rows
    assert fits.timer() - before == row.train_s
