#include "histogram.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dyno {
namespace {

constexpr int kTileFeatures = 16;
constexpr i64 kTileBytes = 34 * 1024;  // of cells: they stay in the first-level cache while a block goes through
constexpr int kPrefetchRows = 16;

template <int words>
struct Cell {
    i64 word[words];
    void add(const Cell& other) {
        for (int w = 0; w < words; ++w) word[w] += other.word[w];
    }
};

template <int words>
Cell<words> cell_of_row(const RowGradients& gradients, i64 row) {
    const i64 g = gradients.g[row];
    if constexpr (words == 1) return {{(g << kCountBits) + 1}};
    else if constexpr (words == 2) return {{g, gradients.h[row]}};
    else return {{g, gradients.h[row], 1}};
}

// ---- tiles: n features of a block of rows at a time ----------------------------------------------------------------

template <class Bin, int words>
using AddTile = void (*)(const Bin* bins, i64 stride, const Cell<words>* values, i64 n_rows, Cell<words>* const* cells);

template <class Bin, int words, int n_features>
void add_tile(const Bin* __restrict bins, i64 stride, const Cell<words>* __restrict values, i64 n_rows,
              Cell<words>* const* cells) {
    Cell<words>* feature[n_features];
    for (int f = 0; f < n_features; ++f) feature[f] = cells[f];
    for (i64 row = 0; row < n_rows; ++row, bins += stride) {
        const Cell<words> value = values[row];
#pragma GCC unroll 16
        for (int f = 0; f < n_features; ++f) feature[f][bins[f]].add(value);
    }
}

template <class Bin, int words, int... n>
constexpr std::array<AddTile<Bin, words>, sizeof...(n)> tile_table(std::integer_sequence<int, n...>) {
    return {add_tile<Bin, words, n + 1>...};
}

template <class Bin, int words>
i32 tile_end(const CellLayout& layout, i32 begin, i32 end) {
    const i32 n_tiles = (end - begin + kTileFeatures - 1) / kTileFeatures;
    const i32 even = begin + (end - begin + n_tiles - 1) / n_tiles;
    i32 f = begin + 1;
    while (f < even &&
           (layout.offset[f + 1] - layout.offset[begin]) * words * static_cast<i64>(sizeof(i64)) <= kTileBytes)
        ++f;
    return f;
}

// `bins` points at the range's first feature.
template <class Bin, int words>
void add_block(const CellLayout& layout, FeatureRange range, const Bin* bins, i64 stride, const Cell<words>* values,
               i64 n_rows, const Strip& strip) {
    static constexpr auto add_tiles = tile_table<Bin, words>(std::make_integer_sequence<int, kTileFeatures>{});
    for (i32 begin = range.begin; begin < range.end;) {
        const i32 end = tile_end<Bin, words>(layout, begin, range.end);
        Cell<words>* cells[kTileFeatures];
        for (i32 f = begin; f < end; ++f) cells[f - begin] = reinterpret_cast<Cell<words>*>(strip.of(layout.offset[f]));
        add_tiles[end - begin - 1](bins + (begin - range.begin), stride, values, n_rows, cells);
        begin = end;
    }
}

// ---- staging ---------------------------------------------------------------------------------------------------------

// Bytes are copied in fixed pieces of 4, 8, 16 or 32: a row's padding, or the plane's slack, takes the excess.
template <int piece>
void gather_rows(const std::byte* source, i64 stride, i64 n_pieces, const i32* rows, i64 n, i64 n_ahead, std::byte* to) {
    for (i64 i = 0; i < n; ++i) {
        if (i + kPrefetchRows < n_ahead) {
            const std::byte* next = source + rows[i + kPrefetchRows] * stride;
            __builtin_prefetch(next);
            if (n_pieces * piece > 32) __builtin_prefetch(next + n_pieces * piece - 1);
        }
        const std::byte* from = source + rows[i] * stride;
        for (i64 p = 0; p < n_pieces; ++p, to += piece) std::memcpy(to, from + p * piece, piece);
    }
}

// Returns the distance between staged rows, in bytes.
i64 gather(const std::byte* source, i64 stride, i64 bytes, const i32* rows, i64 n, i64 n_ahead, std::byte* to) {
    const i64 piece = bytes > 16 ? 32 : bytes > 8 ? 16 : bytes > 4 ? 8 : 4;
    const i64 n_pieces = (bytes + piece - 1) / piece;
    const auto run = piece == 32 ? gather_rows<32> : piece == 16 ? gather_rows<16> : piece == 8 ? gather_rows<8> : gather_rows<4>;
    run(source, stride, n_pieces, rows, n, n_ahead, to);
    return n_pieces * piece;
}

template <class Bin, int words>
void add_rows_as(const Plane& plane, const CellLayout& layout, const RowGradients& gradients, const RowSpan& rows,
                 FeatureRange range, const Strip& strip, Staging& staging) {
    auto* values = reinterpret_cast<Cell<words>*>(staging.values());
    const i64 row_bytes = plane.row_stride * static_cast<i64>(sizeof(Bin));
    for (i64 done = 0; done < rows.n; done += Staging::kBlock) {
        const i64 n = std::min<i64>(Staging::kBlock, rows.n - done);
        if (rows.list == nullptr) {
            const i64 first = rows.first + done;
            for (i64 i = 0; i < n; ++i) values[i] = cell_of_row<words>(gradients, first + i);
            add_block<Bin, words>(layout, range, plane.row<Bin>(first) + range.begin, plane.row_stride, values, n, strip);
            continue;
        }
        const i32* list = rows.list + done;
        const std::byte* source = plane.rows.data() + range.begin * static_cast<i64>(sizeof(Bin));
        const i64 bytes = (range.end - range.begin) * static_cast<i64>(sizeof(Bin));
        const i64 stride = gather(source, row_bytes, bytes, list, n, rows.n - done, staging.bins());
        for (i64 i = 0; i < n; ++i) values[i] = cell_of_row<words>(gradients, list[i]);
        add_block<Bin, words>(layout, range, reinterpret_cast<const Bin*>(staging.bins()),
                              stride / static_cast<i64>(sizeof(Bin)), values, n, strip);
    }
}

template <class Bin>
void add_rows_in(const Plane& plane, const CellLayout& layout, const RowGradients& gradients, const RowSpan& rows,
                 FeatureRange range, const Strip& strip, Staging& staging) {
    const auto run = strip.words == 1   ? add_rows_as<Bin, 1>
                     : strip.words == 2 ? add_rows_as<Bin, 2>
                                        : add_rows_as<Bin, 3>;
    run(plane, layout, gradients, rows, range, strip, staging);
}

}  // namespace

CellLayout::CellLayout(const Plane& plane) : offset(static_cast<std::size_t>(plane.n_features) + 1, 0) {
    for (i32 f = 0; f < plane.n_features; ++f) {
        offset[f + 1] = offset[f] + plane.value_bins[f] + 1;
        max_value_bins = std::max(max_value_bins, plane.value_bins[f]);
    }
}

std::vector<FeatureRange> feature_ranges(const Plane& plane, i64 wanted) {
    const i64 width = plane.wide ? 2 : 1;
    const i64 n_features = plane.n_features;
    const i64 at_most = (Staging::kRowBytes - 32) / width;  // staged rows are rounded up to 32 bytes
    const i64 n_ranges = std::max((n_features + at_most - 1) / at_most, std::min(wanted, (n_features + 7) / 8));
    std::vector<FeatureRange> ranges;
    for (i64 r = 0; r < n_ranges; ++r)
        ranges.push_back({static_cast<i32>(n_features * r / n_ranges), static_cast<i32>(n_features * (r + 1) / n_ranges)});
    return ranges;
}

void add_rows(const Plane& plane, const CellLayout& layout, const RowGradients& gradients, const RowSpan& rows,
              FeatureRange range, const Strip& strip, Staging& staging) {
    const auto run = plane.wide ? add_rows_in<std::uint16_t> : add_rows_in<std::uint8_t>;
    run(plane, layout, gradients, rows, range, strip, staging);
}

void add_cells(const Strip& to, const Strip& from, i64 begin, i64 end) {
    i64* __restrict sum = to.of(begin);
    const i64* __restrict part = from.of(begin);
    if (to.words == from.words) {
        for (i64 i = 0; i < (end - begin) * to.words; ++i) sum[i] += part[i];
        return;
    }
    for (i64 i = 0; i < end - begin; ++i) {
        sum[2 * i] += packed_gradient(part[i]);
        sum[2 * i + 1] += packed_count(part[i]);
    }
}

void subtract_cells(const Strip& to, const Strip& whole, const Strip& part, i64 begin, i64 end) {
    i64* difference = to.of(begin);
    const i64* minuend = whole.of(begin);
    const i64* subtrahend = part.of(begin);
    if (whole.words == part.words) {
        for (i64 i = 0; i < (end - begin) * whole.words; ++i) difference[i] = minuend[i] - subtrahend[i];
        return;
    }
    for (i64 i = 0; i < end - begin; ++i) {
        difference[2 * i] = minuend[2 * i] - packed_gradient(subtrahend[i]);
        difference[2 * i + 1] = minuend[2 * i + 1] - packed_count(subtrahend[i]);
    }
}

}  // namespace dyno
