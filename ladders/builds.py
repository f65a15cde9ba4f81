"""Commits as installed wheels, made once and kept: two versions are fitted from one environment. May import data.cache.

A build is a folder with the packages of one commit and nothing else; what they depend on is the running environment's.
It appears under its name only when it is complete, and a commit that does not build is remembered with its log.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from ladders.data.cache import cache_folder

LIMIT_S = 3600.0
"""Of one build; a slow node compiles the native module in minutes."""

LOG_TAIL = 2000

FAILED = "failed.log"


class BuildError(RuntimeError):
    """A commit that does not build; the message says which, why, and where its log is."""


def resolve(repository: Path, revision: str) -> str:
    """The full hash of a commit, tag or branch.

    Raises
    ------
    ValueError
        If git does not know it, or there is no repository.
    """
    try:
        return git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except subprocess.CalledProcessError:
        raise ValueError(f"'{revision}' is no commit, tag or branch of {repository}; see: git log --oneline") from None


def build(repository: Path, commit: str, tell: Callable[[str], None] = lambda text: None) -> Path:
    """The folder to put first on PYTHONPATH for the packages as they were at a commit; built now if it is not there.

    Parameters
    ----------
    repository : Path
    commit : str
        Full hash.
    tell : callable
        Given a line before a build, which takes about a minute.

    Raises
    ------
    BuildError
        If the commit does not build, now or when it was last tried.
    """
    folder = builds_folder() / f"{commit}-{sysconfig.get_config_var('SOABI')}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            tell(f"building {commit[:10]}")
            _make(repository, commit, folder)
    if (log := folder / FAILED).exists():
        told = f"{commit[:10]} does not build: {_last_line(log)}"
        raise BuildError(f"{told}; its log is {log}, and removing that folder has it tried again")
    return folder


def builds_folder() -> Path:
    """Where builds are kept: below ``DYNO_CACHE_DIR`` or the platform's cache directory."""
    return cache_folder() / "builds"


@contextmanager
def checkout(repository: Path, commit: str) -> Iterator[Path]:
    """A worktree of a commit in a temporary folder; what a killed process leaves is pruned by the next one."""
    git(repository, "worktree", "prune")
    with tempfile.TemporaryDirectory(prefix="dyno-checkout-") as folder:
        tree = Path(folder) / commit[:12]
        git(repository, "worktree", "add", "--detach", "--force", str(tree), commit)
        try:
            yield tree
        finally:
            git(repository, "worktree", "remove", "--force", str(tree))


def git(repository: Path, *arguments: str) -> str:
    """Output of a git command.

    Raises
    ------
    subprocess.CalledProcessError
        If git refuses; its words are in ``stderr``.
    """
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True, timeout=LIMIT_S).stdout.strip()


def _make(repository: Path, commit: str, folder: Path) -> None:
    """Build and install beside, then rename: a killed build leaves nothing that could be taken for whole."""
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder.parent) as temporary:
        made, wheels = Path(temporary) / "made", Path(temporary) / "wheels"
        made.mkdir()
        with checkout(repository, commit) as tree:
            log = _pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels), str(tree))
        found = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
        log = log if log or not found else _pip("install", "--no-deps", "--target", str(made), *map(str, found))
        if log or not found:
            shutil.rmtree(made)
            made.mkdir()
            (made / FAILED).write_text(log or "the build made no wheel\n")
        os.replace(made, folder)


def _pip(*arguments: str) -> str | None:
    """Run pip; its output if it failed, else None."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
    return None if done.returncode == 0 else done.stdout.decode(errors="replace") or f"exit code {done.returncode}"


def _last_line(log: Path) -> str:
    """What most likely is the reason: the first line that speaks of an error, else the last."""
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1])[:LOG_TAIL]
