"""The host's passport: who it is, in one digest that every row carries. May import probes.

A passport is valid for one boot of one container. Rows of different digests are never compared: an earlier harness
published one table from two machines that had the same host name (research/harness.md §1), which this is to prevent.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from probes.check import Check
from probes.checks.gpu import IDENTITY
from probes.host import read_host, read_load, read_software
from probes.identity import gpu_of, gpu_of_this_host
from probes.store import find_probe

PASSPORT = 1
"""Version of what the digest covers; raising it makes every earlier passport a different one."""

DIGEST_LENGTH = 16
"""Hex digits kept of the SHA-256: 64 bits, no collision among the hosts anyone will ever rent."""


def take_passport(root: Path = Path("/"), checks: Iterable[Check] = ()) -> dict[str, Any]:
    """Read the host's passport, plain JSON values throughout.

    Parameters
    ----------
    root : Path
        Where ``proc`` and the mounts are; a recorded tree, or the machine itself.
    checks : iterable of Check, optional
        Of a probe just made; if they tell of the card, it need not be asked again.

    Returns
    -------
    dict
        ``passport`` (version), ``digest``, ``taken`` (UTC), and

        - ``host``, ``gpu``: what the digest covers. ``gpu`` is None where there is none, or it does not show itself.
        - ``probe``: what `probes.store` keeps of the last probe, its figures by check; None if there was none. Not in
          the digest: the figures move.
        - ``software``: versions. Not in the digest: a row names its own library's version, and a run may compare two.
        - ``load``: what the minute was like; not in the digest either.
    """
    host = asdict(read_host(root))
    identity = [check for check in checks if check.name in IDENTITY]
    gpu = gpu_of(identity) if identity else gpu_of_this_host()
    digest = digest_of(host, gpu)
    return {
        "passport": PASSPORT,
        "digest": digest,
        "taken": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": host,
        "gpu": gpu,
        "probe": find_probe(digest),
        "software": read_software(),
        "load": read_load(root),
    }


def digest_of(host: dict[str, Any], gpu: dict[str, Any] | None) -> str:
    """`DIGEST_LENGTH` hex digits over what must not change between rows that are compared."""
    identity = json.dumps({"passport": PASSPORT, "host": host, "gpu": gpu}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(identity.encode()).hexdigest()[:DIGEST_LENGTH]
