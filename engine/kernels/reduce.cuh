// One value out of every thread's: the whole block's, by an operation whose order does not matter.
#pragma once

#include "portable.cuh"

namespace dyno {

struct Largest {
    DYNO_DEVICE u32 operator()(u32 a, u32 b) const { return a > b ? a : b; }
};

struct Sum {
    DYNO_DEVICE i64 operator()(i64 a, i64 b) const { return a + b; }
};

// Every thread calls; thread 0 gets the result. Uses shared memory [0 .. 8 bytes a warp).
template <class Value, class Operation>
DYNO_DEVICE Value reduce_block(Value value, Operation combine) {
    Value* of_warp = shared<Value>(0);
    for (u32 bit = WARP_SIZE / 2; bit > 0; bit /= 2) value = combine(value, shuffle_xor(WHOLE_WARP, value, bit));
    sync_block();  // the last result has been read
    if (lane() == 0) of_warp[warp()] = value;
    sync_block();
    if (thread() == 0) {
        for (u32 other = 1; other < block_size() / WARP_SIZE; ++other) value = combine(value, of_warp[other]);
    }
    return value;
}

}  // namespace dyno
