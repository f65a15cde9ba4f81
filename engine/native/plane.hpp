// A data set's bins as the native backend keeps them: row-major for histograms, column-major for partition.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "aligned_bytes.hpp"
#include "semantics.cuh"

namespace dyno {

struct Plane {
    i64 n_rows = 0;
    i32 n_features = 0;
    bool wide = false;            // bins are uint16, else uint8
    i64 row_stride = 0;           // elements from one row to the next in `rows`
    i64 column_stride = 0;        // elements from one column to the next in `columns`
    std::vector<i32> value_bins;  // per feature; its missing bin is value_bins[f]
    AlignedBytes rows;            // n_rows x row_stride
    AlignedBytes columns;         // n_features x column_stride

    // Storage for the bins, not yet filled. A row is padded a little, so that it starts few cache lines;
    // what the padding holds is never looked at.
    static Plane allocate(i64 n_rows, std::vector<i32> value_bins, bool wide) {
        Plane plane;
        plane.n_rows = n_rows;
        plane.n_features = static_cast<i32>(value_bins.size());
        plane.wide = wide;
        plane.value_bins = std::move(value_bins);
        const i64 width = wide ? 2 : 1;
        plane.row_stride = padded_row(plane.n_features * width) / width;
        plane.column_stride = (n_rows * width + 63) / 64 * 64 / width;
        plane.rows = AlignedBytes(static_cast<std::size_t>(n_rows * plane.row_stride * width));
        plane.columns = AlignedBytes(static_cast<std::size_t>(plane.n_features * plane.column_stride * width));
        return plane;
    }

    i64 bytes() const { return static_cast<i64>(rows.size() + columns.size()); }

    template <class Bin>
    const Bin* row(i64 i) const {
        return reinterpret_cast<const Bin*>(rows.data()) + i * row_stride;
    }
    template <class Bin>
    Bin* row(i64 i) {
        return reinterpret_cast<Bin*>(rows.data()) + i * row_stride;
    }
    template <class Bin>
    const Bin* column(i32 f) const {
        return reinterpret_cast<const Bin*>(columns.data()) + f * column_stride;
    }
    template <class Bin>
    Bin* column(i32 f) {
        return reinterpret_cast<Bin*>(columns.data()) + f * column_stride;
    }

private:
    // Bytes: a multiple of as large a power of two as adds little, so that a row starts few cache lines.
    static i64 padded_row(i64 bytes) {
        for (i64 multiple = 32; multiple > 1; multiple /= 2) {
            const i64 padded = (bytes + multiple - 1) / multiple * multiple;
            if (padded - bytes <= bytes / 12) return padded;
        }
        return bytes;
    }
};

}  // namespace dyno
