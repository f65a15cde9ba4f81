"""Who may measure on this host now: one command at a time, where the probe agrees. May import probes and data.cache."""

from __future__ import annotations

from contextlib import AbstractContextManager

from filelock import FileLock, Timeout

from ladders.data.cache import cache_folder
from ladders.sandwich import observe
from probes.thresholds import load_thresholds
from probes.verdict import Judgement, Target


class BusyError(RuntimeError):
    """Something else is being measured, or the place where that would show cannot be written."""


def alone() -> AbstractContextManager:
    """Hold the host for one measuring command: two at once would measure each other.

    Raises
    ------
    BusyError
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return FileLock(folder / "run.lock").acquire(timeout=0)
    except Timeout:
        told = "another ladder is running on this host, and two at once would measure each other: wait for it"
        raise BusyError(told) from None
    except OSError as error:
        told = f"cannot write to {folder} ({error.strerror}); set DYNO_CACHE_DIR to a writable directory"
        raise BusyError(told) from error


def judge_host(target: Target, threads: int) -> Judgement:
    """What the quick probe says of this host.

    Raises
    ------
    probes.thresholds.ThresholdError
    """
    return observe(target, threads, load_thresholds()).judgement
