import json

import pytest

from probes.sync_budget import HEALTHY_SYNC_S, budget_of, figures_of, read_trace, row_in_file

# In the units of thresholds.toml: microseconds and GB/s.
FIGURES = {
    "sync-p50": 300.0,
    "launch-enqueue": 2.0,
    "graph-replay": 10.0,
    "d2h-4-bytes-pinned": 305.0,
    "h2d-pinned": 25.0,
    "d2h-pinned": 20.0,
}
COUNTS = {
    "syncs": 20_000,
    "launches": 64_100,
    "replayed_launches": 64_000,
    "replays": 1_000,
    "copies": 50,
    "bytes_up": 50_000_000_000,
    "bytes_down": 2_000_000_000,
}

NSYS = """\
Generating SQLite file report.sqlite from report.nsys-rep
Processing [report.sqlite] with [cuda_api_sum.py]...

Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
60.0,6000000000,20000,300000.0,299000.0,1000,900000,10.0,cudaStreamSynchronize
20.0,2000000000,500,4000000.0,1.0,1,1,1.0,cudaMemcpy_v3020
10.0,1000000000,100000,10000.0,1.0,1,1,1.0,cudaMemcpyAsync_v3020
5.0,500000000,200000,2500.0,1.0,1,1,1.0,"cudaLaunchKernel_v7000"
1.0,100000000,100,1.0,1.0,1,1,1.0,cudaGraphLaunch_v10000
1.0,100000000,10,1.0,1.0,1,1,1.0,cudaFree_v3020
1.0,100000000,10,1.0,1.0,1,1,1.0,cudaFreeAsync_v11020
2.0,1,1,1.0,1.0,1,1,1.0,cuModuleLoadData
"""


def by_part(budget):
    return {cost.part: cost for cost in budget.costs}


def test_counts_times_latencies():
    budget = budget_of(COUNTS, FIGURES, fit_s=11.0)
    seconds = {part: cost.seconds for part, cost in by_part(budget).items()}
    assert seconds == pytest.approx(
        {
            "syncs": 20_000 * 298e-6,  # a round trip without its launch
            "launches": 100 * 2e-6,  # those outside graphs
            "replays": 1_000 * 10e-6,
            "copies": 50 * 7e-6,  # a small copy without its wait
            "bytes_up": 2.0,
            "bytes_down": 0.1,
        }
    )
    assert budget.seconds == pytest.approx(sum(seconds.values()))
    assert budget.excess_s == pytest.approx(20_000 * (298e-6 - HEALTHY_SYNC_S))


@pytest.mark.parametrize("part", ["syncs", "launches", "replays", "copies", "bytes_up", "bytes_down"])
def test_what_was_not_counted_is_not_measured(part):
    budget = budget_of({**COUNTS, part: None}, FIGURES)
    costs = by_part(budget)
    assert costs[part].seconds is None
    assert all(cost.seconds is not None for name, cost in costs.items() if name != part)


def test_a_host_that_was_not_probed_accounts_for_nothing_known():
    budget = budget_of(COUNTS, {})
    assert budget.seconds is budget.excess_s is None
    assert budget_of({}, FIGURES).seconds is None
    assert budget_of({"syncs": 0}, {}).seconds == 0


def test_a_small_copy_quicker_than_a_wait_costs_nothing_more():
    assert by_part(budget_of(COUNTS, {**FIGURES, "d2h-4-bytes-pinned": 1.0}))["copies"].seconds == 0


def test_a_healthy_host_has_no_excess():
    assert budget_of(COUNTS, {**FIGURES, "sync-p50": 4.0}).excess_s == 0


def test_a_link_of_no_speed_is_not_divided_by():
    assert by_part(budget_of(COUNTS, {**FIGURES, "h2d-pinned": 0.0}))["bytes_up"].seconds is None


def test_the_quick_probe_before_the_fit_is_nearer_than_the_last_full_one():
    passport = {"probe": {"figures": {"sync-p50": 4.0, "h2d-pinned": 25.0}}, "quick": {"figures": {"sync-p50": 290.0}}}
    assert figures_of(passport) == {"sync-p50": 290.0, "h2d-pinned": 25.0}
    assert figures_of({"probe": None}) == figures_of({}) == {}
    assert figures_of({"probe": {"figures": {"mig": True, "name": "H200"}}}) == {}


def test_a_trace_of_runtime_calls_is_counted(tmp_path):
    (tmp_path / "api.csv").write_text(NSYS)
    counts = read_trace(tmp_path / "api.csv")
    assert {name: counts[name] for name in ("syncs", "launches", "replays", "copies")} == {
        "syncs": 20_000 + 500 + 10,
        "launches": 200_000,
        "replays": 100,
        "copies": 100_500,
    }
    budget = budget_of(counts, FIGURES)
    assert by_part(budget)["syncs"].measured_s == pytest.approx(8.1)
    assert by_part(budget)["bytes_up"].seconds is None
    assert by_part(budget)["launches"].seconds == pytest.approx(0.4)


def test_the_same_trace_as_json(tmp_path):
    rows = [
        {"Name": "cudaDeviceSynchronize", "Num Calls": 3, "Total Time (ns)": 900_000},
        {"Name": "cuLaunchKernelEx", "Num Calls": 7, "Total Time (ns)": 1},
        {"Name": "cuMemcpyDtoH_v2", "Num Calls": 2, "Total Time (ns)": 1},
        {"Name": "cuMemcpyDtoHAsync_v2", "Num Calls": 5, "Total Time (ns)": 1},
    ]
    (tmp_path / "api.json").write_text(json.dumps(rows))
    counts = read_trace(tmp_path / "api.json")
    assert (counts["syncs"], counts["launches"], counts["copies"], counts["replays"]) == (5, 7, 7, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[1, 2]",
        "[{}]",
        '[{"Name": 1}]',
        "Num Calls,Name\nmany,x\n",
        "[",
        '[{"Name": "x", "Num Calls": null}]',
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, text):
    (tmp_path / "api.csv").write_text(text)
    with pytest.raises(ValueError, match=r"api\.csv|JSON|Expecting"):
        read_trace(tmp_path / "api.csv")


def test_a_row_is_named_by_file_and_line(tmp_path):
    path = tmp_path / "gpu:tall.jsonl"
    path.write_text('{"syncs": 1}\n{"syncs": 2}\n')
    assert row_in_file(f"{path}:2") == {"syncs": 2}
    (tmp_path / "one.json").write_text('{\n "syncs": 3\n}')
    assert row_in_file(str(tmp_path / "one.json")) == {"syncs": 3}


@pytest.mark.parametrize("named", ["none.jsonl:1", "rows.jsonl:0", "rows.jsonl:9", "", ":", "rows"])
def test_a_row_that_is_not_there(tmp_path, monkeypatch, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n')
    with pytest.raises((LookupError, ValueError), match=r"no row|not one JSON object"):
        row_in_file(named)


@pytest.mark.parametrize("text", ["[1]", "3", "{", "null"])
def test_a_line_that_is_no_row(tmp_path, text):
    (tmp_path / "rows.jsonl").write_text(f"{text}\n")
    with pytest.raises(ValueError, match="not one JSON object"):
        row_in_file(f"{tmp_path / 'rows.jsonl'}:1")
