"""The emulator with the probes' kernels, for tests that launch them."""

import os

import pytest

from tests.probes.emulated_cuda import build_emulator


@pytest.fixture(scope="session")
def emulated_kernels(tmp_path_factory):
    """Path of the library; built once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder = folder / "probes"
    folder.mkdir(exist_ok=True)
    return build_emulator(folder)


@pytest.fixture
def on_emulator(emulated_kernels, monkeypatch):
    """Emulated devices of this test run the probes' kernels."""
    monkeypatch.setenv("DYNO_EMULATOR", str(emulated_kernels))
