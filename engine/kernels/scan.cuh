// Prefix sums over a feature's bins, and the sibling by subtraction, in one pass over the cells.
//
// A search's built slot holds raw sums, its derived slot the parent's prefix sums. Prefix sums subtract like sums, so
// only the built half is ever scanned; both slots hold prefix sums after, the missing bin's cell excepted.
// One warp takes one search and feature. Order-free: exact integers.
#pragma once

#include "histogram.cuh"
#include "lists.cuh"

namespace dyno {

// The slots of a search's two nodes at one feature's cells; `derived` is null for the root.
struct SearchCells {
    u64* built;
    u64* derived;
    u32 n_cells;       // of the feature, a multiple of 32
    u32 missing;       // its missing bin
    Sums built_missing;
    Sums derived_missing;
};

DYNO_DEVICE Sums shuffle_sums(const Sums& sums, u32 source) {
    return {shuffle(WHOLE_WARP, sums.g, source), shuffle(WHOLE_WARP, sums.h, source),
            shuffle(WHOLE_WARP, sums.rows, source)};
}

template <Layout layout>
DYNO_DEVICE SearchCells open_cells(const FitState& fit, const Search& search, u32 feature) {
    SearchCells cells;
    const u32 first = fit.first_bin[feature];
    cells.n_cells = fit.first_bin[feature + 1] - first;
    cells.missing = static_cast<u32>(fit.value_bins[feature]);
    cells.built = cells_of(fit, fit.nodes[search.built].slot, first);
    cells.derived = search.derived < 0 ? nullptr : cells_of(fit, fit.nodes[search.derived].slot, first);
    cells.built_missing = load_cell<layout>(cells.built + cells.missing, fit.n_bins);
    cells.derived_missing = {0, 0, 0};
    if (cells.derived)
        cells.derived_missing = load_cell<layout>(cells.derived + cells.missing, fit.n_bins) - cells.built_missing;
    sync_warp(WHOLE_WARP);  // all have read before one of them writes
    return cells;
}

template <Layout layout>
DYNO_DEVICE Sums prefix_sums(const Sums& own) {
    const i64 g = prefix_warp(own.g), h = prefix_warp(own.h);
    return {g, h, layout == Layout::counted ? prefix_warp(own.rows) : h};
}

// Calls visit(bin, built, derived) with the prefix sums at each value bin, 32 bins at once, a lane each. All lanes
// call; bins past the last value bin are visited too, and hold what nobody should look at. Writes both slots if `keep`.
template <Layout layout, class Visit>
DYNO_DEVICE void scan_cells(const SearchCells& cells, u32 n_bins, bool keep, Visit&& visit) {
    Sums before = {0, 0, 0};
    for (u32 bin = lane(); bin < cells.n_cells; bin += WARP_SIZE) {
        const Sums own = load_cell<layout>(cells.built + bin, n_bins);
        const Sums prefix = prefix_sums<layout>(own) + before;
        before = shuffle_sums(prefix, WARP_SIZE - 1);
        const Sums built = bin < cells.missing ? prefix : own;
        Sums derived = {0, 0, 0};
        if (cells.derived) derived = load_cell<layout>(cells.derived + bin, n_bins) - built;
        if (keep) {
            store_cell<layout>(cells.built + bin, n_bins, built);
            if (cells.derived) store_cell<layout>(cells.derived + bin, n_bins, derived);
        }
        visit(bin, built, derived);
    }
}

}  // namespace dyno
