"""The outer shape of a model file: safetensors, one canonical JSON header, a digest. May import errors and safetensors.

It knows bytes, arrays and JSON values; what they mean is `engine.model`'s business.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from engine.errors import ModelError

VERSION = 1
HEADER_KEY = "gbt-dyno"
_UNSIGNED = "0" * 64


def pack(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """The file's bytes; the same for the same content.

    All of the header is one metadata value, because safetensors keeps its metadata map in no fixed order. The digest is
    the SHA-256 of the whole file as it reads with 64 zeros in the digest's place, so every byte is under it.

    Parameters
    ----------
    header : dict
        JSON values; the keys ``digest`` and ``version`` are added here.
    arrays : dict of str to ndarray
    """
    text = json.dumps({"digest": _UNSIGNED, "version": VERSION, **header}, separators=(",", ":"), allow_nan=False)
    unsigned = safetensors.numpy.save(arrays, {HEADER_KEY: text})
    # The first 64 zeros of a file are the digest's: it comes first in the header, before any text of the user's.
    return unsigned.replace(_UNSIGNED.encode(), hashlib.sha256(unsigned).hexdigest().encode(), 1)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header, without ``digest`` and ``version``, and the arrays.

    Raises
    ------
    ModelError
        If the bytes are no model file, of another version, cut short, or changed anywhere.
    """
    header = _header(data)
    if header.pop("version", None) != VERSION:
        raise ModelError(f"model file of an unknown version; this build reads version {VERSION}")
    digest = str(header.pop("digest", None))
    unsigned = data.replace(digest.encode(errors="replace"), _UNSIGNED.encode(), 1)
    if hashlib.sha256(unsigned).hexdigest() != digest:
        raise ModelError("the model file is damaged: its content does not match its SHA-256 digest")
    try:
        return header, safetensors.numpy.load(data)
    except (SafetensorError, KeyError, ValueError) as error:
        raise ModelError(f"the model file's arrays cannot be read: {error}") from error


def write_whole(path: str | os.PathLike, data: bytes) -> None:
    """Write a file entirely or not at all: a full disk, a crash or Ctrl-C leaves what was there before.

    Raises
    ------
    OSError
        Of the kind the system gave (`PermissionError`, `FileNotFoundError`, ...), naming the file and the remedy.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
        _sync_directory(target.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            reason = f"cannot save to '{target}': {error.strerror}; its directory must exist, be writable and have room"
            raise OSError(error.errno, reason) from error
        raise


def _header(data: bytes) -> dict[str, Any]:
    """The JSON header, read before anything is believed; safetensors has no call for it that takes bytes."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ModelError(f"not a model file, or cut short: {len(data)} bytes")
    try:
        header = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][HEADER_KEY])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"not a model file: it has no readable '{HEADER_KEY}' header") from error
    if not isinstance(header, dict):
        raise ModelError(f"not a model file: its '{HEADER_KEY}' header is a {type(header).__name__}, not an object")
    return header


def _sync_directory(directory: Path) -> None:
    """Make the rename itself durable; a platform that cannot open directories has no such call."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(directory, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
