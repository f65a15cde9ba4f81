import itertools
import json
import math
import subprocess
from datetime import timedelta

import pytest
from asv import util
from asv.benchmarks import Benchmarks
from asv.config import Config
from asv.results import Results, iter_results
from typer.testing import CliRunner

from results.asv_format import FormatError, commit_date, export_rows, import_rows, machine_of
from results.cli import results_app
from results.store import CHECKOUT, Store

OTHER_COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
OTHER_HOST = {"digest": "0ther0ther0ther0", "host": {"processor": "AMD EPYC", "affinity": [0, 1]}}


def unknown_date(commit):
    return None


@pytest.fixture
def history(row):
    """Two contenders on two commits, three repeats each, one of them on a rung of its own."""
    return [
        row(
            contender=contender,
            commit=commit,
            rung=rung,
            repeat=repeat,
            ts=row().ts + timedelta(minutes=repeat),
            train_s=1.5 + 0.1 * repeat,
            fit_s=2.0 + 0.1 * repeat,
            model_digest="ab" * 32,
            rss_bytes=1000 + repeat,
        )
        for commit in (row().commit, OTHER_COMMIT)
        for contender, rung in (("engine-depthwise", "delay"), ("engine-leafwise", "late"))
        for repeat in range(3)
    ]


def lines(rows):
    return sorted(row.to_line() for row in rows)


def loaded(directory):
    return {results.commit_hash: results for results in iter_results(str(directory))}


def figure(results, name, **wanted):
    """Of the one place in asv's table that has all of these."""
    params = results.get_result_params(name)
    places = list(itertools.product(*params))
    (index,) = [
        number
        for number, place in enumerate(places)
        if all(any(text in one for one in place) for text in wanted.values())
    ]
    return (
        results.get_result_value(name, params)[index],
        results.get_result_samples(name, params)[index],
        results.get_result_stats(name, params)[index],
    )


def test_rows_go_to_asv_and_come_back(history, tmp_path):
    exported = export_rows(history, tmp_path, unknown_date)
    assert len(exported.files) == 2
    assert lines(import_rows(tmp_path)) == lines(history)


def test_asvs_loader_finds_every_repeat_as_a_sample(history, tmp_path):
    export_rows(history, tmp_path, unknown_date)
    results = loaded(tmp_path)[OTHER_COMMIT]
    median, samples, stats = figure(results, "ladders.flights.time_train", who="engine-depthwise", where="delay")
    assert median == pytest.approx(1.6)
    assert samples == pytest.approx([1.5, 1.6, 1.7])
    assert stats["number"] == 1
    assert stats["repeat"] == 3
    assert figure(results, "ladders.flights.peakmem_host", who="leafwise", where="late")[0] == 1001
    assert figure(results, "ladders.flights.track_model_digest", who="leafwise", where="late")[0] == 0xABABABABABAB


def test_what_was_not_measured_is_not_available_and_what_failed_has_failed(row, tmp_path):
    failed = {"fit_s": None, "train_s": None, "ingest_s": None, "metric": None, "value": None, "message": "why"}
    rows = [
        row(),
        row(contender="a", status="oom", **failed),
        row(contender="b", status="unsupported", **failed),
        row(contender="c", valid=False, invalid_reason="throttled"),
    ]
    export_rows(rows, tmp_path, unknown_date)
    (results,) = loaded(tmp_path).values()
    name = "ladders.flights.time_train"
    assert figure(results, name, who="engine-depthwise")[0] == 1.5
    assert figure(results, name, who="'a'")[0] is None
    assert math.isnan(figure(results, name, who="'b'")[0])
    assert math.isnan(figure(results, name, who="'c'")[0])
    assert len(list(import_rows(tmp_path))) == 4


def test_hosts_are_machines_of_their_own(row, tmp_path):
    """No command of asv sets two machines' results in one series."""
    rows = [row(), row(passport_before=OTHER_HOST, passport_after=OTHER_HOST)]
    files = export_rows(rows, tmp_path, unknown_date).files
    assert len({path.parent for path in files}) == 2
    assert {json.loads((path.parent / "machine.json").read_text())["passport"] for path in files} == {
        row().passport_before["digest"],
        OTHER_HOST["digest"],
    }


def test_machines_built_alike_have_one_class():
    same = [machine_of({"digest": digest, "host": {"processor": "A", "boot": digest}}) for digest in "12"]
    assert same[0]["passport_class"] == same[1]["passport_class"]
    assert same[0]["machine"] != same[1]["machine"]
    other = machine_of({"digest": "1", "host": {"processor": "B"}})
    assert other["passport_class"] != same[0]["passport_class"]


@pytest.mark.parametrize("change", [{"data_hash": "0ther"}, {"knobs_asked": {"max_bin": 63}}, {"scale": 0.5}])
def test_other_work_never_stands_in_the_same_place(row, tmp_path, change):
    export_rows([row(), row(train_s=1.0, **change)], tmp_path, unknown_date)
    (results,) = loaded(tmp_path).values()
    assert len(results.get_result_params("ladders.flights.time_train")[0]) == 2


def test_rows_that_asv_cannot_file_are_counted(row, tmp_path):
    rows = [row(commit=None), row(commit="0123456"), row(dirty=True)]
    exported = export_rows(rows, tmp_path, unknown_date)
    assert exported.left_out == {"no full commit": 2, "measured on a changed tree": 1}
    assert exported.files == ()
    assert list(tmp_path.iterdir()) == []


def test_a_second_export_adds_to_the_first(history, tmp_path):
    export_rows(history[:4], tmp_path, unknown_date)
    export_rows(history[2:], tmp_path, unknown_date)
    assert len(list(import_rows(tmp_path))) == len(history)
    listed = Benchmarks.load(Config.from_json({"repo": ".", "results_dir": str(tmp_path)}))
    assert "ladders.flights.time_train" in listed
    assert len(listed["ladders.flights.time_train"]["params"][0]) == 2


def test_asvs_own_benchmarks_and_results_are_left_alone(row, tmp_path):
    theirs = {"name": "fit.time_fit", "params": [], "version": "1"}
    util.write_json(str(tmp_path / "benchmarks.json"), {"fit.time_fit": theirs}, Benchmarks.api_version)
    own = Results({"machine": "vm"}, {}, row().commit, 0, "3.11", "virtualenv-py3.11", {})
    own.save(str(tmp_path))
    before = next((tmp_path / "vm").glob("*.json")).read_bytes()
    export_rows([row()], tmp_path, unknown_date)
    listed = util.load_json(str(tmp_path / "benchmarks.json"), Benchmarks.api_version)
    assert listed["fit.time_fit"] == theirs
    assert next((tmp_path / "vm").glob("*.json")).read_bytes() == before
    assert len(list(import_rows(tmp_path))) == 1


def edited(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["results"]["ladders.flights.time_train"].__setitem__(0, [1.0, 1.0, 1.0, 1.0]),
        lambda content: content["results"].pop("ladders.flights.time_train"),
        lambda content: content["dyno_rows"][0].__setitem__("train_s", 0.5),
        lambda content: content["dyno_rows"].pop(),
        lambda content: content.__setitem__("commit_hash", "f" * 40),
        lambda content: content["dyno_rows"][0].__setitem__("train_s", -1),
        lambda content: content.__setitem__("dyno_rows", [1]),
        lambda content: content.__setitem__("dyno_rows", 1),
        lambda content: content.pop("results"),
        lambda content: content.__setitem__("version", 99),
    ],
)
def test_an_edited_file_is_refused_by_name(history, tmp_path, change):
    path = export_rows(history, tmp_path, unknown_date).files[0]
    edited(path, change)
    with pytest.raises(FormatError, match=path.name):
        list(import_rows(tmp_path))


@pytest.mark.parametrize("keep", [0, 1, 100, 2000])
def test_a_truncated_file_is_refused_by_name(history, tmp_path, keep):
    path = export_rows(history, tmp_path, unknown_date).files[0]
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FormatError, match=path.name):
        list(import_rows(path))
    with pytest.raises(FormatError, match=path.name):
        export_rows(history, tmp_path, unknown_date)


def test_a_commits_date_is_gits():
    command = ["git", "-C", str(CHECKOUT), "show", "-s", "--format=%H %ct"]
    head, written = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    date = commit_date(CHECKOUT)
    assert date(head) == int(written) * 1000
    assert date("f" * 40) is None
    assert date("--help") is None


def run(*arguments):
    return CliRunner().invoke(results_app, list(map(str, arguments)))


def test_the_commands_make_the_round_trip(history, tmp_path):
    source, target = Store(tmp_path / "source"), Store(tmp_path / "target")
    for row in history:
        source.append(row)
    done = run("export-asv", "--store", source.directory, "--to", tmp_path / "asv")
    assert done.exit_code == 0, done.output
    done = run("import-asv", tmp_path / "asv", "--store", target.directory)
    assert done.exit_code == 0, done.output
    assert "12 rows imported" in done.output
    assert lines(target.read().rows) == lines(history)
    again = run("import-asv", tmp_path / "asv", "--store", target.directory)
    assert "0 rows imported" in again.output
    assert "12 there already" in again.output
    assert len(target.read().rows) == 12


def test_nothing_to_export_or_to_import_is_code_3(row, tmp_path):
    done = run("export-asv", "--store", tmp_path / "empty", "--to", tmp_path / "asv")
    assert done.exit_code == 3
    (tmp_path / "asv").mkdir()
    assert run("import-asv", tmp_path / "asv", "--store", tmp_path / "rows").exit_code == 3


def test_bad_paths_are_usage_errors(history, tmp_path):
    assert run("import-asv", tmp_path / "missing").exit_code == 2
    source = Store(tmp_path / "source")
    source.append(history[0])
    (tmp_path / "file").write_text("")
    done = run("export-asv", "--store", source.directory, "--to", tmp_path / "file")
    assert done.exit_code == 2
    assert "--to" in done.output
    (tmp_path / "note.json").write_text("{}")
    assert run("import-asv", tmp_path / "note.json").exit_code == 2
