import json

import pytest

from probes.checks.gpu import IDENTITY
from probes.passport import DIGEST_LENGTH, digest_of, take_passport
from probes.store import keep_probe
from probes.thresholds import load_thresholds
from probes.verdict import decide

THRESHOLDS = load_thresholds()


@pytest.fixture(autouse=True)
def no_earlier_probe(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "cache"))


def test_two_passports_of_one_host_have_one_digest():
    first, second = take_passport(), take_passport()
    assert first["digest"] == second["digest"]
    assert first["host"] == second["host"]
    assert len(first["digest"]) == DIGEST_LENGTH
    assert int(first["digest"], 16) >= 0


def test_every_field_of_the_host_is_in_the_digest():
    passport = take_passport()
    seen = {passport["digest"]}
    for name in passport["host"]:
        seen.add(digest_of({**passport["host"], name: "another"}, None))
    seen.add(digest_of(passport["host"], {"uuid": "GPU-1"}))
    assert len(seen) == len(passport["host"]) + 2


def test_the_digest_is_over_what_is_shown():
    passport = json.loads(json.dumps(take_passport(), allow_nan=False))
    assert digest_of(passport["host"], passport["gpu"]) == passport["digest"]


def test_a_probes_card_is_in_the_passport_and_its_digest():
    def with_driver(driver):
        values = {"gpu-name": "NVIDIA H200", "gpu-uuid": "1b2c", "gpu-driver": driver}
        return take_passport(checks=[THRESHOLDS.state(name, values.get(name), "pass", "") for name in IDENTITY])

    first, second = with_driver("580.126.20"), with_driver("570.195.03")
    assert first["gpu"]["driver"] == "580.126.20"
    assert first["gpu"]["vbios"] is None
    assert first["host"] == second["host"]
    assert first["digest"] != second["digest"]


def test_a_probe_that_did_not_ask_for_the_card_is_of_the_same_host():
    assert take_passport(checks=[THRESHOLDS.judge("load", 1)])["digest"] == take_passport()["digest"]


def test_the_last_probes_figures_are_kept_beside_the_digest():
    before = take_passport()
    checks = [THRESHOLDS.judge("host-triad", 31.5)]
    keep_probe(before["digest"], "cpu", checks, decide(checks, THRESHOLDS))
    after = take_passport()
    assert before["probe"] is None
    assert after["probe"]["figures"] == {"host-triad": 31.5}
    assert after["digest"] == before["digest"]


def test_what_is_not_measured_is_null(tmp_path):
    assert take_passport(checks=[THRESHOLDS.unknown("gpu-name", "no driver")])["gpu"] is None
    hidden = take_passport(tmp_path)
    assert hidden["host"]["boot"] is None
    assert hidden["digest"] != take_passport()["digest"]
