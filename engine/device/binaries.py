"""Compiled kernels on disk, so that a machine compiles them once. Imports nothing of the engine."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from platformdirs import user_cache_path


def binary_directory() -> Path:
    """``DYNO_KERNEL_DIR``, else the platform's cache directory."""
    given = os.environ.get("DYNO_KERNEL_DIR")
    return Path(given) if given else user_cache_path("gbt-dyno") / "kernels"


def cached_binary(name: str, compile_it: Callable[[], bytes]) -> Path:
    """The file of that name, made on the first call; in a temporary directory where the cache cannot be written.

    Parameters
    ----------
    name : str
        Says all that the binary depends on: nothing else is compared.
    compile_it : callable
        Gives the file's bytes.
    """
    path = binary_directory() / name
    if path.exists():
        return path
    binary = compile_it()
    try:
        return _write(path, binary)
    except OSError:
        return _write(Path(tempfile.mkdtemp(prefix="gbt-dyno-")) / name, binary)


def _write(path: Path, binary: bytes) -> Path:
    """Whole or not at all, whoever else is writing it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(binary)
    os.replace(file.name, path)
    return path
