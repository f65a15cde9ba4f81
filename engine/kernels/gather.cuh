// Columns of a caller's matrix, whatever its strides, side by side for the way to the host.
//
// One thread takes one value at a time, bit by bit as it is; any grid will do. Order-free: nothing is shared.
//
// Kernels: gather
// Block: 256
// Bytes per row: read columns * value_bytes, written columns * value_bytes
#pragma once

#include "items.cuh"
#include "raw.cuh"

namespace dyno {

struct GatherState {
    const RawColumn* columns;  // all float32 or all float64
    u64 values;                // value of row r and column c at c * n_rows + r
    i64 n_rows;
    i64 n_columns;
};

template <class Word>
DYNO_DEVICE void gather_words(const GatherState& state) {
    Word* values = reinterpret_cast<Word*>(state.values);
    for (i64 item = first_item(); item < state.n_rows * state.n_columns; item += item_stride())
        values[item] = *reinterpret_cast<const Word*>(raw_address(state.columns[item / state.n_rows], item % state.n_rows));
}

DYNO_KERNEL(gather, GatherState, ROW_BLOCK) {
    if (state->columns[0].is_double) gather_words<u64>(*state);
    else gather_words<u32>(*state);
}

}  // namespace dyno
