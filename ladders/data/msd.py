"""YearPredictionMSD: 515,345 songs of 90 timbre features and their year. May import NumPy, pyarrow, pooch and Task.

By T. Bertin-Mahieux (2011), UCI Machine Learning Repository, https://doi.org/10.24432/C50K61, CC BY 4.0.
The official split: the first 463,715 rows are for training, the last 51,630 for testing, and no artist is in both.
UCI publishes no checksum, so the first download that proves to be the data is trusted, and its hashes are kept beside
it: what comes later must be the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pooch
import pyarrow as pa
import requests
from pyarrow import csv

from ladders.data.csv_file import to_arrays
from ladders.data.folder import cache_folder
from ladders.data.task import DataError, Shape, Task

URL = "https://archive.ics.uci.edu/static/public/203/yearpredictionmsd.zip"
MEMBER = "YearPredictionMSD.txt"
ARCHIVE = "yearpredictionmsd.zip"
PINS = "yearpredictionmsd.sha256.json"

CONNECT_S, READ_S = 10, 60
"""Patience with the server: to answer, and between two packets."""

ELSEWHERE = "give a copy on disk with --data PATH, or run msd-shaped: synthetic rows of the same shape"


@dataclass(frozen=True)
class Form:
    """What the file must be: rows of either part, columns with the label first, range of the labels."""

    train: int
    test: int
    columns: int
    first_year: int
    last_year: int


OFFICIAL = Form(train=463_715, test=51_630, columns=91, first_year=1922, last_year=2011)


def make_msd(*, scale: float = 1.0, one_in: int = 1, path: str = "") -> Task:
    """The task from a copy on disk, or else from UCI's archive in the cache, fetched if it is not there.

    Parameters
    ----------
    scale : float in (0, 1]
        Share of the rows to keep in both parts, evenly spaced.
    one_in : int >= 1
        Of the training rows, every how manieth is kept besides: the rungs' own thinning.
    path : str
        A zip with a member `MEMBER`, or that file itself; empty for the archive in the cache.

    Raises
    ------
    DataError
        If it cannot be had or is not the data; says why and what else to do.
    OSError
        If the cache cannot be written.
    ValueError
        For `one_in` out of range.
    """
    _rows(OFFICIAL, scale, one_in)
    content = read_copy(Path(path)) if path else fetch(cache_folder() / "msd")
    X, y = parse(content, OFFICIAL)
    return split(X, y, OFFICIAL, scale, one_in)


def msd_shape(*, scale: float = 1.0, one_in: int = 1, path: str = "") -> Shape:
    """Rows and columns that `make_msd` will give."""
    return Shape(*_rows(OFFICIAL, scale, one_in), OFFICIAL.columns - 1)


def fetch(folder: Path, url: str = URL, form: Form = OFFICIAL) -> bytes:
    """Bytes of the data file, from the archive in the folder; downloaded, checked and pinned if it is not there.

    Raises
    ------
    DataError
        Without a connection, or if the archive is damaged, not the data, or not the one pinned.
    OSError
        If the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pins = _read_pins(folder / PINS)
    archive = folder / ARCHIVE
    if not archive.exists():
        _download(url, archive)
    try:
        content = read_copy(archive)
        found = {"archive": _sha256(archive.read_bytes()), "member": _sha256(content)}
        _compare(pins, found, folder / PINS)
        if not pins:
            parse(content, form)
            _write(folder / PINS, json.dumps(found, indent=1))
    except DataError:
        archive.unlink()  # the next run shall fetch it again, not stumble over it
        raise
    return content


def read_copy(path: Path) -> bytes:
    """Bytes of the data file, from a zip or the file itself.

    Raises
    ------
    DataError
        If it cannot be read, is a damaged zip, or one without the member.
    """
    try:
        if not zipfile.is_zipfile(path) and path.suffix != ".zip":
            return path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            return archive.read(MEMBER)  # checks the member's CRC
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except KeyError as error:
        raise DataError(f"{path} has no member {MEMBER}: it is not UCI's archive of YearPredictionMSD") from error
    except (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path} is not a whole zip archive ({error}): it may be cut short; {ELSEWHERE}") from error


def parse(content: bytes, form: Form) -> tuple[np.ndarray, np.ndarray]:
    """(X, y) of a headerless CSV, float32, with everything checked that the form says.

    Raises
    ------
    DataError
        Names what differs: rows, columns, a value that is no finite number, a label out of range, with its row.
    """
    n_columns = content[: max(content.find(b"\n"), 0) or len(content)].count(b",") + 1
    if n_columns != form.columns:
        raise DataError(f"the data have {n_columns} columns, YearPredictionMSD has {form.columns}; {ELSEWHERE}")
    names = [str(index) for index in range(n_columns)]
    try:
        table = csv.read_csv(
            pa.BufferReader(content),
            read_options=csv.ReadOptions(column_names=names),
            convert_options=csv.ConvertOptions(column_types={name: pa.float32() for name in names}),
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"the data are no table of numbers: {error}") from error
    X, y = to_arrays(table)
    if len(y) != form.train + form.test:
        wanted = f"YearPredictionMSD has {form.train + form.test:,}: the file may be cut short"
        raise DataError(f"the data have {len(y):,} rows, {wanted}; {ELSEWHERE}")
    _check_values(X, y, form)
    return X, y


def split(X: np.ndarray, y: np.ndarray, form: Form, scale: float = 1.0, one_in: int = 1) -> Task:
    """The official parts, thinned evenly: the file is ordered by artist, so its first rows are a few artists' only."""
    n_train, n_test = _rows(form, scale, one_in)
    train = np.arange(n_train) * form.train // n_train
    test = form.train + np.arange(n_test) * form.test // n_test
    features = tuple(f"timbre_mean_{i}" for i in range(12)) + tuple(f"timbre_covariance_{i}" for i in range(78))
    return Task(X[train], y[train], X[test], y[test], features[: form.columns - 1])


def _rows(form: Form, scale: float, one_in: int) -> tuple[int, int]:
    if one_in < 1:
        raise ValueError(f"one_in={one_in} must be at least 1")
    return max(1, round(form.train * scale / one_in)), max(1, round(form.test * scale))


def _check_values(X: np.ndarray, y: np.ndarray, form: Form) -> None:
    wrong = np.flatnonzero(~((y >= form.first_year) & (y <= form.last_year)))
    if len(wrong):
        row = wrong[0]
        raise DataError(f"row {row + 1} is of the year {y[row]:g}, not of {form.first_year} to {form.last_year}")
    for column in range(X.shape[1]):
        wrong = np.flatnonzero(~np.isfinite(X[:, column]))
        if len(wrong):
            raise DataError(f"row {wrong[0] + 1}, column {column + 2} is {X[wrong[0], column]}: no finite number")


def _download(url: str, archive: Path) -> None:
    """Fetch into a temporary name first, so that half an archive is never under this one."""
    pooch.get_logger().setLevel("WARNING")
    downloader = pooch.HTTPDownloader(timeout=(CONNECT_S, READ_S))
    try:
        pooch.retrieve(url, known_hash=None, fname=archive.name, path=archive.parent, downloader=downloader)
    except requests.RequestException as error:
        raise DataError(f"cannot fetch YearPredictionMSD from {url} ({_brief(error)}); {ELSEWHERE}") from error


def _brief(error: Exception) -> str:
    """What went wrong, without the layers of libraries it went through."""
    cause = error.args[0] if error.args else error
    told = str(getattr(cause, "reason", None) or cause).partition(" for url: ")[0]
    return re.sub(r"^.* object at 0x\w+>: ", "", told) or type(error).__name__


def _compare(pins: dict[str, str], found: dict[str, str], path: Path) -> None:
    for what, pinned in pins.items():
        if found.get(what) != pinned:
            raise DataError(
                f"the {what} of YearPredictionMSD has SHA-256 {found.get(what)}, and {pinned} when it was first "
                f"fetched: it has changed, or is damaged. Remove {path} to trust the new one; {ELSEWHERE}"
            )


def _read_pins(path: Path) -> dict[str, str]:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise DataError(f"{path} holds no hashes ({error}): remove it to trust the next download") from error


def _write(path: Path, text: str) -> None:
    draft = path.with_suffix(f".{os.getpid()}.draft")
    draft.write_text(text)
    draft.rename(path)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
