// How histogram cells lie in memory: exact int64 sums, plane by plane (contract §6).
//
// A slot is one node's histogram: `planes` planes of n_bins 64-bit words. In a plane each feature has its value bins,
// then its missing bin, padded to 32, so that a warp reads whole lines and never two features at once.
#pragma once

#include "state.cuh"

namespace dyno {

// What a cell holds. count: gradient sum and rows, for a constant hessian. pair: gradient and hessian sums.
// counted: these and the rows, where a rule needs them.
enum class Layout : i32 { count, pair, counted };

DYNO_FN constexpr u32 planes_of(Layout layout) { return layout == Layout::counted ? 3 : 2; }

// Sums over some rows. `rows` serves to test min_samples_leaf: without a plane of its own it is h, which counts
// the rows of a constant hessian and otherwise is at least 1 a row, enough where 1 row is asked for.
struct Sums {
    i64 g;
    i64 h;
    i64 rows;
};

DYNO_FN Sums operator+(const Sums& a, const Sums& b) { return {a.g + b.g, a.h + b.h, a.rows + b.rows}; }
DYNO_FN Sums operator-(const Sums& a, const Sums& b) { return {a.g - b.g, a.h - b.h, a.rows - b.rows}; }

template <Layout layout>
DYNO_FN Sums sums_of(const Node& node) {
    return {node.g, node.h, layout == Layout::counted ? static_cast<i64>(n_rows_of(node)) : node.h};
}

DYNO_FN u64* cells_of(const FitState& fit, i32 slot, u32 bin) {
    return fit.cells + static_cast<u64>(slot) * fit.slot_cells + bin;
}

template <Layout layout>
DYNO_FN Sums load_cell(const u64* cell, u32 n_bins) {
    const i64 g = static_cast<i64>(cell[0]), h = static_cast<i64>(cell[n_bins]);
    return {g, h, layout == Layout::counted ? static_cast<i64>(cell[2 * static_cast<u64>(n_bins)]) : h};
}

template <Layout layout>
DYNO_FN void store_cell(u64* cell, u32 n_bins, const Sums& sums) {
    cell[0] = static_cast<u64>(sums.g);
    cell[n_bins] = static_cast<u64>(sums.h);
    if (layout == Layout::counted) cell[2 * static_cast<u64>(n_bins)] = static_cast<u64>(sums.rows);
}

}  // namespace dyno
