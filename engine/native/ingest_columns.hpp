// The caller's feature columns, borrowed as they lie, and read a tile at a time as order keys.
#pragma once

#include <Python.h>
#include <nanobind/nanobind.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "semantics.cuh"

namespace dyno {

// One feature's values: float64 if is_double, else float32, `stride` bytes apart (any sign, or 0).
struct Column {
    const std::byte* data;
    i64 stride;
    bool is_double;

    template <class Value>
    const Value* at(i64 row) const { return reinterpret_cast<const Value*>(data + row * stride); }
};

// Borrows one-dimensional aligned float32 or float64 arrays by the buffer protocol. Made and destroyed with the GIL.
class BorrowedColumns {
public:
    explicit BorrowedColumns(const nanobind::sequence& arrays) {
        const std::size_t count = nanobind::len(arrays);
        buffers_.reserve(count);
        columns_.reserve(count);
        try {
            for (nanobind::handle array : arrays) borrow(array);
        } catch (...) {
            release();
            throw;
        }
    }
    ~BorrowedColumns() { release(); }
    BorrowedColumns(const BorrowedColumns&) = delete;
    BorrowedColumns& operator=(const BorrowedColumns&) = delete;

    const std::vector<Column>& columns() const { return columns_; }
    i64 n_rows() const { return buffers_.empty() ? 0 : buffers_.front().shape[0]; }

private:
    void borrow(nanobind::handle array) {
        buffers_.emplace_back();
        Py_buffer& view = buffers_.back();
        if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
            buffers_.pop_back();
            throw nanobind::python_error();
        }
        const bool is_float = std::strcmp(view.format, "f") == 0, is_double = std::strcmp(view.format, "d") == 0;
        if (view.ndim != 1 || !(is_float || is_double) || view.shape[0] != n_rows()) {
            throw std::invalid_argument("columns must be one-dimensional float32 or float64 arrays of one length");
        }
        columns_.push_back({static_cast<const std::byte*>(view.buf), view.strides[0], is_double});
    }
    void release() {
        for (Py_buffer& view : buffers_) PyBuffer_Release(&view);
        buffers_.clear();
    }

    std::vector<Py_buffer> buffers_;
    std::vector<Column> columns_;
};

// ---- keys ------------------------------------------------------------------------------------------------------

template <class Value>
using KeyOf = std::conditional_t<sizeof(Value) == 4, u32, u64>;

template <class Key>
using ValueOf = std::conditional_t<sizeof(Key) == 4, float, double>;

// Above the key of every number: NaN, then what pads a table of cuts.
template <class Key>
constexpr Key MISSING_KEY = static_cast<Key>(-2);
template <class Key>
constexpr Key PADDING_KEY = static_cast<Key>(-1);

// The order key of the value with these bits, or MISSING_KEY.
template <class Key>
inline Key key_of_bits(Key bits) {
    const auto value = std::bit_cast<ValueOf<Key>>(bits);
    return value != value ? MISSING_KEY<Key> : order_key(value);
}

// The value of an order key, promoted.
inline double value_of(u64 key) { return double_of((key >> 63) ? key ^ 0x8000000000000000ull : ~key); }
inline double value_of(u32 key) {
    return static_cast<double>(std::bit_cast<float>((key >> 31) ? key ^ 0x80000000u : ~key));
}

// ---- tiles -------------------------------------------------------------------------------------------------------

// So many neighbouring float32 features of a row-major matrix fill a cache line; so many rows of them stay in L1.
constexpr int GROUP_FEATURES = 16;
constexpr int TILE_ROWS = 256;

// Features read together, all of one type.
struct Group {
    int first;
    int count;
};

// Neighbouring features of one type, at most `limit` (<= GROUP_FEATURES) together.
inline std::vector<Group> make_groups(const std::vector<Column>& columns, int limit = GROUP_FEATURES) {
    std::vector<Group> groups;
    for (int f = 0; f < static_cast<int>(columns.size()); ++f) {
        const bool fits = !groups.empty() && groups.back().count < limit &&
                          columns[f].is_double == columns[groups.back().first].is_double;
        if (fits) ++groups.back().count;
        else groups.push_back({f, 1});
    }
    return groups;
}

// Are these columns a strip of a row-major matrix?
template <class Value>
bool is_strip(const Column* columns, int count) {
    for (int f = 1; f < count; ++f) {
        if (columns[f].stride != columns[0].stride) return false;
        if (columns[f].data - columns[0].data != static_cast<std::ptrdiff_t>(f * sizeof(Value))) return false;
    }
    return count > 1;
}

// Keys of rows row_at(0) .. row_at(count - 1): column f's go to keys + f * pitch. The bits are copied first, so that
// the compiler turns them into keys by whole vectors.
template <class Value, class RowAt>
void load_keys(const Column* columns, int n_columns, i64 count, const RowAt& row_at, KeyOf<Value>* keys, i64 pitch) {
    if (is_strip<Value>(columns, n_columns)) {
        for (i64 i = 0; i < count; ++i) {
            const Value* row = columns[0].at<Value>(row_at(i));
            for (int f = 0; f < n_columns; ++f) keys[f * pitch + i] = bits_of(row[f]);
        }
    } else {
        for (int f = 0; f < n_columns; ++f) {
            for (i64 i = 0; i < count; ++i) keys[f * pitch + i] = bits_of(*columns[f].at<Value>(row_at(i)));
        }
    }
    for (int f = 0; f < n_columns; ++f) {
        KeyOf<Value>* own = keys + f * pitch;
        for (i64 i = 0; i < count; ++i) own[i] = key_of_bits(own[i]);
    }
}

template <class Value>
void load_tile(const Column* columns, int n_columns, i64 begin, i64 count, KeyOf<Value>* keys) {
    load_keys<Value>(columns, n_columns, count, [begin](i64 i) { return begin + i; }, keys, TILE_ROWS);
}

}  // namespace dyno
