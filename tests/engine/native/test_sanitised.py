"""The native module's own tests under ThreadSanitizer, and under AddressSanitizer with UBSan; and that these two see
what is wrong, shown by faults planted into copies of its sources (faults.toml).
"""

from functools import partial

import pytest

from tests.engine.native.sanitised import FOUND, SANITIZERS, build, native_faults, run_tests

TESTS = [
    "tests/engine/backends/test_native.py",
    "tests/engine/native/test_ingest.py",
    "tests/engine/test_predictor.py",
    "tests/engine/test_frequencies.py",
    "tests/engine/test_identity.py",
]
ALWAYS_LEFT_OUT = (
    "runs_out",  # of memory, on purpose: that ends a sanitizer
    "kernels",  # have sanitizers of their own
    "value_bins2",  # forty thousand bins, forty_thousand rows, and rules between fits: slow, and nothing new to see
    "forty_thousand",
    "room_for_every_leaf",
    "weight_zero",
)
LEFT_OUT = {
    "address": ALWAYS_LEFT_OUT,
    "thread": (
        *ALWAYS_LEFT_OUT,
        "forked_during_a_fit",  # its child begins threads, which ThreadSanitizer has no way to follow
        "test_frequencies",  # what says nothing of threads: these tests take it several times as long
        "shape_of_tree",
        "thresholds",
        "numbers_of",
        "257",  # and what is long: shorter ones beside it go the same way
        "wide",
        "ctrl_c",
        "every_device",
    ),
}
SAID = {"thread": ("data race",), "address": ("AddressSanitizer", "runtime error")}


@pytest.fixture(scope="session")
def run_on(once):
    """Runs tests on the module as a sanitizer wants it."""

    def run(name, *selected, fault=0):
        folder = once(f"native_{name}", partial(build, SANITIZERS[name]))
        return run_tests(SANITIZERS[name], folder / "_native.so", *selected, fault=fault)

    return run


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_nothing_is_found_in_the_native_module(run_on, sanitizer):
    code, text = run_on(sanitizer, *TESTS, "-k", " and ".join(f"not {name}" for name in LEFT_OUT[sanitizer]))
    assert code == 0, text


@pytest.mark.parametrize("number", range(1, 1 + len(native_faults())), ids=[fault.name for fault in native_faults()])
def test_a_planted_fault_is_found(run_on, number):
    fault = native_faults()[number - 1]
    code, text = run_on(fault.found_by, fault.problem, "-x", fault=number)
    assert code == FOUND, text
    assert any(words in text for words in SAID[fault.found_by]), text


def test_each_sanitizer_has_faults_to_find():
    assert {fault.found_by for fault in native_faults()} == set(SANITIZERS)
