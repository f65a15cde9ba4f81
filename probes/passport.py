"""The host's passport: who it is, in one digest that every row carries. May import probes.host.

A passport is valid for one boot of one container. Rows of different digests are never compared: an earlier harness
published one table from two machines that had the same host name (research/harness.md §1), which this is to prevent.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from probes.host import read_host, read_load, read_software

PASSPORT = 1
"""Version of what the digest covers; raising it makes every earlier passport a different one."""

DIGEST_LENGTH = 16
"""Hex digits kept of the SHA-256: 64 bits, no collision among the hosts anyone will ever rent."""


def take_passport(root: Path = Path("/")) -> dict[str, Any]:
    """Read the host's passport, plain JSON values throughout.

    Returns
    -------
    dict
        ``passport`` (version), ``digest``, ``taken`` (UTC), and

        - ``host``, ``gpu``: what the digest covers. ``gpu`` is None: not measured yet.
        - ``software``: versions. Not in the digest: a row names its own library's version, and a run may compare two.
        - ``load``: what the minute was like; not in the digest either.
    """
    host = asdict(read_host(root))
    gpu = None
    return {
        "passport": PASSPORT,
        "digest": digest_of(host, gpu),
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": host,
        "gpu": gpu,
        "software": read_software(),
        "load": read_load(root),
    }


def digest_of(host: dict[str, Any], gpu: dict[str, Any] | None) -> str:
    """`DIGEST_LENGTH` hex digits over what must not change between rows that are compared."""
    identity = json.dumps({"passport": PASSPORT, "host": host, "gpu": gpu}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(identity.encode()).hexdigest()[:DIGEST_LENGTH]
