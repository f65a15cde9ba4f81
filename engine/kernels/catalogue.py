"""All that is known of every kernel on every architecture, in one table. May import the kernels room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.kernels import source_folder
from engine.kernels.budget import Budget, budget_for, implied_occupancy, read_budgets
from engine.kernels.gates import complaints
from engine.kernels.headers import Family, family_of, read_families
from engine.kernels.machine_code import Kernel, compiled_kernels
from engine.kernels.occupancy import LIMITS, occupancy


@dataclass(frozen=True)
class Entry:
    """One kernel on one architecture."""

    kernel: Kernel
    family: Family

    @property
    def shared(self) -> int:
        """Bytes a block, static and at most added by the launch."""
        return self.kernel.shared + self.family.shared

    @property
    def occupancy(self) -> int:
        """Resident warps in percent."""
        return occupancy(self.kernel.arch, self.family.block, self.kernel.registers, self.shared)

    def facts(self) -> dict[str, object]:
        """What `dyno kernels` shows."""
        return {
            "kernel": self.kernel.name,
            "arch": self.kernel.arch,
            "file": self.family.file,
            "block": self.family.block,
            "registers": self.kernel.registers,
            "shared": self.shared,
            "occupancy": self.occupancy,
            "atomics_per_cell": self.family.atomics_per_cell,
            "bytes_per_row": self.family.bytes_per_row,
        }


def catalogue(archs: Iterable[str] = LIMITS, folder: Path | None = None, cache: Path | None = None) -> list[Entry]:
    """Compile the kernels for these architectures, or look up what was found before.

    Raises
    ------
    ToolchainError
        If the compiler is not installed or does not accept the sources.
    HeaderError
        If a kernel has no header.
    """
    families = read_families(folder or source_folder())
    return [
        Entry(kernel, family_of(kernel.name, families))
        for arch in archs
        for kernel in compiled_kernels(arch, folder, cache)
    ]


def all_complaints(entries: Sequence[Entry], budgets: dict[str, Budget] | None = None) -> list[str]:
    """What is wrong with the kernels, and with the budget file itself."""
    budgets = read_budgets() if budgets is None else budgets
    families = {entry.family.prefix: entry.family for entry in entries}
    found = [
        text for entry in entries for text in complaints(entry.kernel, entry.family, budgets.get(entry.family.prefix))
    ]
    found += [
        f"budget.toml has [{prefix}], but no kernel is of that name" for prefix in budgets if prefix not in families
    ]
    for prefix in budgets.keys() & families.keys():
        budget = budgets[prefix]
        implied = implied_occupancy(families[prefix].block, budget.registers, budget.shared)
        if budget.occupancy != implied:
            found.append(f"budget.toml, [{prefix}]: occupancy {budget.occupancy}, but the budget implies {implied}")
    return found


def tightest_budgets(entries: Sequence[Entry]) -> dict[str, Budget]:
    """The budget that the kernels as they are just meet; of the whole table, for every architecture counts."""
    families = {entry.family.prefix: entry.family for entry in entries}
    return {
        prefix: budget_for(family, (entry.kernel for entry in entries if entry.family.prefix == prefix))
        for prefix, family in families.items()
    }
