"""Which code is measuring: commit, whether it differs, version. Runs git; may import the standard library only."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

CODE = ("engine", "ladders", "probes", "results", "CMakeLists.txt", "pyproject.toml")
"""What can move a figure; a changed page of documentation cannot."""


@dataclass(frozen=True)
class Provenance:
    """Commit (None outside a git checkout), whether the code differs from it, and the release.

    The release of differing code carries a digest of the difference as a local version (PEP 440), so that two edits of
    one commit are two releases and their rows are never mixed.
    """

    commit: str | None
    dirty: bool
    release: str


def read_provenance(checkout: Path = CHECKOUT) -> Provenance:
    """Ask git about the checkout that this code stands in."""
    release = version("gbt-dyno")
    commit = _git(checkout, "rev-parse", "HEAD").decode().strip() or None if (checkout / ".git").exists() else None
    if commit is None:
        return Provenance(None, False, release)
    difference = _git(checkout, "diff", "--binary", "HEAD", "--", *CODE)
    untracked = _git(checkout, "ls-files", "-z", "--others", "--exclude-standard", "--", *CODE).decode()
    for name in sorted(filter(None, untracked.split("\0"))):
        difference += name.encode() + (checkout / name).read_bytes()
    if not difference:
        return Provenance(commit, False, release)
    return Provenance(commit, True, f"{release}+d{hashlib.sha256(difference).hexdigest()[:12]}")


def _git(checkout: Path, *arguments: str) -> bytes:
    """Output of a git command; nothing where git is missing or refuses."""
    try:
        return subprocess.run(["git", "-C", checkout, *arguments], capture_output=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return b""
