// Lists written by one block in a fixed order: where each thread's entries go is an exclusive prefix sum.
//
// Uses shared memory [0 .. LIST_SHARED). Every thread of the block calls; block_size() is a multiple of 32.
#pragma once

#include "portable.cuh"

namespace dyno {

constexpr u32 LIST_SHARED = 33 * 4;

// Inclusive prefix sum over the lanes of a warp.
template <class T>
DYNO_DEVICE T prefix_warp(T value) {
    for (u32 distance = 1; distance < WARP_SIZE; distance *= 2) {
        const T below = shuffle_up(WHOLE_WARP, value, distance);
        if (lane() >= distance) value += below;
    }
    return value;
}

// What the threads before this one have, and in `total` what all of them have.
DYNO_DEVICE u32 prefix_block(u32 value, u32& total) {
    u32* of_warp = shared<u32>(0);
    const u32 n_warps = block_size() / WARP_SIZE;
    const u32 inclusive = prefix_warp(value);
    if (lane() == WARP_SIZE - 1) of_warp[warp()] = inclusive;
    sync_block();
    if (warp() == 0) {
        const u32 sums = prefix_warp(lane() < n_warps ? of_warp[lane()] : 0u);
        sync_warp(WHOLE_WARP);
        of_warp[lane() + 1] = sums;
        if (lane() == 0) of_warp[0] = 0;
    }
    sync_block();
    const u32 before = of_warp[warp()] + inclusive - value;
    total = of_warp[n_warps];
    sync_block();  // before the next call writes
    return before;
}

DYNO_DEVICE u32 sum_block(u32 value) {
    u32 total;
    prefix_block(value, total);
    return total;
}

// What thread 0 has, for all.
template <class T>
DYNO_DEVICE T broadcast_block(T value) {
    T* common = shared<T>(0);
    if (thread() == 0) *common = value;
    sync_block();
    const T result = *common;
    sync_block();
    return result;
}

// Calls entry(i, place, size) for i in [0 .. n), `place` being the sum of size(j) over j < i. Returns the whole sum.
// Each i is one thread's; all threads take part in the prefix sums.
template <class Size, class Entry>
DYNO_DEVICE u32 for_each_placed(u32 n, Size&& size, Entry&& entry) {
    u32 placed = 0;
    for (u32 first = 0; first < n; first += block_size()) {
        const u32 i = first + thread();
        const u32 own = i < n ? size(i) : 0;
        u32 total;
        const u32 before = prefix_block(own, total);
        if (i < n) entry(i, placed + before, own);
        placed += total;
    }
    return placed;
}

}  // namespace dyno
