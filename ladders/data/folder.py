"""Where made and fetched data are kept. May import platformdirs only."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """``DYNO_CACHE_DIR``, else the platform's cache directory for gbt-dyno."""
    chosen = os.environ.get("DYNO_CACHE_DIR")
    return Path(chosen) if chosen else user_cache_path("gbt-dyno", appauthor=False)
