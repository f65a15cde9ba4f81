// Levelwise: the scores of a whole level's common cuts (contract §9).
//
// scan_level   one warp takes one search and feature: prefix sums and subtraction, both slots written.
// score_level  one lane takes one bin of one feature and walks the frontier from left to right, adding scores up in
//              that order; a warp writes the best of its 32 bins.
//
// Grids are persistent. Order-free: prefix sums are exact, and each candidate's float sums are one lane's own, in the
// order of the frontier.
// Cells: those of new nodes are read and written once, those of all open nodes read once more.
//
// Kernels: scan_level, score_level
// Block: 256
// Bytes per row: none
#pragma once

#include "find.cuh"

namespace dyno {

template <Layout layout>
DYNO_DEVICE void scan_level(const FitState& fit) {
    const i64 n_work = static_cast<i64>(fit.n_searches) * fit.n_features;
    for (i64 work = first_item() / WARP_SIZE; work < n_work; work += item_stride() / WARP_SIZE) {
        const u32 feature = static_cast<u32>(work % fit.n_features);
        const SearchCells cells = open_cells<layout>(fit, fit.searches[work / fit.n_features], feature);
        const bool is_root = cells.derived == nullptr;
        if (is_root && lane() == 0) fit.may_miss[feature] = cells.built_missing.h > 0;
        scan_cells<layout>(cells, fit.n_bins, true, [](u32, const Sums&, const Sums&) {});
    }
}

// Sums over the nodes that were walked, for a cut that sends missing one way.
struct LevelScore {
    double split;  // of the children's scores where the cut can split a node, of the node's own where it cannot
    i64 n_split;
};

DYNO_FN void add_score(double both, double own, LevelScore& level) {
    level.split += both >= 0.0 ? both : own;
    level.n_split += both >= 0.0 ? 1 : 0;
}

DYNO_FN Candidate level_candidate(const FitState& fit, const LevelScore& level, double whole, i32 feature, i32 bin,
                                  i32 missing_left) {
    const double gain = split_gain(level.split, 0.0, whole, fit.reg.gamma * static_cast<double>(level.n_split));
    return level.n_split >= 1 && is_valid_gain(gain) ? Candidate{gain, feature, bin, missing_left} : no_split();
}

// The best cut at one cell of the planes.
template <Layout layout>
DYNO_FN Candidate score_cell(const FitState& fit, i32 feature, u32 cell) {
    const i32* frontier = fit.frontier[fit.frontier_at];
    const u32 first = fit.first_bin[feature], missing_bin = static_cast<u32>(fit.value_bins[feature]);
    if (cell - first >= missing_bin) return no_split();
    LevelScore left = {0.0, 0}, right = {0.0, 0};
    double whole = 0.0;
    for (u32 i = 0; i < fit.n_frontier; ++i) {
        const Node& node = fit.nodes[frontier[i]];
        whole += node.own_score;
        double both_left = -1.0, both_right = -1.0;  // a node without a histogram is too small to be split
        if (node.slot >= 0) {
            const Sums own = sums_of<layout>(node);
            const Sums prefix = load_cell<layout>(cells_of(fit, node.slot, cell), fit.n_bins);
            const Sums missing = load_cell<layout>(cells_of(fit, node.slot, first + missing_bin), fit.n_bins);
            both_left = score_split(fit, prefix + missing, own);
            both_right = missing.h > 0 ? score_split(fit, prefix, own) : both_left;
        }
        add_score(both_left, node.own_score, left);
        add_score(both_right, node.own_score, right);
    }
    const i32 bin = static_cast<i32>(cell - first);
    const Candidate best = level_candidate(fit, left, whole, feature, bin, 1);
    const Candidate other = level_candidate(fit, right, whole, feature, bin, 0);
    return is_better(other, best) ? other : best;
}

template <Layout layout>
DYNO_DEVICE void score_level(const FitState& fit) {
    if (fit.n_frontier == 0) return;
    const u32 n_warps = fit.n_bins / WARP_SIZE;
    for (i64 at = first_item() / WARP_SIZE; at < n_warps; at += item_stride() / WARP_SIZE) {
        const u32 cell = static_cast<u32>(at) * WARP_SIZE + lane();
        const Candidate best = best_of_warp(score_cell<layout>(fit, fit.feature_of[at], cell));
        if (lane() == 0) fit.level_splits[at] = best;
    }
}

DYNO_KERNEL(scan_level_count, FitState, GROW_BLOCK) { scan_level<Layout::count>(*state); }
DYNO_KERNEL(scan_level_pair, FitState, GROW_BLOCK) { scan_level<Layout::pair>(*state); }
DYNO_KERNEL(scan_level_counted, FitState, GROW_BLOCK) { scan_level<Layout::counted>(*state); }
DYNO_KERNEL(score_level_count, FitState, GROW_BLOCK) { score_level<Layout::count>(*state); }
DYNO_KERNEL(score_level_pair, FitState, GROW_BLOCK) { score_level<Layout::pair>(*state); }
DYNO_KERNEL(score_level_counted, FitState, GROW_BLOCK) { score_level<Layout::counted>(*state); }

}  // namespace dyno
