// How independent items, mostly rows, are shared out among all threads of a launch: any grid will do.
#pragma once

#include "portable.cuh"

namespace dyno {

constexpr u32 ROW_BLOCK = 256;  // threads of every kernel that takes rows one by one

// for (i64 item = first_item(); item < n; item += item_stride())
DYNO_DEVICE i64 first_item() { return static_cast<i64>(block()) * block_size() + thread(); }
DYNO_DEVICE i64 item_stride() { return static_cast<i64>(grid_size()) * block_size(); }

}  // namespace dyno
