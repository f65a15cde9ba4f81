import json

import pytest
import typer
from typer.testing import CliRunner

from results import store
from results.cli import DAMAGED, NOTHING, SLOWER, USAGE, results_app, standings
from results.store import Store
from tests.results.history import commit, noisy
from tests.results.releases import two_releases

app = typer.Typer()
app.add_typer(results_app, name="results")
app.command("standings")(standings)


@pytest.fixture
def dyno(tmp_path, monkeypatch):
    """The command, with its rows in `tmp_path`/local and its records in `tmp_path`/results/records."""
    monkeypatch.setenv("DYNO_RESULTS_DIR", str(tmp_path / "local"))
    (tmp_path / "pyproject.toml").write_text("")
    monkeypatch.setattr(store, "CHECKOUT", tmp_path)
    return lambda *words: CliRunner().invoke(app, words)


@pytest.fixture
def filled(tmp_path, fixture_rows):
    local = Store(tmp_path / "local")
    for row in fixture_rows:
        local.append(row)
    return local


@pytest.mark.parametrize("words", [("standings",), ("results", "list"), ("results", "publish")])
def test_no_rows_say_what_to_run(dyno, words):
    found = dyno(*words)
    assert found.exit_code == NOTHING
    assert "dyno ladder run flights" in found.stderr


def test_standings_write_a_page_and_two_plots(dyno, filled, tmp_path):
    found = dyno("standings", "--out", str(tmp_path / "page"))
    assert found.exit_code == 0, found.output
    for name in ("standings.md", "standings.svg", "standings.png"):
        assert (tmp_path / "page" / name).stat().st_size > 0
        assert str(tmp_path / "page" / name) in found.stdout
    assert "1.37x faster" in found.stdout


def test_standings_as_json_are_one_object(dyno, filled):
    found = dyno("standings", "--json", "--ladder", "flights")
    assert found.exit_code == 0
    values = json.loads(found.stdout)
    assert [table["rung"] for table in values["tables"]] == ["delay", "late"]
    assert all(str(filled.directory / "standings") in path for path in values["files"])


def test_standings_of_one_scale(dyno, filled):
    (table,) = json.loads(dyno("standings", "--json", "--scale", "0.1").stdout)["tables"]
    assert table["row_class"]["scale"] == 0.1
    assert dyno("standings", "--release", "9.9").exit_code == NOTHING


def test_standings_without_figures_show_the_failures(dyno, row, tmp_path):
    Store(tmp_path / "local").append(row(status="oom", message="killed at 3 GiB"))
    found = dyno("standings")
    assert found.exit_code == NOTHING
    assert "killed at 3 GiB" in found.stdout


def test_standings_that_cannot_be_written_are_said(dyno, filled, tmp_path):
    (tmp_path / "file").write_text("")
    found = dyno("standings", "--out", str(tmp_path / "file"))
    assert found.exit_code == DAMAGED
    assert "--out" in found.stderr


def test_damaged_lines_are_named_and_the_rest_stands(dyno, filled):
    with (filled.directory / "flights.jsonl").open("a") as file:
        file.write('{"schema": 1, "ts"')
    found = dyno("standings")
    assert found.exit_code == 0
    assert "flights.jsonl:33: torn last line" in found.stderr
    checked = dyno("results", "check")
    assert checked.exit_code == DAMAGED
    assert "32 rows, 1 damaged lines" in checked.stdout


def test_a_row_is_shown_as_listed(dyno, filled):
    listed = dyno("results", "list")
    assert listed.exit_code == 0
    assert listed.stdout.count("flights:") == len(filled.read().rows)
    shown = dyno("results", "show", "flights:6")
    assert json.loads(shown.stdout) == json.loads(filled.read().stored[5].text)
    assert dyno("results", "show", "flights:99").exit_code == USAGE
    assert dyno("results", "show", "nonsense").exit_code == USAGE
    assert dyno("standings", "--scale", "big").exit_code == USAGE


def test_standings_at_one_number_of_threads(dyno, filled):
    (row, *_) = filled.read().rows
    filled.append(row.model_copy(update={"threads": 1}))
    tables = json.loads(dyno("standings", "--json").stdout)["tables"]
    assert [table["row_class"]["threads"] for table in tables] == [1, 2, 2]
    (table,) = json.loads(dyno("standings", "--json", "--threads", "1").stdout)["tables"]
    assert table["row_class"]["threads"] == 1
    assert dyno("standings", "--threads", "7").exit_code == NOTHING


def test_pairs_are_read_from_the_rows(dyno, filled):
    found = dyno("results", "pairs")
    assert found.exit_code == 0
    assert "Targets held: train" in found.stdout
    cases = json.loads(dyno("results", "pairs", "--ladder", "flights", "--threads", "2", "--json").stdout)["cases"]
    assert {case["growth"] for case in cases} == {"depthwise", "leafwise", "levelwise"}
    assert dyno("results", "pairs", "--ladder", "none").exit_code == NOTHING


def test_growth_is_read_from_the_rows(dyno, row, tmp_path):
    store = Store(tmp_path / "local")
    knobs = {"max_depth": 8, "max_leaves": 0, "max_bin": 255}
    for n in (1000, 2000):
        store.append(row(rung=f"{n}", n_rows=n, n_features=10, knobs_asked=knobs, train_s=n / 1e3, fit_s=n / 1e3 + 1))
    assert "rows: at 1,000, 2,000" in dyno("results", "growth").stdout
    (axis,) = json.loads(dyno("results", "growth", "--json").stdout)["axes"]
    assert axis["slopes"][0]["value"] == pytest.approx(1)


def test_the_list_as_json_is_the_stored_lines(dyno, filled):
    listed = dyno("results", "list", "--json")
    assert listed.stdout.splitlines() == [stored.text for stored in filled.read().stored]


def test_published_rows_are_read_from_records(dyno, filled, tmp_path):
    planned = dyno("results", "publish", "--plan")
    assert planned.exit_code == 0
    assert "32 rows would be published" in planned.stdout
    assert dyno("standings", "--published").exit_code == NOTHING
    assert dyno("results", "publish").exit_code == 0
    assert (tmp_path / "results" / "records" / "flights.jsonl").read_text() == (
        filled.directory / "flights.jsonl"
    ).read_text()
    assert dyno("standings", "--published").exit_code == 0
    assert "0 rows published" in dyno("results", "publish").stdout


def test_the_schema_is_json_schema(dyno):
    assert "schema" in json.loads(dyno("results", "schema").stdout)["properties"]


def test_check_names_the_commit_of_a_slower_phase(dyno, tmp_path):
    local = Store(tmp_path / "local")
    for row in noisy(3, 16, 10, 0.05, slow_from=9, slower=1.2):
        local.append(row)
    found = dyno("results", "check", "--repo", str(tmp_path))
    assert found.exit_code == 1, found.output
    assert "worse: training time" in found.stdout
    assert f"at {commit(9)[:10]}" in found.stdout
    assert "histogram" in found.stdout
    values = json.loads(dyno("results", "check", "--json", "--store", str(tmp_path / "local")).stdout)
    assert values["regressions"] >= 1
    assert values["steps"][0]["at"]["commit"] == commit(9)


def test_check_of_a_flat_history_of_two_hosts(dyno, tmp_path):
    other = {"digest": "another host"}
    for row in [*noisy(0, 8, 3, 0.05), *noisy(1, 8, 3, 0.05, passport_before=other, passport_after=other)]:
        Store(tmp_path / "local").append(row)
    found = dyno("results", "check")
    assert found.exit_code == 0, found.output
    assert "2 hosts (5a1e7c0ffee0b00c, another host)" in found.stdout


def test_check_refuses_nonsense(dyno, filled):
    assert dyno("results", "check", "--smallest", "much").exit_code == USAGE
    assert dyno("results", "check", "--ladder", "none").exit_code == NOTHING


@pytest.fixture
def published(tmp_path):
    records = Store(tmp_path / "results" / "records")
    for row in two_releases():
        records.append(row)
    return records


def test_a_release_has_a_page_that_is_checked(dyno, published, tmp_path):
    assert dyno("standings", "--check").exit_code == NOTHING
    found = dyno("standings", "--release", "0.2.0", "--json")
    assert found.exit_code == 0, found.output
    page = tmp_path / "results" / "standings" / "0.2.0"
    assert set(json.loads(found.stdout)["files"]) == {str(path) for path in page.iterdir()}
    assert "../../records/flights.jsonl#L" in (page / "standings.html").read_text()
    for words in (("--check",), ("--check", "--release", "0.2.0")):
        assert dyno("standings", *words).exit_code == 0
    published.append(published.read().rows[0].model_copy(update={"release": "0.2.0", "train_s": 0.001}))
    checked = dyno("standings", "--check")
    assert checked.exit_code == SLOWER
    assert f"{page / 'standings.md'} and its rows disagree" in checked.stderr
    assert "dyno standings --release TAG" in checked.stderr


def test_a_page_may_stand_elsewhere(dyno, published, tmp_path):
    out = tmp_path / "deep" / "er" / "page"
    assert dyno("standings", "--release", "0.2.0", "--out", str(out)).exit_code == 0
    assert '"../../../results/records/flights.jsonl#L' in (out / "standings.html").read_text()
    assert dyno("standings", "--release", "0.2.0", "--out", str(out), "--check").exit_code == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--release", "9.9"), NOTHING, "those of other releases: 0.1.0, 0.2.0"),
        (("--release", "9.9", "--check"), NOTHING, "dyno results publish --release 9.9"),
        (("--release", "../0.2.0"), USAGE, "is no release"),
        (("--release", "0.2.0", "--ladder", "flights"), USAGE, "leave those options out"),
        (("--check", "--threads", "2"), USAGE, "leave those options out"),
    ],
)
def test_a_page_that_cannot_be_written_is_refused(dyno, published, tmp_path, words, code, said):
    found = dyno("standings", *words)
    assert (found.exit_code, said in found.stderr) == (code, True)
    assert not (tmp_path / "results" / "standings").exists()


def test_a_page_without_a_place_is_said(dyno, published, tmp_path):
    (tmp_path / "file").write_text("")
    found = dyno("standings", "--release", "0.2.0", "--out", str(tmp_path / "file"))
    assert found.exit_code == DAMAGED
    assert "--out" in found.stderr
