"""The last probe of this host, kept for ladders under the passport's digest. May import probes.check and platformdirs.

A digest is of one boot and one container, so a kept probe is never taken for another host's. Files are replaced whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock
from platformdirs import user_cache_path

from probes.check import Check
from probes.verdict import Judgement, Target

LOCK_TIMEOUT_S = 5.0


def probe_folder() -> Path:
    """``probes`` in ``DYNO_CACHE_DIR``, else in the platform's cache directory for gbt-dyno."""
    chosen = os.environ.get("DYNO_CACHE_DIR")
    return (Path(chosen) if chosen else user_cache_path("gbt-dyno", appauthor=False)) / "probes"


def keep_probe(digest: str, target: Target, checks: Iterable[Check], judgement: Judgement) -> Path:
    """Keep what a probe found; a quick probe leaves the figures standing that only a full one measures.

    Raises
    ------
    OSError
        If the folder cannot be written.
    TimeoutError
        If another process holds the file for seconds.
    """
    path = probe_folder() / f"{digest}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    figures = {check.name: check.value for check in checks if _is_figure(check.value)}
    with FileLock(path.with_suffix(".lock"), timeout=LOCK_TIMEOUT_S):
        earlier = find_probe(digest) or {"figures": {}}
        kept = {
            "taken": datetime.now(UTC).isoformat(timespec="seconds"),
            "target": target,
            "verdict": judgement.decision,
            "reasons": list(judgement.reasons),
            "figures": {**earlier["figures"], **figures},
        }
        _replace(path, json.dumps(kept, allow_nan=False, indent=1))
    return path


def find_probe(digest: str) -> dict[str, Any] | None:
    """The kept probe: ``taken`` (UTC), ``target``, ``verdict``, ``reasons``, ``figures`` by check; None without one."""
    try:
        found = json.loads((probe_folder() / f"{digest}.json").read_text())
    except (OSError, ValueError):
        return None
    complete = isinstance(found, dict) and {"taken", "target", "verdict", "reasons", "figures"} <= found.keys()
    return found if complete and isinstance(found["figures"], dict) else None


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _replace(path: Path, text: str) -> None:
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
