import pytest

import engine
from ladders.contenders import CONTENDERS
from ladders.data.task import Shape
from ladders.footprint import CPU, DEVICE, GPU_HOST, device_bytes, host_bytes

TALL, EXTREME = Shape(16_777_216, 500_000, 128), Shape(16_777_216, 500_000, 1024)

MEASURED = {
    ("xgboost", TALL): (29.6, 18.9),
    ("lightgbm", TALL): (15.2, 5.4),
    ("catboost", TALL): (25.5, None),
    ("bonsai", TALL): (9.0, 3.4),
    ("lightgbm", EXTREME): (None, 34.3),
    ("bonsai", EXTREME): (None, 18.3),
}
"""GB of host and device, from research/harness.md §1."""


def test_every_library_has_its_formulas():
    libraries = {contender.module.rpartition(".")[2] for contender in CONTENDERS.values()}
    assert CPU.keys() == GPU_HOST.keys() == libraries
    assert DEVICE.keys() == libraries - {"engine", "catboost"}


@pytest.mark.parametrize(("library", "shape"), MEASURED)
def test_the_formulas_meet_what_was_published(library, shape, knobs):
    host, device = MEASURED[library, shape]
    if host is not None:
        assert host_bytes(library, shape, "gpu") / 1e9 == pytest.approx(host, rel=0.06)
    if device is not None:
        assert device_bytes(library, shape, knobs(device="gpu")) / 1e9 == pytest.approx(device, rel=0.06)


def test_the_engine_reckons_exactly(knobs):
    asked = knobs(device="gpu", growth="levelwise", max_depth=6)
    exact = engine.estimate_memory({"grower": "levelwise", "max_depth": 6}, (TALL.train, TALL.columns)).peak
    assert device_bytes("engine", TALL, asked) == exact


def test_catboost_takes_a_share_of_the_card(knobs):
    assert device_bytes("catboost", TALL, knobs(device="gpu")) is None
    assert device_bytes("catboost", TALL, knobs(device="gpu"), 100) == 95


def test_a_cpu_has_no_device(knobs):
    assert device_bytes("xgboost", TALL, knobs()) is None
    assert host_bytes("xgboost", TALL, "cpu") > TALL.nbytes
