"""What the kernels become on seven GPU architectures, from the compiler alone: see `engine.kernels.gates` for why."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from engine.kernels import source_folder
from engine.kernels.budget import Budget, budget_for, implied_occupancy, read_budgets, write_budgets
from engine.kernels.catalogue import all_complaints, catalogue, tightest_budgets
from engine.kernels.gates import complaints
from engine.kernels.headers import Family, HeaderError, family_of, read_families
from engine.kernels.machine_code import compiled_kernels
from engine.kernels.occupancy import LIMITS, occupancy, resident_blocks
from engine.kernels.toolchain import ToolchainError, _installed, compile_program
from ladders.cli import app

TRIAL = """
// Kernels: histogram
// Block: 256
// Shared: 1024
// Bytes per row: read 5, written 0
// Atomics per cell: 2
//
// Kernels: other
// Block: 256
// Bytes per row: read 8, written 8
typedef unsigned int u32;
typedef unsigned long long u64;
#define BOUNDED(name, type, threads) \\
    extern "C" __global__ void __launch_bounds__(threads) name(type* data, const type* more)
#define KERNEL(name, type) BOUNDED(name, type, 256)
extern __shared__ __align__(16) unsigned char memory[];

KERNEL(histogram_words, u32) {
    u32* cells = (u32*)memory;
    const u32 before = atomicAdd(cells + more[threadIdx.x], data[threadIdx.x]);
    if (before > ~data[threadIdx.x]) atomicAdd(cells + 256 + more[threadIdx.x], 1u);
    __syncthreads();
    data[threadIdx.x] = cells[threadIdx.x];
}
KERNEL(histogram_counts, u32) {
    u32* cells = (u32*)memory;
    atomicAdd(cells + more[threadIdx.x], 1u);
    __syncthreads();
    data[threadIdx.x] = cells[threadIdx.x];
}
KERNEL(histogram_floats, float) { atomicAdd((float*)memory + threadIdx.x % 7, *more); *data = *(float*)memory; }
KERNEL(histogram_longs, u64) { atomicAdd((u64*)memory + threadIdx.x % 7, *more); *data = *(u64*)memory; }
KERNEL(histogram_without_atomics, u32) { data[threadIdx.x] = more[threadIdx.x]; }
KERNEL(other_static_shared, u32) {
    __shared__ u32 values[1024];
    values[threadIdx.x] = more[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = values[1023 - threadIdx.x];
}
KERNEL(other_local_array, u32) {
    u32 values[16];
    for (int i = 0; i < 16; ++i) values[more[i] % 16] = more[i + 16];
    data[threadIdx.x] = values[more[threadIdx.x] % 16];
}
KERNEL(other_as_written, double) { data[threadIdx.x] = data[threadIdx.x] * more[0] + more[1]; }
KERNEL(other_division, double) { data[threadIdx.x] = data[threadIdx.x] / more[0] + more[1]; }
BOUNDED(other_block, u32, 128) { *data = *more; }
KERNEL(other_fused, double) { data[threadIdx.x] = __fma_rn(data[threadIdx.x], more[0], more[1]); }
KERNEL(other_approximate, float) { data[threadIdx.x] = __expf(more[threadIdx.x]); }
KERNEL(other_float_sum, float) { atomicAdd(data, more[threadIdx.x]); }
"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """Kernels that keep or break one gate each, compiled for an H200: entries by name."""
    folder = tmp_path_factory.mktemp("trial")
    (folder / "all.cuh").write_text(TRIAL)
    return {entry.kernel.name: entry for entry in catalogue(["sm_90"], folder, folder / "cache")}


def complaints_of(entry):
    return " ".join(complaints(entry.kernel, entry.family, Budget(255, 228 * 1024, {})))


@pytest.mark.parametrize(
    "name", ["histogram_words", "histogram_counts", "other_static_shared", "other_as_written", "other_division"]
)
def test_a_kernel_within_the_rules_passes(trial, name):
    assert complaints_of(trial[name]) == ""


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("histogram_floats", "loop of compare and swap"),
        ("histogram_longs", "loop of compare and swap"),
        ("histogram_without_atomics", "no shared atomic"),
        ("other_local_array", "local memory"),
        ("other_block", "blocks of 128"),
        ("other_fused", "fma.rn.f64"),
        ("other_approximate", "approx"),
        ("other_float_sum", "add.f32"),
    ],
)
def test_a_kernel_that_breaks_a_gate_is_told(trial, name, complaint):
    assert complaint in complaints_of(trial[name])


def test_a_division_is_expanded_with_fused_multiply_adds_and_nothing_else_is(trial):
    assert trial["other_division"].kernel.divisions == 1
    assert trial["other_division"].kernel.instructions["DFMA"] > 0
    assert trial["other_as_written"].kernel.instructions == {}


def test_resources_are_read(trial):
    entry = trial["other_static_shared"]
    assert entry.shared == 4096
    assert 0 < entry.kernel.registers <= 64
    assert trial["histogram_words"].shared == 1024


def test_the_budget_names_what_is_over_it(trial):
    entry = trial["other_static_shared"]
    tight = budget_for(entry.family, [entry.kernel])
    assert complaints(entry.kernel, entry.family, tight) == []
    (registers,) = complaints(entry.kernel, entry.family, Budget(entry.kernel.registers - 1, tight.shared, {}))
    (shared,) = complaints(entry.kernel, entry.family, Budget(tight.registers, 4095, {}))
    (absent,) = complaints(entry.kernel, entry.family, None)
    assert f"{entry.kernel.registers} registers" in registers
    assert "4096 shared" in shared
    assert "no [other]" in absent


def test_a_budget_file_says_what_it_implies(trial, tmp_path):
    entries = [entry for entry in trial.values() if complaints_of(entry) == ""]
    budgets = tightest_budgets(entries)
    write_budgets(budgets, tmp_path / "budget.toml")
    assert read_budgets(tmp_path / "budget.toml") == budgets
    assert all_complaints(entries, budgets) == []
    wrong = budgets | {"other": Budget(budgets["other"].registers, budgets["other"].shared, {"sm_90": 1})}
    assert "implies" in " ".join(all_complaints(entries, wrong))
    assert "no kernel is of that name" in " ".join(all_complaints(entries, budgets | {"gone": budgets["other"]}))


def test_findings_are_kept_until_a_source_changes(tmp_path):
    (tmp_path / "all.cuh").write_text('extern "C" __global__ void first() {}')
    cache = tmp_path / "cache"
    assert [kernel.name for kernel in compiled_kernels("sm_90", tmp_path, cache)] == ["first"]
    (kept,) = cache.glob("*.json")
    kept.write_text(kept.read_text().replace("first", "kept"))
    assert [kernel.name for kernel in compiled_kernels("sm_90", tmp_path, cache)] == ["kept"]
    (tmp_path / "all.cuh").write_text('extern "C" __global__ void second() {}')
    assert [kernel.name for kernel in compiled_kernels("sm_90", tmp_path, cache)] == ["second"]


def test_a_cache_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "all.cuh").write_text('extern "C" __global__ void first() {}')
    cache = tmp_path / "all.cuh" / "cache"
    assert [kernel.name for kernel in compiled_kernels("sm_90", tmp_path, cache)] == ["first"]


def test_what_does_not_compile_is_refused_with_the_line():
    with pytest.raises(ToolchainError, match=r"sm_90(.|\n)*dyno\.cu\(2\)(.|\n)*nothing"):
        compile_program("\nnothing here;", "sm_90", ())


def test_a_missing_package_is_named_with_the_command_that_brings_it():
    with pytest.raises(ToolchainError, match="pip install nvidia-cuda-nvrtc nvidia-cuda-nvdisasm"):
        _installed("nvidia-cuda-of-another-planet", "*")


# ---- headers ---------------------------------------------------------------------------------------------------------


def test_the_longest_prefix_that_ends_with_a_word_is_the_family():
    families = [Family(prefix, "a.cuh", 1, 0, "none", None) for prefix in ("find", "find_level", "fin")]
    assert family_of("find_u8", families).prefix == "find"
    assert family_of("find_level_u8", families).prefix == "find_level"
    assert family_of("find_level", families).prefix == "find_level"
    with pytest.raises(HeaderError, match="finder is in no header"):
        family_of("finder", families)


@pytest.mark.parametrize("lacking", ["Block", "Bytes per row"])
def test_a_header_without_a_line_is_refused(tmp_path, lacking):
    lines = {"Kernels": "sum", "Block": "32", "Bytes per row": "none"}
    del lines[lacking]
    (tmp_path / "sum.cuh").write_text("".join(f"// {name}: {value}\n" for name, value in lines.items()))
    with pytest.raises(HeaderError, match=f"sum.cuh: the header of sum lacks '// {lacking}:'"):
        read_families(tmp_path)


# ---- occupancy -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "block", "registers", "shared", "blocks"),
    [
        ("sm_80", 256, 32, 0, 8),  # by warps: 64
        ("sm_80", 256, 64, 0, 4),  # by registers: 2048 a warp, 8 warps in each sub-partition
        ("sm_80", 256, 65, 0, 3),  # 72 a thread once rounded: 7 warps in each sub-partition
        ("sm_80", 32, 16, 0, 32),  # by blocks
        ("sm_86", 1024, 32, 0, 1),  # by warps: 48
        ("sm_90", 256, 32, 48 * 1024, 4),  # by shared memory: 228 KB in shares of 49
        ("sm_75", 256, 32, 48 * 1024, 1),  # no KB is kept there, 64 KB hold one
        ("sm_120", 512, 32, 100 * 1024, 0),  # 99 KB a block at most
        ("sm_90", 1024, 80, 0, 0),  # more than 65,536 registers a block
    ],
)
def test_resident_blocks(arch, block, registers, shared, blocks):
    assert resident_blocks(arch, block, registers, shared) == blocks
    assert occupancy(arch, block, registers, shared) == 100 * blocks * (block // 32) // LIMITS[arch].warps


# ---- the kernels of the engine --------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", LIMITS)
def test_every_kernel_compiles_within_the_gates(arch):
    entries = catalogue([arch])
    assert entries
    assert all_complaints(entries) == []


def test_every_family_of_a_header_has_a_kernel():
    entries = catalogue(["sm_90"])
    assert {family.prefix for family in read_families(source_folder())} == {entry.family.prefix for entry in entries}


def test_the_command_prints_what_the_compiler_said():
    done = CliRunner().invoke(app, ["kernels", "--arch", "sm_90", "--json"])
    assert done.exit_code == 0, done.output
    table = json.loads(done.stdout)
    assert {row["arch"] for row in table} == {"sm_90"}
    build = next(row for row in table if row["kernel"].startswith("build_tile"))
    assert build["occupancy"] == implied_occupancy(build["block"], build["registers"], build["shared"])["sm_90"]


def test_the_command_refuses_an_architecture_that_it_does_not_know():
    done = CliRunner().invoke(app, ["kernels", "--arch", "sm_10"])
    assert done.exit_code == 2
    assert "choose from sm_75" in done.output
