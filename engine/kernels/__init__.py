"""The device kernels' sources, and what every compiler of them is told. Imports nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

UMBRELLA = "all.cuh"
"""The one file that includes every kernel family; NVRTC and the emulator's compiler both start from it."""

COMPILE_OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""What NVRTC is told beside architecture and include path: IEEE arithmetic as written, nothing contracted."""


def source_folder() -> Path:
    """The folder of the ``.cuh`` files, in the source tree and in an installed wheel alike."""
    return Path(__file__).parent


def source_digest(folder: Path | None = None) -> str:
    """A hash of every ``.cuh`` file: two builds with the same one run the same kernels."""
    digest = hashlib.sha256()
    for path in sorted((folder or source_folder()).glob("*.cuh")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
