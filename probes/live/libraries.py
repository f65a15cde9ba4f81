"""Which GPU libraries are installed, from the distributions' metadata: none is imported. May import nothing of ours."""

from __future__ import annotations

import re
from importlib.metadata import distributions

WANTED = re.compile(
    r"xgboost(-cpu|-cu\d+)?|lightgbm|catboost|bonsai-gbt|cupy(-cuda\d+x)?"
    r"|nvidia-nccl-cu\d+|nvidia-cuda-nvrtc(-cu\d+)?"
)
"""Rivals, CuPy, and the NVIDIA wheels whose names or versions tell the CUDA major a rival was built for."""


def installed_libraries() -> dict[str, str]:
    """Versions of the `WANTED` distributions that are installed, by normalised name, sorted."""
    found = {}
    for distribution in distributions():
        try:
            name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()  # PEP 503
        except (OSError, TypeError, KeyError):  # no METADATA: what is raised depends on who finds distributions
            continue
        if WANTED.fullmatch(name):
            found[name] = distribution.version
    return dict(sorted(found.items()))
