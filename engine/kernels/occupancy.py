"""How many blocks of a kernel live on one multiprocessor at once. Imports nothing of the engine.

Limits: CUDA C++ Programming Guide 13, table "Technical Specifications per Compute Capability". Granules: the occupancy
calculator that CUDA ships (cuda_occupancy.h, 13.0): registers are given to warps in units of 256, each of the four
sub-partitions holding a quarter; shared memory in units of 128 bytes (256 before 8.0), plus 1 KB a block that the
driver keeps from 8.0 on.
"""

from __future__ import annotations

from dataclasses import dataclass

WARP = 32
REGISTERS = 65536
"""Of a multiprocessor, and at most of a block."""
REGISTER_GRANULE = 256
SUB_PARTITIONS = 4
KB = 1024


@dataclass(frozen=True)
class Limits:
    """What one multiprocessor of an architecture holds."""

    warps: int
    blocks: int
    shared: int
    shared_of_block: int
    shared_granule: int = 128
    shared_reserved: int = KB


LIMITS = {
    "sm_75": Limits(32, 16, 64 * KB, 64 * KB, shared_granule=256, shared_reserved=0),
    "sm_80": Limits(64, 32, 164 * KB, 163 * KB),
    "sm_86": Limits(48, 16, 100 * KB, 99 * KB),
    "sm_89": Limits(48, 24, 100 * KB, 99 * KB),
    "sm_90": Limits(64, 32, 228 * KB, 227 * KB),
    "sm_100": Limits(64, 32, 228 * KB, 227 * KB),
    "sm_120": Limits(48, 24, 100 * KB, 99 * KB),
}
"""Every architecture that the kernels are compiled for."""


def resident_blocks(arch: str, block: int, registers: int, shared: int) -> int:
    """Blocks of `block` threads that one multiprocessor holds; 0 if even one does not fit.

    Parameters
    ----------
    arch : str
        A key of `LIMITS`.
    block : int
        Threads a block.
    registers : int
        Of one thread.
    shared : int
        Bytes of shared memory a block, static and dynamic together.
    """
    limits = LIMITS[arch]
    warps = _round_up(block, WARP) // WARP
    registers_of_warp = _round_up(registers * WARP, REGISTER_GRANULE)
    if shared > limits.shared_of_block or registers_of_warp * _round_up(warps, SUB_PARTITIONS) > REGISTERS:
        return 0
    warps_by_registers = REGISTERS // SUB_PARTITIONS // registers_of_warp * SUB_PARTITIONS
    shared_of_block = _round_up(shared + limits.shared_reserved, limits.shared_granule)
    by_shared = limits.shared // shared_of_block if shared_of_block else limits.blocks
    return min(limits.blocks, limits.warps // warps, warps_by_registers // warps, by_shared)


def occupancy(arch: str, block: int, registers: int, shared: int) -> int:
    """Resident warps in percent of what the architecture can hold, rounded down."""
    warps = _round_up(block, WARP) // WARP
    return 100 * warps * resident_blocks(arch, block, registers, shared) // LIMITS[arch].warps


def _round_up(value: int, granule: int) -> int:
    return (value + granule - 1) // granule * granule
