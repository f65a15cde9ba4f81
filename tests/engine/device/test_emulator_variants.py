"""The emulator as it is otherwise built, in processes of their own: under AddressSanitizer, under ThreadSanitizer with
one thread a lane, and with the switch of fibers that needs no assembly.
"""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.engine.planted_faults import library_of_compiler

VARIANTS = {
    "address": ("fibers", ["-fsanitize=address,alignment", "-fno-sanitize-recover=alignment"], "libasan.so"),
    "thread": ("threads", ["-fsanitize=thread"], "libtsan.so"),
    "ucontext": ("fibers", ["-DDYNO_UCONTEXT"], None),
}
TESTS = Path(__file__).parents[1]
BUILD = TESTS.parents[1] / "engine/native/emulator/build"

PROGRAM = """
import sys
import numpy as np
from engine.device import Launch
from engine.device.emulated import EmulatedDevice

kernel, grid, block, shared_bytes, n = sys.argv[1], *map(int, sys.argv[2:])
device = EmulatedDevice()
size = grid * block
arrays = [np.arange(size, dtype=np.uint32), np.zeros(6 * size + 1, np.uint32), np.zeros(size, np.uint64)]
buffers = [device.alloc(array.nbytes, "array") for array in arrays]
state = np.array([*(buffer.address for buffer in buffers), n], np.uint64)
buffers.append(device.alloc(state.nbytes, "state"))
for buffer, array in zip(buffers, [*arrays, state]):
    device.upload(buffer, array)
device.launch(Launch("self_test_" + kernel, grid, block, shared_bytes), buffers[-1])
print("sum", device.download(buffers[1], np.uint32, arrays[1].shape).sum())
"""


@pytest.fixture(scope="session")
def run_on(once):
    """Runs Python with a variant as the emulator."""

    def build(variant, path):
        lanes, options, _ = VARIANTS[variant]
        subprocess.run([BUILD, path, *options, "-O1"], check=True, env={**os.environ, "LANES": lanes})

    def run(variant, *arguments):
        environment = {
            **os.environ,
            "DYNO_EMULATOR": str(once(f"emulator_{variant}.so", partial(build, variant))),
            "LD_PRELOAD": library_of_compiler(library) if (library := VARIANTS[variant][2]) else "",
            "ASAN_OPTIONS": "detect_leaks=0",
            "TSAN_OPTIONS": "history_size=0 exitcode=66",
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize(
    "arguments",
    [
        ("reverse", 3, 64, 256, 0),
        ("votes", 1, 64, 0, 20),
        ("atomics", 3, 64, 64, 0),
        ("last", 5, 1, 0, 0),
        ("look_back", 8, 2, 4, 8),
    ],
)
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_right_is_let_pass(run_on, variant, arguments):
    code, text = run_on(variant, "-c", PROGRAM, *arguments)
    assert code == 0, text


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("writes_past_end", 1, 32, 0, 200), "state->output[state->n] = 1"),
        (("writes_past_shared", 1, 32, 128, 0), "shared<u32>(0)[block_size()] = 1"),
    ],
)
def test_address_sanitizer_stops_at_the_line(run_on, arguments, line):
    code, text = run_on("address", "-c", PROGRAM, *arguments)
    assert code != 0
    assert "use-after-poison" in text
    source = (BUILD.parent / "self_test.cpp").read_text().splitlines()
    (number,) = [number for number, text_of_line in enumerate(source, 1) if line in text_of_line]
    assert f"self_test.cpp:{number}" in text


def test_a_load_that_a_gpu_would_refuse_is_told(run_on):
    code, text = run_on("address", "-c", PROGRAM, "reads_across_words", 1, 4, 0, 0)
    assert code != 0
    assert "load of misaligned address" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ("reverse_without_barrier", 1, 64, 256, 0),
        ("plain_add", 1, 64, 4, 0),
        ("flag_before_value", 8, 2, 4, 8),
        ("shuffle_is_no_barrier", 1, 32, 128, 0),
    ],
)
def test_thread_sanitizer_sees_what_is_not_ordered(run_on, arguments):
    code, text = run_on("thread", "-c", PROGRAM, *arguments)
    assert code == 66, text
    assert "data race" in text


def test_the_kernels_suites_pass_under_address_sanitizer(run_on):
    """But for the two hundred schedules, which take most of the time and read the same addresses."""
    suites = [
        TESTS / "backends/test_resident.py",
        *(TESTS / f"kernels/test_{of}.py" for of in ("rows", "binning", "predict")),
    ]
    options = ["-q", "-k", "not two_hundred", "-p", "no:xdist", "-p", "no:cacheprovider"]
    code, text = run_on("address", "-m", "pytest", *options, *suites)
    assert code == 0, text[-4000:]
