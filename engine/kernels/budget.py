"""The budget of registers and shared memory, and the occupancy that it implies. May import the kernels room.

``budget.toml`` is kept in the tree so that a kernel that grows, and the occupancy that this costs, show in a diff.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.kernels import source_folder
from engine.kernels.headers import Family
from engine.kernels.machine_code import Kernel
from engine.kernels.occupancy import LIMITS, REGISTER_GRANULE, WARP
from engine.kernels.occupancy import occupancy as occupancy_of

_HEADING = """\
# What each kernel family may use on any architecture, and the occupancy that this implies: registers a thread, shared
# bytes a block, and resident warps in percent. Written by `dyno kernels --accept`, checked by the tests.
"""


@dataclass(frozen=True)
class Budget:
    """Of one kernel family."""

    registers: int
    shared: int
    occupancy: dict[str, int]


def budget_file() -> Path:
    """Where the budget stands."""
    return source_folder() / "budget.toml"


def read_budgets(path: Path | None = None) -> dict[str, Budget]:
    """Budgets by family prefix; none if the file is not there yet."""
    path = path or budget_file()
    if not path.exists():
        return {}
    return {prefix: Budget(**values) for prefix, values in tomllib.loads(path.read_text()).items()}


def budget_for(family: Family, kernels: Iterable[Kernel]) -> Budget:
    """The tightest budget that the family's kernels meet: registers are given out by the eight, so it ends on one."""
    kernels = list(kernels)
    granule = REGISTER_GRANULE // WARP
    registers = -(-max(kernel.registers for kernel in kernels) // granule) * granule
    shared = family.shared + max(kernel.shared for kernel in kernels)
    return Budget(registers, shared, implied_occupancy(family.block, registers, shared))


def implied_occupancy(block: int, registers: int, shared: int) -> dict[str, int]:
    """Resident warps in percent, by architecture."""
    return {arch: occupancy_of(arch, block, registers, shared) for arch in LIMITS}


def write_budgets(budgets: dict[str, Budget], path: Path | None = None) -> None:
    """Replace the file."""
    tables = [_table(prefix, budget) for prefix, budget in sorted(budgets.items())]
    (path or budget_file()).write_text("\n".join([_HEADING, *tables]))


def _table(prefix: str, budget: Budget) -> str:
    occupancy = ", ".join(f"{arch} = {percent}" for arch, percent in budget.occupancy.items())
    return f"[{prefix}]\nregisters = {budget.registers}\nshared = {budget.shared}\noccupancy = {{ {occupancy} }}\n"
