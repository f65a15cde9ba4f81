"""What one worker of a test run makes for all of them."""

import os
import signal

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would every process that a test starts to interrupt it.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, however slow the machine: a red run says something of the commit, not of the draw.
# `pytest --hypothesis-profile=explore` looks further, anew each time.
UNTIMED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, **UNTIMED)
settings.register_profile("explore", max_examples=1000, **UNTIMED)
settings.load_profile("same")


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """`once(name, make)`: the path that `make(path)` filled, a file or a folder; the first worker to ask makes it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def made(name, make):
        path = folder / name
        with FileLock(f"{path}.lock"):
            if not path.exists():
                unfinished = folder / f"unfinished_{name}"
                make(unfinished)
                unfinished.rename(path)
        return path

    return made


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium for the session: see `tests.browser.shown`."""
    from tests.browser import opened_browser  # selenium takes a third of a second that few workers need

    with opened_browser() as opened:
        yield opened
