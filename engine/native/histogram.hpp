// Histograms: exact integer sums of quantised gradients by feature and bin (contract §6).
//
// A cell is one, two or three 64-bit words:
//   1  packed: gradient sum above, row count below; for a constant hessian and fewer than kPackedRows rows
//   2  gradient sum, then hessian sum (or the row count, for a constant hessian)
//   3  gradient sum, hessian sum, row count; only where a rule needs the count beside a varying hessian
// One packed word halves the memory that a level must read and write, and costs no bit.
#pragma once

#include <array>
#include <vector>

#include "gradients.hpp"
#include "nodes.hpp"
#include "plane.hpp"

namespace dyno {

constexpr int kCountBits = 18;
constexpr i64 kPackedRows = i64{1} << (kCountBits - 1);  // |sum of g| <= 2^17 * 2^28 leaves the sign bit its place
constexpr i64 kCountMask = (i64{1} << kCountBits) - 1;

inline i64 packed_row(i64 g) { return g * (kCountMask + 1) + 1; }
inline i64 packed_gradient(i64 word) { return word >> kCountBits; }
inline i64 packed_count(i64 word) { return word & kCountMask; }

struct FeatureRange {
    i32 begin;
    i32 end;
};

// Where each feature's cells lie: its value bins, then its missing bin.
struct CellLayout {
    explicit CellLayout(const Plane& plane);

    std::vector<i64> offset;  // n_features + 1
    i32 max_value_bins = 0;

    i64 n_cells() const { return offset.back(); }
    i64 n_cells(FeatureRange range) const { return offset[range.end] - offset[range.begin]; }
};

// The cells of a range of features; `first` is the layout's offset of the first of them.
struct Strip {
    i64* cells = nullptr;
    i64 first = 0;
    int words = 1;

    i64* of(i64 offset) const { return cells + (offset - first) * words; }
};

// A node's rows: a list, or, if `list` is null, [first .. first + n).
struct RowSpan {
    const i32* list;
    i64 first;
    i64 n;
};

// One worker's buffers: a block of gathered rows lies here while it is summed tile by tile.
class Staging {
public:
    static constexpr i64 kBlock = 256;      // rows
    static constexpr i64 kStripBytes = 16;  // of a row, summed at a time
    static constexpr i64 kStrips = 8;       // in the widest feature range

    Staging() : bins_(kBlock * kStripBytes * kStrips), values_(kBlock * 3 * sizeof(i64)) {}
    std::byte* bins() { return bins_.data(); }
    i64* values() { return reinterpret_cast<i64*>(values_.data()); }

private:
    AlignedBytes bins_;
    AlignedBytes values_;
};

// At least `wanted` ranges if there are features enough, none so wide that a block of its rows would not fit.
std::vector<FeatureRange> feature_ranges(const Plane& plane, i64 wanted);

// Sums the rows into a zeroed strip; packed strips take fewer than kPackedRows rows.
void add_rows(const Plane& plane, const CellLayout& layout, const RowGradients& gradients, const RowSpan& rows,
              FeatureRange range, const Strip& strip, Staging& staging);

// to += from, from having as many words a cell or, packed, one. Cells [begin .. end) of the layout.
void add_cells(const Strip& to, const Strip& from, i64 begin, i64 end);

// to = whole - part; `to` may be `whole`, `part` may be packed where the others are not.
void subtract_cells(const Strip& to, const Strip& whole, const Strip& part, i64 begin, i64 end);

}  // namespace dyno
