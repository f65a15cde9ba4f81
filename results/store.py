"""Rows on disk: JSON lines, appended whole or not at all. May import results.schema, filelock and platformdirs.

One file a ladder. An append holds a lock, is one `os.write` of one line, and is on the disk (fsync) when it returns.
What a killed writer leaves is at most one torn last line: the next append ends it with a newline and never merges with
it, and reading reports it with file and line. Nothing is ever cut out of a file, only what an append has just failed to
write is taken back.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_data_path

from results.schema import Row

LOCK_TIMEOUT_S = 30.0
"""An append takes milliseconds; a lock held this long is a stuck process that someone has to look at."""

ROOM_BYTES = 64 * 1024
"""What must be free before a fit begins: several times the longest row that was ever written."""

REMEDY = "Free some space, fix the permissions, or point DYNO_RESULTS_DIR to another directory"

CHECKOUT = Path(__file__).resolve().parents[1]


class StoreError(RuntimeError):
    """Rows cannot be written here or read from here; the message names the path, the cause and the remedy."""


@dataclass(frozen=True)
class Stored:
    """A row and where it stands: file, line number from 1, and the text itself (with keys this build does not know)."""

    path: Path
    line: int
    text: str
    row: Row


@dataclass(frozen=True)
class Problem:
    """A line that is no row."""

    path: Path
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


@dataclass(frozen=True)
class Content:
    """Everything a store holds, in file order: what is a row and what is not."""

    stored: tuple[Stored, ...]
    problems: tuple[Problem, ...]

    @property
    def rows(self) -> list[Row]:
        """The rows alone."""
        return [stored.row for stored in self.stored]


class Store:
    """A directory of ``<ladder>.jsonl`` files. Opening it touches nothing; the first append makes it."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        # Kept: a lock made for each append dies in `FileLock.__del__`, where Python drops a Ctrl-C.
        self._locks: dict[Path, FileLock] = {}

    def require_room(self) -> None:
        """Refuse before a fit what would be lost after it: the room of a row is taken, and given back at once.

        Raises
        ------
        StoreError
            If the directory cannot be written or has no `ROOM_BYTES` left.
        """
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.directory, buffering=0) as scratch:
                taken = scratch.write(bytes(ROOM_BYTES))
                if taken < ROOM_BYTES:
                    raise OSError(f"the disk took {taken} of {ROOM_BYTES} bytes")
                os.fsync(scratch.fileno())
        except OSError as error:
            raise StoreError(
                f"no room for a row in {self.directory}: {error.strerror or error}; nothing was measured. {REMEDY}"
            ) from error

    def append(self, row: Row) -> Path:
        """Write a row durably.

        Raises
        ------
        StoreError
            If the directory cannot be written or the disk is full. The file is then as it was before.
        """
        return self.append_text(row.ladder, row.to_line())

    def append_text(self, ladder: str, text: str) -> Path:
        """Write the text of a row as it stands; see `append`."""
        path = self.directory / f"{ladder}.jsonl"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with self._lock(path):
                _append_line(path, text.encode())
        except Timeout:
            raise StoreError(
                f"{path} is locked by another process since {LOCK_TIMEOUT_S:.0f} s; find it with 'fuser {path}.lock'"
            ) from None
        except OSError as error:
            raise StoreError(
                f"cannot append a row to {path}: {error.strerror or error}; nothing was lost, the row was not written. "
                f"{REMEDY}"
            ) from error
        return path

    def _lock(self, path: Path) -> FileLock:
        if path not in self._locks:
            self._locks[path] = FileLock(f"{path}.lock", timeout=LOCK_TIMEOUT_S)
        return self._locks[path]

    def read(self, ladder: str | None = None) -> Content:
        """Read every row, or those of one ladder; a directory that is not there holds none.

        Raises
        ------
        StoreError
            If a file is there but cannot be read. Lines that are no rows do not raise: they are `Content.problems`.
        """
        stored, problems = [], []
        for path in sorted(self.directory.glob(f"{ladder or '*'}.jsonl")):
            for item in _read_file(path):
                (stored if isinstance(item, Stored) else problems).append(item)
        return Content(tuple(stored), tuple(problems))


def local_store() -> Store:
    """Where runs write: ``DYNO_RESULTS_DIR``, else results/local of this checkout, else the user's data directory."""
    given = os.environ.get("DYNO_RESULTS_DIR")
    if given:
        return Store(Path(given).expanduser())
    if (CHECKOUT / "pyproject.toml").is_file():
        return Store(CHECKOUT / "results" / "local")
    return Store(user_data_path("gbt-dyno") / "results")


def records_store() -> Store:
    """Where published rows are kept under version control.

    Raises
    ------
    StoreError
        If this is an installed package and not a checkout.
    """
    if not (CHECKOUT / "pyproject.toml").is_file():
        raise StoreError(f"{CHECKOUT} is no checkout of gbt-dyno: published rows live in its results/records; clone it")
    return Store(CHECKOUT / "results" / "records")


def _append_line(path: Path, line: bytes) -> None:
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        data = (b"\n" if torn else b"") + line + b"\n"
        try:
            written = os.write(descriptor, data)
            if written < len(data):
                raise OSError(f"the disk took {written} of {len(data)} bytes (full, or a file size limit)")
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)
    if is_new:
        _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """A new file's name is durable only when its directory is."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_file(path: Path) -> Iterator[Stored | Problem]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    lines = content.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield Stored(path, number, line.decode(), Row.read(line))
        except (ValueError, RecursionError) as error:
            # Only the last piece has no newline behind it.
            torn = "torn last line (its writer was killed, or is writing now): " if number == len(lines) else ""
            yield Problem(path, number, torn + _first_cause(error))


def _first_cause(error: Exception) -> str:
    """One line of what may be many: the field and the rule, without pydantic's links."""
    if hasattr(error, "errors"):
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return f"{where}: {first['msg']}" if where else first["msg"].removeprefix("Value error, ")
    return str(error) or type(error).__name__
