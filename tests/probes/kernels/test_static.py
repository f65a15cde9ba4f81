"""What the probes' kernels become on seven GPU architectures, from the compiler alone, and how like the engine's
histogram the atomics are.
"""

import re
from functools import cache

import pytest

from engine.kernels.machine_code import compiled_kernels, read_program
from engine.kernels.occupancy import LIMITS, occupancy
from engine.kernels.toolchain import compile_program, disassemble
from probes import kernels

ENGINE_FEATURES, PROBE_FEATURES = 16, 12
"""That a thread of each has in its unrolled loop."""


@cache
def program(arch):
    options = ("--std=c++17", f"--include-path={kernels.source_folder()}", "--ptxas-options=-v")
    return compile_program(kernels.SOURCE, arch, options)


def kernel(arch, name):
    (found,) = [each for each in read_program(program(arch), arch) if each.name == name]
    return found


def sass(arch, name):
    """Machine code of one kernel."""
    return disassemble(program(arch).cubin).partition(f".text.{name}:")[2].partition(".text.")[0]


@pytest.mark.parametrize("arch", LIMITS)
def test_shared_atomics_are_native_and_as_many_as_the_loop_has(arch):
    """Two low words and two high words a feature: nothing is merged, nothing is a loop of compare and swap."""
    atomics = kernel(arch, "atomics")
    shared = {name: count for name, count in atomics.instructions.items() if name.startswith("ATOMS")}
    assert all(name.startswith("ATOMS.ADD") for name in shared), shared
    assert sum(shared.values()) == 4 * PROBE_FEATURES == 2 * kernels.ATOMICS_A_ROW


@pytest.mark.parametrize("arch", LIMITS)
def test_a_cell_has_as_many_atomics_as_in_the_engine(arch):
    (engines,) = [each for each in compiled_kernels(arch) if each.name == "build_tile_u8_pair"]
    by_feature = [
        sum(count for name, count in each.instructions.items() if name.startswith("ATOMS")) / features
        for each, features in ((engines, ENGINE_FEATURES), (kernel(arch, "atomics"), PROBE_FEATURES))
    ]
    assert by_feature[0] == by_feature[1]


@pytest.mark.parametrize("arch", LIMITS)
def test_nothing_spills_and_as_many_blocks_fit_as_shared_memory_holds(arch):
    for name in ("empty", "triad", "atomics"):
        found = kernel(arch, name)
        assert found.local == 0
        assert not [each for each in found.instructions if each.startswith(("LDL", "STL"))]
    atomics = kernel(arch, "atomics")
    assert atomics.shared == 48 * 1024
    assert atomics.block == kernels.ATOMICS_BLOCK
    by_shared = occupancy(arch, kernels.ATOMICS_BLOCK, 16, atomics.shared)
    assert occupancy(arch, kernels.ATOMICS_BLOCK, atomics.registers, atomics.shared) == by_shared


@pytest.mark.parametrize("arch", LIMITS)
def test_the_triad_moves_vectors(arch):
    code = sass(arch, "triad")
    assert len(re.findall(r"LDG\.E\.128", code)) == 2 * len(re.findall(r"STG\.E\.128", code)) > 0
    assert kernel(arch, "triad").block == kernels.TRIAD_BLOCK


def test_every_file_opens_with_what_it_computes():
    for path in kernels.source_folder().glob("*.cu"):
        header = path.read_text().partition("\n\n")[0]
        assert all(line.startswith("//") for line in header.splitlines()), path
        for said in ("Grid and block:", "Bytes:", "Atomics:"):
            assert f"// {said}" in header, f"{path} does not say its {said}"
    assert {path.name for path in kernels.source_folder().glob("*.cu")} == set(re.findall(r'"(.*)"', kernels.SOURCE))
