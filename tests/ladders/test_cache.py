import os
import threading

import numpy as np
import pytest

from ladders.data import cache
from ladders.data.cache import Stored, cached, prepare

OPTIONS = {"rows": 500, "columns": 5, "seed": 3}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_made_once_and_read_back(empty_cache):
    first = prepare("tall", OPTIONS)
    written = (first.folder / "X_train.npy").stat().st_mtime_ns
    second = prepare("tall", OPTIONS)
    assert first == second
    assert (second.folder / "X_train.npy").stat().st_mtime_ns == written
    assert second.load().digest() == second.digest


@pytest.mark.parametrize("name", ["X_train.npy", "y_test.npy", "task.json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_damage_is_found_and_repaired(name, damage):
    stored = prepare("tall", OPTIONS)
    path = stored.folder / name
    content = bytearray(path.read_bytes())
    if damage == "remove":
        path.unlink()
    elif damage == "truncate":
        path.write_bytes(content[: len(content) // 2])
    else:
        content[-5] ^= 0x40
        path.write_bytes(content)
    again = prepare("tall", OPTIONS)
    assert again == stored
    assert again.load().digest() == stored.digest


def test_scales_options_and_sources_have_folders_of_their_own():
    whole = prepare("tall", OPTIONS)
    part = prepare("tall", OPTIONS, scale=0.5)
    other = prepare("tall", {**OPTIONS, "seed": 4})
    assert len({whole.folder, part.folder, other.folder}) == len({whole.digest, part.digest, other.digest}) == 3


def test_an_edited_recipe_makes_the_data_anew(monkeypatch):
    before = prepare("tall", OPTIONS).folder
    monkeypatch.setattr(cache.inspect, "getsource", lambda module: "another recipe")
    assert prepare("tall", OPTIONS).folder != before


def test_a_killed_maker_leaves_nothing_to_believe(monkeypatch, empty_cache):
    def killed(path, array):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cache.np, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            prepare("tall", OPTIONS)
    assert [path for path in empty_cache.iterdir() if path.is_dir()] == []
    assert prepare("tall", OPTIONS).load().X_train.shape == (500, 5)


def test_two_makers_agree():
    found = []
    makers = [threading.Thread(target=lambda: found.append(prepare("tall", OPTIONS))) for _ in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_load_refuses_another_task_than_the_one_planned():
    stored = prepare("tall", OPTIONS)
    with pytest.raises(ValueError, match="run again"):
        Stored(stored.folder, "0" * 64).load()


@pytest.mark.parametrize(
    ("source", "options", "scale", "told"),
    [
        ("talk", {}, 1.0, "unknown data source 'talk'"),
        ("tall", {"row": 5}, 1.0, "no option 'row'"),
        ("tall", {"rows": "many"}, 1.0, "must be int"),
        ("tall", {"rows": True}, 1.0, "must be int"),
        ("tall", {}, 0.0, "scale 0.0"),
        ("tall", {}, 1.5, "scale 1.5"),
        ("tall", {}, float("nan"), "scale nan"),
        ("tall", {"columns": 4}, 1.0, "5 columns"),
    ],
)
def test_refuses(source, options, scale, told):
    with pytest.raises(ValueError, match=told):
        prepare(source, options, scale)


def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("DYNO_CACHE_DIR", str(blocked / "cache"))
    with pytest.raises(OSError, match="DYNO_CACHE_DIR"):
        prepare("tall", OPTIONS)


def test_the_platform_chooses_where_nobody_says(monkeypatch):
    monkeypatch.delenv("DYNO_CACHE_DIR")
    assert cache.cache_folder().name == "gbt-dyno"
    assert os.environ.get("DYNO_CACHE_DIR") is None


def test_loaded_arrays_are_not_mapped():
    assert not isinstance(prepare("tall", OPTIONS).load().X_train, np.memmap)


def test_what_is_cached_is_known_without_making_it(empty_cache):
    assert cached("tall", OPTIONS) is None
    assert not empty_cache.exists()
    made = prepare("tall", OPTIONS)
    assert cached("tall", OPTIONS) == made
    (made.folder / "task.json").write_text("{")
    assert cached("tall", OPTIONS) is None


def test_a_csv_file_is_written_once(empty_cache):
    stored = prepare("tall", OPTIONS)
    path = stored.csv()
    written = path.stat().st_mtime_ns
    assert stored.csv() == path
    assert path.stat().st_mtime_ns == written
    assert len(path.read_text().splitlines()) == OPTIONS["rows"]


def test_a_disk_without_room_is_an_error_before_anything_is_made(empty_cache):
    """2^62 bytes fit on no disk; rows are not generated first."""
    with pytest.raises(OSError, match=r"GB are needed and .* GB are free\); set DYNO_CACHE_DIR"):
        prepare("tall", {"rows": 2**54, "columns": 63, "seed": 1})
    assert [path.suffix for path in empty_cache.iterdir()] == [".lock"]


def test_another_file_at_the_same_path_is_another_task(tmp_path):
    copy = tmp_path / "copy.txt"
    copy.write_text("1")
    first = cache._folder("msd", {"path": str(copy)}, 1.0)
    assert cache._folder("msd", {"path": str(copy)}, 1.0) == first
    copy.write_text("12")
    assert cache._folder("msd", {"path": str(copy)}, 1.0) != first
    copy.unlink()
    with pytest.raises(ValueError, match="cannot read"):
        prepare("msd", {"path": str(copy)})
