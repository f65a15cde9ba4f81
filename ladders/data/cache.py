"""Tasks on disk: made once, checked by content hash, written atomically. May import the data modules beside it.

One task is one folder: four ``.npy`` files and ``task.json`` with the hash. A folder appears under its name only when
it is complete, so a killed run leaves nothing half-written to be believed.
"""

from __future__ import annotations

import errno
import hashlib
import inspect
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from ladders.data.csv_file import write_csv
from ladders.data.folder import cache_folder
from ladders.data.sources import SOURCES, check_options
from ladders.data.task import ARRAYS, DataError, Shape, Task


@dataclass(frozen=True)
class Stored:
    """A task on disk: its folder and the hash of what is in it."""

    folder: Path
    digest: str

    def load(self, mapped: bool = False) -> Task:
        """Read the arrays into memory; mapped, page faults would be charged to whoever trains first.

        Raises
        ------
        OSError, ValueError
            If the files are gone, damaged, or no longer those the hash was taken of.
        """
        described = json.loads((self.folder / "task.json").read_text())
        if described["digest"] != self.digest:
            raise ValueError(f"{self.folder} now holds {described['digest'][:12]}, not {self.digest[:12]}: run again")
        mode = "r" if mapped else None
        arrays = {name: np.load(self.folder / f"{name}.npy", mmap_mode=mode, allow_pickle=False) for name in ARRAYS}
        return Task(**arrays, feature_names=tuple(described["feature_names"]))

    def csv(self) -> Path:
        """The training part as a CSV file, written on the first call.

        Raises
        ------
        OSError
            If it cannot be written; names the directory and the variable that moves it.
        """
        path = self.folder / "train.csv"
        with _kept_in(self.folder.parent), FileLock(self.folder.with_suffix(".lock")):
            if not path.exists():
                task = self.load(mapped=True)
                write_csv(task.X_train, task.y_train, path)
        return path


def prepare(source: str, options: dict[str, Any], scale: float = 1.0) -> Stored:
    """The task on disk, made now if it is not there or if its bytes do not match its hash.

    Parameters
    ----------
    source : str
        A name in `SOURCES`.
    options : dict
        The source's own options.
    scale : float in (0, 1]
        Share of the rows.

    Raises
    ------
    ValueError
        For an unknown source, option or scale.
    DataError
        If the data cannot be had here.
    OSError
        If the cache cannot be written; names the directory and the variable that moves it.
    """
    check_options(source, options)
    if not 0 < scale <= 1:
        raise ValueError(f"scale {scale} must be in (0, 1]: it shrinks the rows of a rung")
    folder = _folder(source, options, scale)
    with _kept_in(folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            return _verified(folder) or _make(folder, source, options, scale)


def cached(source: str, options: dict[str, Any], scale: float = 1.0) -> Stored | None:
    """The task on disk as it is, nothing checked and nothing made; None if it is not there."""
    folder = _folder(source, options, scale)
    try:
        return Stored(folder, json.loads((folder / "task.json").read_text())["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _kept_in(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        told = f"cannot keep data in {folder} ({error}); set DYNO_CACHE_DIR to a writable directory with room"
        raise OSError(told) from error


def _folder(source: str, options: dict[str, Any], scale: float) -> Path:
    return cache_folder() / f"{source}-{_recipe(source, options, scale)[:16]}"


def _recipe(source: str, options: dict[str, Any], scale: float) -> str:
    """Hash of everything that decides the bytes, the generating code included: an edit makes the data anew."""
    code = inspect.getsource(SOURCES[source].module)
    recipe = [source, options, scale, code]
    if path := options.get("path"):
        try:
            found = os.stat(path)
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror}") from error
        recipe.append([found.st_size, found.st_mtime_ns])  # another file may lie there tomorrow
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()


def _verified(folder: Path) -> Stored | None:
    try:
        stored = Stored(folder, json.loads((folder / "task.json").read_text())["digest"])
        return stored if stored.load(mapped=True).digest() == stored.digest else None
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None


def _make(folder: Path, source: str, options: dict[str, Any], scale: float) -> Stored:
    _check_room(folder.parent, SOURCES[source].shape(scale=scale, **options))
    task = SOURCES[source].make(scale=scale, **options)
    described = {"digest": task.digest(), "source": source, "options": options, "scale": scale}
    described["feature_names"] = list(task.feature_names)
    draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name in ARRAYS:
            np.save(draft / f"{name}.npy", getattr(task, name))
        (draft / "task.json").write_text(json.dumps(described, indent=1))
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Stored(folder, described["digest"])


def _check_room(folder: Path, shape: Shape) -> None:
    """Say that the disk is too small before an hour goes by that ends in the same words."""
    free = shutil.disk_usage(folder).free
    if shape.nbytes > free:
        raise OSError(errno.ENOSPC, f"{shape.nbytes / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free")
