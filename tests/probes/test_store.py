import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from probes.store import find_probe, keep_probe, probe_folder
from probes.thresholds import load_thresholds
from probes.verdict import decide

THRESHOLDS = load_thresholds()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path))
    return tmp_path / "probes"


def keep(digest, *checks):
    return keep_probe(digest, "cpu", checks, decide(checks, THRESHOLDS))


def test_what_was_kept_is_found_under_its_digest_only(folder):
    keep("abc", THRESHOLDS.judge("load", 60), THRESHOLDS.state("cpu-quota", "unlimited", "pass", ""))
    found = find_probe("abc")
    assert found["verdict"] == "accept with warnings"
    assert found["figures"] == {"load": 60.0}
    assert found["target"] == "cpu"
    assert find_probe("abd") is None
    assert [path.name for path in sorted(folder.iterdir()) if not path.name.endswith(".lock")] == ["abc.json"]


def test_a_quick_probe_leaves_the_figures_of_the_full_one():
    keep("abc", THRESHOLDS.judge("load", 60), THRESHOLDS.judge("host-triad", 30))
    keep("abc", THRESHOLDS.judge("load", 5), THRESHOLDS.unknown("host-triad", "not now"))
    assert find_probe("abc")["figures"] == {"load": 5.0, "host-triad": 30.0}
    assert find_probe("abc")["verdict"] == "accept"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"figures": {}}', "\x00"])
def test_a_damaged_file_is_no_probe_and_is_replaced(folder, text):
    path = keep("abc", THRESHOLDS.judge("load", 60))
    path.write_text(text)
    assert find_probe("abc") is None
    keep("abc", THRESHOLDS.judge("load", 7))
    assert find_probe("abc")["figures"] == {"load": 7.0}


def test_many_at_once_leave_a_whole_file():
    def one(value):
        keep("abc", THRESHOLDS.judge("load", value), THRESHOLDS.judge("cpu-steal", value))
        return find_probe("abc")["figures"]

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(one, range(40)))
    assert all(figures["load"] == figures["cpu-steal"] for figures in seen)


def test_a_folder_that_cannot_be_made_is_an_os_error(folder):
    folder.write_text("a file where the folder should be")
    with pytest.raises(FileExistsError):
        keep("abc", THRESHOLDS.judge("load", 60))
    assert find_probe("abc") is None


def test_the_folder_follows_the_environment(monkeypatch, folder):
    assert probe_folder() == folder
    monkeypatch.setenv("DYNO_CACHE_DIR", "")
    assert probe_folder().parts[-2:] == ("gbt-dyno", "probes")


def test_the_file_is_plain_json():
    path = keep("abc", THRESHOLDS.judge("load", 60))
    assert json.loads(path.read_text(), parse_constant=pytest.fail)["figures"]["load"] == 60
