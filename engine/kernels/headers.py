"""What each kernel file says of its kernels at its top, as data. May import errors.

A file that defines kernels holds one or more groups of comment lines, in any order after ``Kernels``::

    // Kernels: build_tile
    // Block: 256
    // Shared: 49152
    // Bytes per row: read 16 * bin_bytes + 12, written 0
    // Atomics per cell: 2

``Kernels`` are name prefixes: ``build_tile`` covers ``build_tile_u8_count``. ``Shared`` is dynamic shared memory at the
most. ``Shared`` and ``Atomics per cell`` are left out where there are none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.errors import EngineError

_LINE = re.compile(r"^// (Kernels|Block|Shared|Bytes per row|Atomics per cell): (.+?)\s*$", re.MULTILINE)


class HeaderError(EngineError, ValueError):
    """A kernel has no header, or its header lacks a line."""


@dataclass(frozen=True)
class Family:
    """The kernels that share a prefix, and what their file's header says of them."""

    prefix: str
    file: str
    block: int
    shared: int
    bytes_per_row: str
    atomics_per_cell: str | None


def read_families(folder: Path) -> list[Family]:
    """Every family of the ``.cuh`` files in a folder, in file order.

    Raises
    ------
    HeaderError
        If a group lacks ``Block`` or ``Bytes per row``, or a file has such lines before any ``Kernels``.
    """
    return [family for path in sorted(folder.glob("*.cuh")) for family in _families_of(path)]


def family_of(kernel: str, families: list[Family]) -> Family:
    """The family a kernel belongs to: the longest prefix that ends where a word of its name does."""
    matching = [family for family in families if f"{kernel}_".startswith(f"{family.prefix}_")]
    if not matching:
        raise HeaderError(f"kernel {kernel} is in no header: add a '// Kernels: {kernel}' group to the file it is in")
    return max(matching, key=lambda family: len(family.prefix))


def _families_of(path: Path) -> list[Family]:
    groups: list[dict[str, str]] = []
    for name, value in _LINE.findall(path.read_text()):
        if name == "Kernels":
            groups.append({})
        elif not groups:
            raise HeaderError(f"{path.name}: '// {name}:' stands before any '// Kernels:' line")
        groups[-1][name] = value
    return [family for group in groups for family in _families_in(path.name, group)]


def _families_in(file: str, group: dict[str, str]) -> list[Family]:
    for name in ("Block", "Bytes per row"):
        if name not in group:
            raise HeaderError(f"{file}: the header of {group['Kernels']} lacks '// {name}:'")
    return [
        Family(
            prefix=prefix.strip(),
            file=file,
            block=int(group["Block"]),
            shared=int(group.get("Shared", 0)),
            bytes_per_row=group["Bytes per row"],
            atomics_per_cell=group.get("Atomics per cell"),
        )
        for prefix in group["Kernels"].split(",")
    ]
