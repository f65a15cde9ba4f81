#include "histogram.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace dyno {
namespace {

constexpr int kStripBytes = Staging::kStripBytes;
constexpr i64 kTileBytes = 34 * 1024;  // of cells: they stay in the first-level cache while a block goes through
constexpr i64 kPiece = 32;       // rows that are summed between two turns of fetching
constexpr i64 kFirstBlock = 64;  // rows: nothing is summed while they are fetched
constexpr i64 kFetchAhead = 16;  // rows

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
using AddTile = void (*)(const Bin* bins, const Cell<words>* values, i64 n_rows, Cell<words>* const* cells);

template <class Bin, int words, int n_features>
void add_tile(const Bin* __restrict bins, const Cell<words>* __restrict values, i64 n_rows, Cell<words>* const* cells) {
    Cell<words>* feature[n_features];
    for (int f = 0; f < n_features; ++f) feature[f] = cells[f];
    for (i64 row = 0; row < n_rows; ++row, bins += kStripBytes / sizeof(Bin)) {
        const Cell<words> value = values[row];
#pragma GCC unroll 16
        for (int f = 0; f < n_features; ++f) feature[f][bins[f]].add(value);
    }
}

template <class Bin, int words, int... n>
constexpr std::array<AddTile<Bin, words>, sizeof...(n)> tile_table(std::integer_sequence<int, n...>) {
    return {add_tile<Bin, words, n + 1>...};
}

// ---- staging -------------------------------------------------------------------------------------------------------

// What is summed: rows of a range of features, cut in strips of at most kStripBytes.
struct Source {
    const std::byte* bins;  // the range's first bin of row 0
    i64 row_bytes;
    i64 strip_bytes;  // from one strip's first bin to the next one's
    i64 n_strips;
    RowSpan rows;

    i64 row(i64 i) const { return rows.list == nullptr ? rows.first + i : rows.list[i]; }
    const std::byte* bins_of(i64 row) const { return bins + row * row_bytes; }
    i64 last_byte() const { return (n_strips - 1) * strip_bytes + kStripBytes - 1; }
};

// Fetches rows before they are staged, and most of them while others are summed: sums wait for the first-level cache's
// stores and staging waits for memory, so neither need wait for the other.
class Fetcher {
public:
    explicit Fetcher(const Source& source) : source_(source), last_byte_(source.last_byte()) {
        const bool is_plain = source.rows.list == nullptr && source.row_bytes < 64;  // the processor foresees it
        if (is_plain) next_ = source.rows.n;
    }

    // All rows before the given one.
    void fetch_to(i64 end) {
        for (end = std::min(end, source_.rows.n); next_ < end; ++next_) {
            const i64 row = source_.row(next_);
            const std::byte* bins = source_.bins_of(row);
            // As many for every row, whether or not it crosses into one more cache line: no branch to mispredict.
            // To the second-level cache: the first holds the cells.
            for (i64 byte = 0; byte < last_byte_; byte += 64) __builtin_prefetch(bins + byte, 0, 2);
            if (last_byte_ >= kStripBytes) __builtin_prefetch(bins + last_byte_, 0, 2);
        }
    }

private:
    const Source& source_;
    i64 last_byte_;
    i64 next_ = 0;
};

// Rows [begin .. begin + n) are copied strip by strip, [strip][row][kStripBytes], so that each strip's bins lie together
// and no cache line is looked up twice.
void stage(const Source& source, i64 begin, i64 n, std::byte* staged, Fetcher& fetcher) {
    const i64 n_strips = source.n_strips, strip_bytes = source.strip_bytes;  // no store can change these
    for (i64 i = begin; i < begin + n; ++i, staged += kStripBytes) {
        fetcher.fetch_to(i + kFetchAhead);
        const std::byte* from = source.bins_of(source.row(i));
        std::byte* to = staged;
        for (i64 strip = 0; strip < n_strips; ++strip, from += strip_bytes, to += Staging::kBlock * kStripBytes)
            std::memcpy(to, from, kStripBytes);
    }
}

// ---- blocks --------------------------------------------------------------------------------------------------------

// Sums one strip of a block. Cells of 16 features may exceed the first-level cache: then part of the strip at a time.
// Calls before(row) now and then, for row a multiple of kPiece.
template <class Bin, int words, class Before>
void add_strip(const CellLayout& layout, FeatureRange features, const Bin* bins, const Cell<words>* values, i64 n_rows,
               const Strip& strip, const Before& before) {
    static constexpr auto add_tiles = tile_table<Bin, words>(std::make_integer_sequence<int, kStripBytes>{});
    constexpr i64 kTileCells = kTileBytes / (words * static_cast<i64>(sizeof(i64)));
    constexpr i64 kStripBins = kStripBytes / static_cast<i64>(sizeof(Bin));
    for (i32 begin = features.begin; begin < features.end;) {
        Cell<words>* cells[kStripBytes];
        i32 end = begin;
        do {
            cells[end - begin] = reinterpret_cast<Cell<words>*>(strip.of(layout.offset[end]));
            ++end;
        } while (end < features.end && layout.offset[end + 1] - layout.offset[begin] <= kTileCells);
        for (i64 row = 0; row < n_rows; row += kPiece) {
            before(row);
            add_tiles[end - begin - 1](bins + row * kStripBins + (begin - features.begin), values + row,
                                       std::min(kPiece, n_rows - row), cells);
        }
        begin = end;
    }
}

template <class Bin, int words>
void add_rows_as(const Plane& plane, const CellLayout& layout, const RowGradients& gradients, const RowSpan& rows,
                 FeatureRange range, const Strip& strip, Staging& staging) {
    constexpr i64 width = sizeof(Bin);
    const i64 n_features = range.end - range.begin;
    const i64 n_strips = (n_features * width + kStripBytes - 1) / kStripBytes;
    const i64 strip_features = (n_features + n_strips - 1) / n_strips;
    const Source source{plane.rows.data() + range.begin * width, plane.row_stride * width, strip_features * width,
                        n_strips, rows};
    auto* values = reinterpret_cast<Cell<words>*>(staging.values());
    Fetcher fetcher(source);
    for (i64 begin = 0, n; begin < rows.n; begin += n) {
        n = std::min(begin == 0 ? kFirstBlock : Staging::kBlock, rows.n - begin);
        stage(source, begin, n, staging.bins(), fetcher);
        for (i64 i = 0; i < n; ++i) values[i] = cell_of_row<words>(gradients, source.row(begin + i));
        // While this block is summed, as much of the next one is fetched: rows of it a row of a strip, times 2^10.
        const i64 rate = (Staging::kBlock << 10) / (n_strips * n);
        for (i64 s = 0; s < n_strips; ++s) {
            const FeatureRange features{
                static_cast<i32>(range.begin + s * strip_features),
                static_cast<i32>(std::min(range.begin + (s + 1) * strip_features, i64{range.end}))};
            const auto* bins = reinterpret_cast<const Bin*>(staging.bins() + s * Staging::kBlock * kStripBytes);
            add_strip<Bin, words>(layout, features, bins, values, n, strip, [&](i64 row) {
                fetcher.fetch_to(begin + n + ((s * n + row + kPiece) * rate >> 10));
            });
        }
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
    const i64 n_features = plane.n_features;
    const i64 at_most = Staging::kStrips * Staging::kStripBytes / (plane.wide ? 2 : 1);
    const i64 n_ranges = std::max((n_features + at_most - 1) / at_most, std::min(wanted, (n_features + 7) / 8));
    std::vector<FeatureRange> ranges;
    for (i64 r = 0; r < n_ranges; ++r)
        ranges.push_back(
            {static_cast<i32>(n_features * r / n_ranges), static_cast<i32>(n_features * (r + 1) / n_ranges)});
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
