import json

import pytest

from probes.replay.fixture import FixtureError, Moments, Raises, load_fixture
from tests.probes.played import HEALTHY, written


def test_what_is_alike_is_taken_over_and_what_differs_replaces_it(tmp_path):
    healthy = load_fixture(HEALTHY)
    other = load_fixture(written(tmp_path, nvml={"busy": 0.5, "vbios": None}, files={"proc/stat": None}))
    assert other.nvml["busy"] == 0.5
    assert "vbios" not in other.nvml
    assert other.nvml["name"] == healthy.nvml["name"]
    assert set(healthy.files) - set(other.files) == {"proc/stat"}
    assert other.gpu == healthy.gpu
    assert other.written_from == "a test"


def test_a_reading_of_moments_is_replaced_as_a_whole(tmp_path):
    fixture = load_fixture(written(tmp_path, nvml={"link_generation": {"raises": "Unknown Error"}, "busy": 0.1}))
    assert fixture.nvml["link_generation"] == Raises(raises="Unknown Error")
    assert isinstance(load_fixture(HEALTHY).nvml["link_generation"], Moments)


def test_a_part_that_refuses_replaces_all_its_readings(tmp_path):
    assert load_fixture(written(tmp_path, nvml={"raises": "no driver"})).nvml == Raises(raises="no driver")


@pytest.mark.parametrize(
    ("differences", "said"),
    [
        ({"recorded": "2026-11-30"}, "give one of 'recorded' and 'written_from'"),
        ({"nvml": {"temperatur_c": 3}}, "nearest: 'temperature_c'"),
        ({"files": {"/etc/passwd": ""}}, "not below the root"),
        ({"files": {"proc/../../x": ""}}, "not below the root"),
        ({"files": {"out": {"link": "/tmp"}, "out/file": ""}}, "a file or a link"),
        ({"files": {"a": "x", "a/b/c": "y"}}, "a file or a link"),
        ({"gpu": {"launch_s": -1}}, "gpu.launch_s"),
        ({"gpu": {"launch_s": "2"}}, "gpu.launch_s"),
        ({"gpu": {"sync_s": 1}}, "gpu.sync_s"),
        ({"gpu": {"round_trip_s": {"sometimes": {"p50": 1, "p99": 1}}}}, "round_trip_s"),
        ({"threads": 0}, "threads"),
        ({"target": "tpu"}, "target"),
        ({"expect": {"exit_code": 3}}, "expect.exit_code"),
        ({"surprise": 1}, "surprise"),
        ({"host_triad_bytes_s": 0}, "host_triad_bytes_s"),
    ],
)
def test_a_mistake_is_told_by_its_key(tmp_path, differences, said):
    path = written(tmp_path, **differences)
    with pytest.raises(FixtureError) as caught:
        load_fixture(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "not JSON"), ('{"title": "x"', "not JSON"), ("[]", "one JSON object"), ('{"like": 3}', "like")],
)
def test_a_file_that_is_no_fixture(tmp_path, text, said):
    path = tmp_path / "host.json"
    path.write_text(text)
    with pytest.raises(FixtureError, match=said):
        load_fixture(path)


def test_a_number_that_is_none_is_refused(tmp_path):
    path = tmp_path / "host.json"
    path.write_text(json.dumps({"like": str(HEALTHY), "written_from": "x", "gpu": {"event_s": float("nan")}}))
    with pytest.raises(FixtureError, match="event_s"):
        load_fixture(path)


def test_binary_and_missing_files(tmp_path):
    path = tmp_path / "host.json"
    with pytest.raises(FixtureError, match="cannot read"):
        load_fixture(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FixtureError, match="not JSON"):
        load_fixture(path)


def test_a_circle_of_likenesses_is_told(tmp_path):
    (tmp_path / "a.json").write_text('{"like": "b.json"}')
    (tmp_path / "b.json").write_text('{"like": "a.json"}')
    with pytest.raises(FixtureError, match="like itself"):
        load_fixture(tmp_path / "a.json")
