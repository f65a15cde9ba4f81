// Histograms of the nodes on the build lists: exact sums of their rows' quantised gradients by feature and bin.
//
// clear_cells  zeroes the slots that are about to be summed into.
// build_tile   takes large nodes. A block sums one chunk of a node's rows for one group of features in shared memory,
//              then adds the sums to the node's slot. One thread takes one row: its strip of 16 bins is one aligned
//              load (two for 16-bit bins), and bin b lies on bank b mod 32.
//              A wide sum is a low word, whose atomic add tells the carry, and a high word that is touched only when
//              there is something to add. A low word of gradients starts at 2^31, so that a sum about zero does not
//              keep crossing between words.
// build_direct takes nodes too small to clear a tile for: sixteen lanes take a row, one feature each.
//
// Grids are persistent: blocks walk the list. Order-free: integer sums, exact in any order.
// 64-bit atomics go to global memory only: as many as a chunk has cells that are not zero, or the direct rows' cells.
//
// Kernels: clear_cells
// Block: 256
// Bytes per row: none
//
// Kernels: build_tile
// Block: 512
// Shared: 49152
// Bytes per row: read n_groups * (16 * bin_bytes + 12), written 0
// Atomics per cell: 2
//
// Kernels: build_direct
// Block: 256
// Bytes per row: read n_tiles * (16 * bin_bytes + 12), written 0
#pragma once

#include "histogram.cuh"
#include "items.cuh"

namespace dyno {

// ---- clearing -----------------------------------------------------------------------------------------------------

constexpr u64 CLEAR_CELLS = 2048;  // at a time

DYNO_KERNEL(clear_cells, FitState, GROW_BLOCK) {
    const u32 n_parts = static_cast<u32>((state->slot_cells + CLEAR_CELLS - 1) / CLEAR_CELLS);
    const i64 n_work = static_cast<i64>(state->n_searches) * n_parts;
    for (i64 work = block(); work < n_work; work += grid_size()) {
        const i32 slot = state->nodes[state->searches[work / n_parts].built].slot;
        const u64 begin = static_cast<u64>(work % n_parts) * CLEAR_CELLS;
        const u64 end = begin + CLEAR_CELLS < state->slot_cells ? begin + CLEAR_CELLS : state->slot_cells;
        u64* cells = cells_of(*state, slot, 0);
        for (u64 cell = begin + thread(); cell < end; cell += block_size()) cells[cell] = 0;
    }
}

// ---- a row's bins -------------------------------------------------------------------------------------------------

struct alignas(16) Words {
    u32 at[4];
};

template <class Bin>
struct Strip {
    Words words[sizeof(Bin)];
};

template <class Bin>
DYNO_FN Strip<Bin> load_strip(const FitState& fit, u32 tile, u32 row) {
    return static_cast<const Strip<Bin>*>(fit.tiles.address)[static_cast<i64>(tile) * fit.n_rows + row];
}

// Of the feature at `position`, which the compiler knows.
template <class Bin>
DYNO_FN u32 bin_at(const Strip<Bin>& strip, u32 position) {
    constexpr u32 bits = 8 * sizeof(Bin), a_word = 32 / bits;
    const u32 word = position / a_word;
    return (strip.words[word / 4].at[word % 4] >> (bits * (position % a_word))) & ((1u << bits) - 1);
}

// ---- the shared tile ----------------------------------------------------------------------------------------------

constexpr u32 LOW_START = 0x80000000u;

DYNO_FN constexpr u32 words_of(Layout layout) { return layout == Layout::count ? 3 : layout == Layout::pair ? 4 : 5; }

// Features of one tile whose cells lie in shared memory together.
struct Group {
    u32 tile;
    u32 begin;      // positions in the tile
    u32 end;
    u32 first_bin;  // of its cells in a plane
    u32 n_bins;
};

DYNO_FN Group group_at(const FitState& fit, u32 number) {
    const u32 first = number * fit.group_width;
    const u32 features = static_cast<u32>(fit.n_features);
    const u32 last = first + fit.group_width < features ? first + fit.group_width : features;
    const u32 tile = first / TILE_WIDTH;
    const u32 bin = fit.first_bin[first];
    return {tile, first - tile * TILE_WIDTH, last - tile * TILE_WIDTH, bin, fit.first_bin[last] - bin};
}

DYNO_DEVICE void add_wide(u32* low, u32* high, i32 value) {
    const u32 bits = static_cast<u32>(value);
    const u32 before = atomic_add(low, bits);
    const u32 carry = before + bits < before ? 1u : 0u;
    const u32 more = (value < 0 ? 0xffffffffu : 0u) + carry;
    if (more != 0) atomic_add(high, more);
}

template <Layout layout>
DYNO_DEVICE void add_cell(u32* cell, u32 n_bins, const QuantisedPair& pair) {
    add_wide(cell, cell + n_bins, pair.g);
    if (layout == Layout::count) {
        atomic_add(cell + 2 * n_bins, 1u);
    } else {
        add_wide(cell + 2 * n_bins, cell + 3 * n_bins, pair.h);
        if (layout == Layout::counted) atomic_add(cell + 4 * n_bins, 1u);
    }
}

template <Layout layout>
DYNO_DEVICE void start_tile(u32* cells, u32 n_bins) {
    for (u32 i = thread(); i < words_of(layout) * n_bins; i += block_size()) cells[i] = i < n_bins ? LOW_START : 0;
}

template <class Bin, Layout layout>
DYNO_DEVICE void add_rows(const FitState& fit, const BuildItem& item, const Group& group, u32* cells) {
    u32 offset[TILE_WIDTH];
    DYNO_UNROLL
    for (u32 position = 0; position < TILE_WIDTH; ++position) {
        const bool inside = group.begin <= position && position < group.end;
        offset[position] = inside ? fit.first_bin[group.tile * TILE_WIDTH + position] - group.first_bin : 0;
    }
    for (u32 at = item.begin + thread(); at < item.end; at += block_size()) {
        const QuantisedPair pair = fit.pairs[item.buffer][at];
        const Strip<Bin> strip = load_strip<Bin>(fit, group.tile, fit.rows[item.buffer][at]);
        DYNO_UNROLL
        for (u32 position = 0; position < TILE_WIDTH; ++position) {
            if (position < group.begin || position >= group.end) continue;
            add_cell<layout>(cells + offset[position] + bin_at(strip, position), group.n_bins, pair);
        }
    }
}

DYNO_FN u64 joined(u32 low, u32 high) { return static_cast<u64>(high) << 32 | low; }

DYNO_DEVICE void add_unless_zero(u64* cell, u64 sum) {
    if (sum != 0) atomic_add(cell, sum);
}

template <Layout layout>
DYNO_DEVICE void flush_tile(const FitState& fit, i32 slot, const Group& group, const u32* cells) {
    const u32 n = group.n_bins;
    u64* to = cells_of(fit, slot, group.first_bin);
    for (u32 bin = thread(); bin < n; bin += block_size()) {
        add_unless_zero(to + bin, joined(cells[bin], cells[n + bin]) - LOW_START);
        const u32 h_low = cells[2 * n + bin];
        add_unless_zero(to + fit.n_bins + bin, layout == Layout::count ? h_low : joined(h_low, cells[3 * n + bin]));
        if (layout == Layout::counted) add_unless_zero(to + 2 * static_cast<u64>(fit.n_bins) + bin, cells[4 * n + bin]);
    }
}

template <class Bin, Layout layout>
DYNO_DEVICE void build_tile(const FitState& fit) {
    u32* cells = shared<u32>(0);
    const i64 n_work = static_cast<i64>(fit.n_build_items) * fit.n_groups;
    for (i64 work = block(); work < n_work; work += grid_size()) {
        const BuildItem item = fit.build_items[work / fit.n_groups];
        const Group group = group_at(fit, static_cast<u32>(work % fit.n_groups));
        start_tile<layout>(cells, group.n_bins);
        sync_block();
        add_rows<Bin, layout>(fit, item, group, cells);
        sync_block();
        flush_tile<layout>(fit, item.slot, group, cells);
        sync_block();
    }
}

// ---- straight to global memory ------------------------------------------------------------------------------------

template <class Bin, Layout layout>
DYNO_DEVICE void add_directly(const FitState& fit, const BuildItem& item, u32 feature, u32 position) {
    const Bin* strips = static_cast<const Bin*>(fit.tiles.address) + static_cast<i64>(feature - position) * fit.n_rows;
    u64* cells = cells_of(fit, item.slot, fit.first_bin[feature]);
    for (u32 at = item.begin + thread() / TILE_WIDTH; at < item.end; at += block_size() / TILE_WIDTH) {
        const QuantisedPair pair = fit.pairs[item.buffer][at];
        const i64 row = fit.rows[item.buffer][at];
        u64* cell = cells + strips[row * TILE_WIDTH + position];
        atomic_add(cell, static_cast<u64>(static_cast<i64>(pair.g)));
        atomic_add(cell + fit.n_bins, static_cast<u64>(layout == Layout::count ? 1 : pair.h));
        if (layout == Layout::counted) atomic_add(cell + 2 * static_cast<u64>(fit.n_bins), u64{1});
    }
}

template <class Bin, Layout layout>
DYNO_DEVICE void build_direct(const FitState& fit) {
    const u32 n_tiles = (static_cast<u32>(fit.n_features) + TILE_WIDTH - 1) / TILE_WIDTH;
    const u32 position = thread() % TILE_WIDTH;
    const i64 n_work = static_cast<i64>(fit.n_direct_items) * n_tiles;
    for (i64 work = block(); work < n_work; work += grid_size()) {
        const u32 feature = static_cast<u32>(work % n_tiles) * TILE_WIDTH + position;
        if (feature < static_cast<u32>(fit.n_features))
            add_directly<Bin, layout>(fit, fit.direct_items[work / n_tiles], feature, position);
    }
}

#define DYNO_BUILD_KERNELS(bins, Bin, layout)                                                                    \
    DYNO_KERNEL(build_tile_##bins##_##layout, FitState, BUILD_BLOCK) { build_tile<Bin, Layout::layout>(*state); } \
    DYNO_KERNEL(build_direct_##bins##_##layout, FitState, GROW_BLOCK) { build_direct<Bin, Layout::layout>(*state); }

DYNO_BUILD_KERNELS(u8, unsigned char, count)
DYNO_BUILD_KERNELS(u8, unsigned char, pair)
DYNO_BUILD_KERNELS(u8, unsigned char, counted)
DYNO_BUILD_KERNELS(u16, unsigned short, count)
DYNO_BUILD_KERNELS(u16, unsigned short, pair)
DYNO_BUILD_KERNELS(u16, unsigned short, counted)

}  // namespace dyno
