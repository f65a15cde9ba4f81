// Bins of a chunk of raw values (contract §3), written twice: as strips of 16 features a row, which histograms read,
// and column-major, which partition and routing read.
//
// One thread takes one row of one feature tile. A value's bin is found by halving over order keys; all threads of a
// block look into the same feature's cuts and take the same number of steps, so no search diverges.
// Work items are (tile, block of rows); any grid will do. Order-free: every bin is written once, by one thread.
//
// Kernels: bin
// Block: 256
// Bytes per row: read features * value_bytes, written (features + 16 * tiles) * bin_bytes
//
// Kernels: key_cuts
// Block: 256
// Bytes per row: none
#pragma once

#include "items.cuh"
#include "raw.cuh"
#include "state.cuh"

namespace dyno {

struct IngestState {
    const RawColumn* columns;  // the chunk's features
    u64* keys;                 // all features' cuts, one after the other: float64, then (key_cuts) their order keys
    const i64* offsets;        // feature f owns keys[offsets[f] .. offsets[f + 1])
    const i32* value_bins;     // by feature; also the number of its missing bin
    u64 tiles;                 // the plane, see docs/device.md §3
    u64 bins;
    i64 n_rows;  // of the plane
    i64 n_cuts;
    i64 first_row;  // of the chunk
    i64 n_chunk_rows;
    i32 first_feature;  // of the chunk; a multiple of TILE_WIDTH
    i32 n_chunk_features;
};

// The number of sorted keys <= `key`.
DYNO_FN u32 count_not_above(const u64* keys, u32 n_keys, u64 key) {
    u32 position = 0;
    for (u32 left = n_keys; left > 0;) {
        const u32 half = (left + 1) / 2;
        position += keys[position + half - 1] <= key ? half : 0;
        left -= half;
    }
    return position;
}

DYNO_FN u32 bin_of(const IngestState& state, i32 feature, double value) {
    const i64 begin = state.offsets[feature], end = state.offsets[feature + 1];
    const u32 bin = count_not_above(state.keys + begin, static_cast<u32>(end - begin), order_key(value));
    return value != value ? static_cast<u32>(state.value_bins[feature]) : bin;
}

// The bins of one row and tile, stored as whole vectors.
template <class Bin>
struct alignas(TILE_WIDTH * sizeof(Bin)) BinStrip {
    u32 words[TILE_WIDTH * sizeof(Bin) / 4];
};

// `row` counts from the chunk's first row, `tile` from its first feature.
template <class Bin>
DYNO_FN void bin_strip(const IngestState& state, i32 tile, i64 row) {
    constexpr u32 PER_WORD = 4 / sizeof(Bin);
    BinStrip<Bin> strip;
    Bin* columns = reinterpret_cast<Bin*>(state.bins);
    const i64 plane_row = state.first_row + row;
    DYNO_UNROLL
    for (u32 word = 0; word < TILE_WIDTH / PER_WORD; ++word) {
        strip.words[word] = 0;
        DYNO_UNROLL
        for (u32 place = 0; place < PER_WORD; ++place) {
            const i32 own = static_cast<i32>(tile * TILE_WIDTH + word * PER_WORD + place);
            if (own < state.n_chunk_features) {
                const i32 feature = state.first_feature + own;
                const u32 bin = bin_of(state, feature, raw_value(state.columns[own], row));
                columns[feature * state.n_rows + plane_row] = static_cast<Bin>(bin);
                strip.words[word] |= bin << (place * 8 * sizeof(Bin));
            }
        }
    }
    const i64 plane_tile = state.first_feature / TILE_WIDTH + tile;
    reinterpret_cast<BinStrip<Bin>*>(state.tiles)[plane_tile * state.n_rows + plane_row] = strip;
}

template <class Bin>
DYNO_DEVICE void bin_chunk(const IngestState& state) {
    const i64 n_tiles = (state.n_chunk_features + TILE_WIDTH - 1) / TILE_WIDTH;
    const i64 n_row_blocks = (state.n_chunk_rows + block_size() - 1) / block_size();
    for (i64 item = block(); item < n_tiles * n_row_blocks; item += grid_size()) {
        const i64 row = item % n_row_blocks * block_size() + thread();
        if (row < state.n_chunk_rows) bin_strip<Bin>(state, static_cast<i32>(item / n_row_blocks), row);
    }
}

DYNO_KERNEL(bin_u8, IngestState, ROW_BLOCK) { bin_chunk<unsigned char>(*state); }
DYNO_KERNEL(bin_u16, IngestState, ROW_BLOCK) { bin_chunk<unsigned short>(*state); }

// Turns the cuts into their order keys, in place.
DYNO_KERNEL(key_cuts, IngestState, ROW_BLOCK) {
    for (i64 cut = first_item(); cut < state->n_cuts; cut += item_stride())
        state->keys[cut] = order_key(double_of(state->keys[cut]));
}

}  // namespace dyno
