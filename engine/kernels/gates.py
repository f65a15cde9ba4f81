"""What compiled kernels must be, decided without a GPU. May import the kernels room.

Why each gate stands:

- **Local memory**: a spill or an indexed local array turns a register into a trip to memory in the innermost loop.
- **Shared atomics**: only 32-bit integer ones are native. Float and 64-bit ones are loops of compare and swap, which
  the assembler calls ``ATOMS.CAST.SPIN``; histograms hold ``ATOMS.ADD`` and ``ATOMS.POPC.INC`` and nothing else.
- **Contraction**: the contract rounds after every operation. The assembler may fuse a PTX ``mul`` and ``add`` unless
  they carry ``.rn``, so every float operation in the PTX must. The assembler itself writes fused multiply-adds only
  where it expands a division or a square root, whose result is correctly rounded all the same: a kernel without those
  has no ``DFMA`` or ``FFMA`` at all.
- **Block**: the header's is the one the compiler was told, or the occupancy would be of another kernel.
- **Float atomics**: their sums depend on the order of threads.
"""

from __future__ import annotations

from engine.kernels.budget import Budget
from engine.kernels.headers import Family
from engine.kernels.machine_code import Kernel

NATIVE_HISTOGRAM_ATOMICS = ("ATOMS.ADD", "ATOMS.POPC.INC")


def complaints(kernel: Kernel, family: Family, budget: Budget | None) -> list[str]:
    """Everything that is wrong with one compiled kernel, each with what to do about it; empty if nothing is."""
    found = [
        *_block(kernel, family),
        *_local_memory(kernel),
        *_shared_atomics(kernel, family),
        *_arithmetic(kernel),
        *_over_budget(kernel, family, budget),
    ]
    return [f"{kernel.name}, {kernel.arch}: {complaint}" for complaint in found]


def _block(kernel: Kernel, family: Family):
    if kernel.block != family.block:
        yield f"compiled for blocks of {kernel.block}, but {family.file} says '// Block: {family.block}'"


def _local_memory(kernel: Kernel):
    touched = [name for name in kernel.instructions if name.startswith(("LDL", "STL"))]
    if kernel.local or touched:
        used = f"{kernel.local} bytes a thread" if kernel.local else ", ".join(touched)
        yield f"local memory ({used}): keep indices of local arrays constant, or lower the registers in use"


def _shared_atomics(kernel: Kernel, family: Family):
    shared = [name for name in kernel.instructions if name.startswith("ATOMS")]
    looping = [name for name in shared if "SPIN" in name or name.startswith("ATOMS.CAS")]
    if looping:
        yield f"{', '.join(looping)}: a loop of compare and swap; use 32-bit integer shared atomics"
    if family.atomics_per_cell is not None:
        foreign = [name for name in shared if name not in looping and not name.startswith(NATIVE_HISTOGRAM_ATOMICS)]
        if foreign:
            yield f"{', '.join(foreign)} in a histogram kernel: only {' and '.join(NATIVE_HISTOGRAM_ATOMICS)} are fast"
        if not shared:
            yield f"no shared atomic, but {family.file} says '// Atomics per cell: {family.atomics_per_cell}'"


def _arithmetic(kernel: Kernel):
    if kernel.inexact:
        yield f"{', '.join(kernel.inexact)} in the PTX: may be fused, is approximate, or depends on thread order"
    fused = {name: count for name, count in kernel.instructions.items() if name.startswith(("DFMA", "FFMA"))}
    if fused and not kernel.divisions:
        yield f"{', '.join(fused)}, yet the PTX has no division or square root that would be expanded to it"


def _over_budget(kernel: Kernel, family: Family, budget: Budget | None):
    if budget is None:
        yield f"budget.toml has no [{family.prefix}]: look at what it uses, then `dyno kernels --accept`"
        return
    shared = kernel.shared + family.shared
    for what, used, allowed in (("registers", kernel.registers, budget.registers), ("shared", shared, budget.shared)):
        if used > allowed:
            yield f"{used} {what}, the budget of [{family.prefix}] is {allowed}: lower it, or `dyno kernels --accept`"
