// A caller's feature column as a kernel sees it: a chunk that was uploaded, or the caller's own memory on the device,
// at its own width and stride.
#pragma once

#include "portable.cuh"
#include "semantics.cuh"

namespace dyno {

struct RawColumn {
    u64 address;    // of the chunk's first row
    i32 stride;     // bytes from one row to the next
    u32 is_double;  // float64, else float32
};

DYNO_FN u64 raw_address(const RawColumn& column, i64 row) {
    return column.address + static_cast<u64>(row * column.stride);
}

// A value, promoted exactly.
DYNO_FN double raw_value(const RawColumn& column, i64 row) {
    const u64 address = raw_address(column, row);
    if (column.is_double) return *reinterpret_cast<const double*>(address);
    return static_cast<double>(*reinterpret_cast<const float*>(address));
}

}  // namespace dyno
