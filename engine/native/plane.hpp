// A data set's bins as the native backend keeps them: row-major for histograms, column-major for partition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "semantics.cuh"

namespace dyno {

// 64-byte aligned, uninitialised storage.
class AlignedBytes {
public:
    AlignedBytes() = default;
    explicit AlignedBytes(std::size_t size) : size_(size) {
        void* raw = std::aligned_alloc(64, (size + 127) / 64 * 64);  // 64 bytes of slack: vector loads may run over
        if (raw == nullptr) throw std::bad_alloc();
        data_.reset(static_cast<std::byte*>(raw));
    }
    std::byte* data() { return data_.get(); }
    const std::byte* data() const { return data_.get(); }
    std::size_t size() const { return size_; }

private:
    struct Free {
        void operator()(std::byte* p) const { std::free(p); }
    };
    std::unique_ptr<std::byte, Free> data_;
    std::size_t size_ = 0;
};

struct Plane {
    i64 n_rows = 0;
    i32 n_features = 0;
    bool wide = false;              // bins are uint16, else uint8
    i64 row_stride = 0;             // elements from one row to the next in `rows`
    i64 column_stride = 0;          // elements from one column to the next in `columns`
    std::vector<i32> value_bins;    // per feature; its missing bin is value_bins[f]
    AlignedBytes rows;              // n_rows x row_stride
    AlignedBytes columns;           // n_features x column_stride

    template <class Bin>
    const Bin* row(i64 i) const { return reinterpret_cast<const Bin*>(rows.data()) + i * row_stride; }
    template <class Bin>
    const Bin* column(i32 f) const { return reinterpret_cast<const Bin*>(columns.data()) + f * column_stride; }
};

}  // namespace dyno
