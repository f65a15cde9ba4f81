// The scan for infinities, which the contract refuses by column and row.
#include <algorithm>
#include <limits>
#include <mutex>

#include "guarded.hpp"
#include "ingest.hpp"

namespace dyno {
namespace {

template <class Value>
Cell scan_tile(const Column* columns, Group group, i64 begin, i64 count) {
    using Key = KeyOf<Value>;
    const Key above = order_key(std::numeric_limits<Value>::infinity());
    const Key below = order_key(-std::numeric_limits<Value>::infinity());
    alignas(64) Key keys[GROUP_FEATURES * TILE_ROWS];
    load_tile<Value>(columns + group.first, group.count, begin, count, keys);
    for (int f = 0; f < group.count; ++f) {
        const Key* own = keys + f * TILE_ROWS;
        Key found = 0;  // no early exit: the compiler then compares whole vectors
        for (i64 i = 0; i < count; ++i) found |= (own[i] == above) | (own[i] == below);
        if (!found) continue;
        const Key* at = std::find_if(own, own + count, [&](Key key) { return key == above || key == below; });
        return {begin + (at - own), group.first + f};
    }
    return {0, -1};
}

}  // namespace

Cell find_infinity(const std::vector<Column>& columns, i64 n_rows, int n_threads) {
    const std::vector<Group> groups = make_groups(columns);
    constexpr i64 BLOCK = 16 * TILE_ROWS;
    const i64 n_blocks = (n_rows + BLOCK - 1) / BLOCK;
    Cell first{0, -1};
    std::mutex mutex;
    Team team(worker_count(n_threads, n_blocks));
    team.run(n_blocks, [&](i64 block, int) {
        const i64 end = std::min(n_rows, (block + 1) * BLOCK);
        for (i64 begin = block * BLOCK; begin < end; begin += TILE_ROWS) {
            const i64 count = std::min<i64>(TILE_ROWS, end - begin);
            for (const Group group : groups) {
                const bool is_double = columns[group.first].is_double;
                const Cell cell = is_double ? scan_tile<double>(columns.data(), group, begin, count)
                                            : scan_tile<float>(columns.data(), group, begin, count);
                if (cell.feature < 0) continue;
                std::lock_guard lock(mutex);
                const bool earlier = cell.feature < first.feature ||
                                     (cell.feature == first.feature && cell.row < first.row);
                if (first.feature < 0 || earlier) first = cell;
            }
        }
    });
    return first;
}

}  // namespace dyno
