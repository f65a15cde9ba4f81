"""Remembers what the tuner found, per shape, device and build of the kernels. May import the tuner only.

A file holds the answers for one device and one build: a build never trusts what was measured with another's kernels.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock
from platformdirs import user_cache_path

from engine.device.tuner import Tuning


def tune_directory() -> Path | None:
    """``DYNO_TUNE_DIR``, else the platform's cache directory; None, to keep answers in memory, where it is ``""``."""
    given = os.environ.get("DYNO_TUNE_DIR")
    if given == "":
        return None
    return Path(given) if given is not None else user_cache_path("gbt-dyno") / "tuning"


class TuningStore:
    """Answers of one device and build.

    Parameters
    ----------
    device : str
        Model of the device with whatever of it the answer depends on.
    build : str
        Digest of the kernel sources.
    directory : Path, optional
        None keeps answers in memory. One that cannot be written does, too, once it was tried.
    """

    _remembered: dict[tuple[str, str, str], Tuning] = {}  # noqa: RUF012 (shared by the process on purpose)
    _lock = threading.Lock()

    def __init__(self, device: str, build: str, directory: Path | None) -> None:
        self._device, self._build = device, build
        name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{device}-{build}") + ".json"
        self._path = None if directory is None else directory / name

    def get(self, shape: str) -> Tuning | None:
        """What was found for a shape; None if nothing was, or its file is damaged."""
        with self._lock:
            known = self._remembered.get(self._key(shape))
        return known or self._read().get(shape)

    def put(self, shape: str, tuning: Tuning) -> None:
        """Remember an answer, for other processes too where the directory can be written."""
        with self._lock:
            self._remembered[self._key(shape)] = tuning
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._write(shape, tuning)

    def _key(self, shape: str) -> tuple[str, str, str]:
        return str(self._path), f"{self._device} {self._build}", shape

    def _read(self) -> dict[str, Tuning]:
        if self._path is None:
            return {}
        try:
            return {shape: Tuning(**values) for shape, values in json.loads(self._path.read_bytes()).items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write(self, shape: str, tuning: Tuning) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{self._path}.lock"):
            known = {**self._read(), shape: tuning}
            temporary = self._path.with_suffix(".new")
            temporary.write_text(json.dumps({name: asdict(value) for name, value in known.items()}, indent=1))
            os.replace(temporary, self._path)
