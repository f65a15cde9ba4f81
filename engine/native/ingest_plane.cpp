// Binning (contract §3): each value's bin by lower bound over order keys, written row-major and column-major at once.
#include <algorithm>
#include <bit>

#include "guarded.hpp"
#include "ingest.hpp"

namespace dyno {
namespace {

// One feature's cuts as keys, then the missing key, then padding to 2^k - 1 entries. The bin of a key is the number of
// entries <= it: so a missing value lands behind the last value bin, and where training saw no value all land in bin 0.
template <class Key>
struct CutTable {
    std::vector<Key> keys;

    CutTable(const double* cuts, i64 n_cuts, i32 value_bins) {
        keys.assign(std::bit_ceil(static_cast<u32>(value_bins) + 1) - 1, PADDING_KEY<Key>);
        std::transform(cuts, cuts + n_cuts, keys.begin(), key_of_cut);
        if (value_bins > 0) keys[n_cuts] = MISSING_KEY<Key>;
    }

    // For float32 values: the key of the smallest float32 >= cut, which parts them exactly as the cut does.
    static Key key_of_cut(double cut) {
        if constexpr (sizeof(Key) == 8) return order_key(cut);
        const float near = static_cast<float>(cut);
        return order_key(near) + (static_cast<double>(near) < cut ? 1 : 0);
    }
};

struct CutTables {
    std::vector<CutTable<u32>> narrow;  // of the float32 features
    std::vector<CutTable<u64>> wide;    // of the float64 features
    std::vector<i32> index;             // a feature's place among its kind

    template <class Key>
    const CutTable<Key>& of(i32 feature) const {
        if constexpr (sizeof(Key) == 4) return narrow[index[feature]];
        else return wide[index[feature]];
    }
};

CutTables make_tables(const std::vector<Column>& columns, const double* cuts, const i64* offsets, const i32* value_bins) {
    CutTables tables;
    for (std::size_t f = 0; f < columns.size(); ++f) {
        const double* own = cuts + offsets[f];
        const i64 n_cuts = offsets[f + 1] - offsets[f];
        tables.index.push_back(static_cast<i32>(columns[f].is_double ? tables.wide.size() : tables.narrow.size()));
        if (columns[f].is_double) tables.wide.emplace_back(own, n_cuts, value_bins[f]);
        else tables.narrow.emplace_back(own, n_cuts, value_bins[f]);
    }
    return tables;
}

// Bins of TILE_ROWS keys, eight searches side by side so that their loads overlap.
template <class Key, class Bin>
void bin_keys(const CutTable<Key>& table, const Key* keys, Bin* bins) {
    constexpr int LANES = 8;
    const u32 first_half = (static_cast<u32>(table.keys.size()) + 1) / 2;
    const Key* entries = table.keys.data();
    for (int i = 0; i < TILE_ROWS; i += LANES) {
        u32 position[LANES] = {};
        for (u32 half = first_half; half > 0; half /= 2) {
#pragma GCC unroll 8
            for (int lane = 0; lane < LANES; ++lane) {
                position[lane] += entries[position[lane] + half - 1] <= keys[i + lane] ? half : 0;
            }
        }
        for (int lane = 0; lane < LANES; ++lane) bins[i + lane] = static_cast<Bin>(position[lane]);
    }
}

template <class Bin>
void store_columns(Plane& plane, Group group, i64 begin, i64 count, const Bin* bins) {
    for (int f = 0; f < group.count; ++f) {
        std::copy_n(bins + f * TILE_ROWS, count, plane.column<Bin>(group.first + f) + begin);
    }
}

template <class Bin>
void store_rows(Plane& plane, Group group, i64 begin, i64 count, const Bin* bins) {
    Bin* out = plane.row<Bin>(begin) + group.first;
    if (group.count == GROUP_FEATURES) {  // a fixed length is one vector store a row
        for (i64 i = 0; i < count; ++i) {
            Bin strip[GROUP_FEATURES];
            for (int f = 0; f < GROUP_FEATURES; ++f) strip[f] = bins[f * TILE_ROWS + i];
            std::copy_n(strip, GROUP_FEATURES, out + i * plane.row_stride);
        }
        return;
    }
    for (i64 i = 0; i < count; ++i) {
        for (int f = 0; f < group.count; ++f) out[i * plane.row_stride + f] = bins[f * TILE_ROWS + i];
    }
}

template <class Value, class Bin>
void bin_tile(Plane& plane, const Column* columns, const CutTables& tables, Group group, i64 begin, i64 count) {
    using Key = KeyOf<Value>;
    alignas(64) Key keys[GROUP_FEATURES * TILE_ROWS];
    alignas(64) Bin bins[GROUP_FEATURES * TILE_ROWS];
    load_tile<Value>(columns + group.first, group.count, begin, count, keys);
    for (int f = 0; f < group.count; ++f) {
        std::fill(keys + f * TILE_ROWS + count, keys + (f + 1) * TILE_ROWS, Key{0});
        bin_keys(tables.of<Key>(group.first + f), keys + f * TILE_ROWS, bins + f * TILE_ROWS);
    }
    store_columns(plane, group, begin, count, bins);
    store_rows(plane, group, begin, count, bins);
}

template <class Bin>
void bin_all(Plane& plane, const std::vector<Column>& columns, const CutTables& tables, int n_threads) {
    const std::vector<Group> groups = make_groups(columns);
    const i64 n_blocks = (plane.n_rows + TILE_ROWS - 1) / TILE_ROWS;
    Team team(worker_count(n_threads, n_blocks));
    team.run(n_blocks, [&](i64 block, int) {
        const i64 begin = block * TILE_ROWS, count = std::min<i64>(TILE_ROWS, plane.n_rows - begin);
        for (const Group group : groups) {
            const bool is_double = columns[group.first].is_double;
            if (is_double) bin_tile<double, Bin>(plane, columns.data(), tables, group, begin, count);
            else bin_tile<float, Bin>(plane, columns.data(), tables, group, begin, count);
        }
    });
}

}  // namespace

Plane make_plane(const std::vector<Column>& columns, i64 n_rows, const double* cuts, const i64* offsets,
                 const i32* value_bins, int n_threads) {
    FloatingPointMode mode;
    const i32 n_features = static_cast<i32>(columns.size());
    const bool wide = std::any_of(value_bins, value_bins + n_features, [](i32 bins) { return bins > 255; });
    Plane plane = Plane::allocate(n_rows, std::vector<i32>(value_bins, value_bins + n_features), wide);
    const CutTables tables = make_tables(columns, cuts, offsets, value_bins);
    if (wide) bin_all<std::uint16_t>(plane, columns, tables, n_threads);
    else bin_all<std::uint8_t>(plane, columns, tables, n_threads);
    return plane;
}

}  // namespace dyno
