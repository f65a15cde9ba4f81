"""Bytes that kernels read and write in device memory, by the formulas in their headers. May import the kernels room."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from engine.kernels import source_folder
from engine.kernels.headers import Family, HeaderError, family_of, read_families

_FORMULA = re.compile(r"read (.+), written (.+)")


def bytes_per_row(kernel: str, names: Mapping[str, float]) -> float | None:
    """What a kernel moves for each row that it takes.

    Parameters
    ----------
    kernel : str
    names : mapping of str to float
        Values of the names in the header's formula.

    Returns
    -------
    float or None
        None where rows play no part.

    Raises
    ------
    HeaderError
        If there is no such kernel, or its formula cannot be evaluated with these names.
    """
    family = family_of(kernel, _families())
    if family.bytes_per_row == "none":
        return None
    formula = _FORMULA.fullmatch(family.bytes_per_row)
    try:
        return sum(eval(part, {"__builtins__": {}}, dict(names)) for part in formula.groups())
    except (AttributeError, NameError, SyntaxError, TypeError) as error:
        raise HeaderError(
            f"{family.file}: bytes per row of {family.prefix}, '{family.bytes_per_row}', make no number ({error}): "
            f"write 'read ..., written ...' with {', '.join(names)}"
        ) from None


@cache
def _families() -> list[Family]:
    return read_families(source_folder())
