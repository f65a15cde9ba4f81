import json

from probes.passport import DIGEST_LENGTH, digest_of, take_passport


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


def test_what_is_not_measured_is_null(tmp_path):
    assert take_passport()["gpu"] is None
    hidden = take_passport(tmp_path)
    assert hidden["host"]["boot"] is None
    assert hidden["digest"] != take_passport()["digest"]
