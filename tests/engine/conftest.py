"""Devices that a test can look at after the engine has used them."""

import pytest

from engine.device import open_device


@pytest.fixture
def devices(monkeypatch):
    """Every device that backends open during the test, in that order."""
    opened = []

    def open_and_keep(name):
        opened.append(open_device(name))
        return opened[-1]

    monkeypatch.setattr("engine.backends.open_device", open_and_keep)
    return opened
