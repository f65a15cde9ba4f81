// The best split of every node on the search list (contract §8).
//
// find    one warp takes one search and feature: prefix sums, subtraction and the scores of both nodes' candidates, in
//         one pass over the cells. Writes the feature's best split of each node.
// reduce  one block takes one node: the best of its features' splits, into the node table.
//
// Grids are persistent: warps or blocks walk the list. Order-free: prefix sums are exact, each candidate's score is one
// expression, and is_better is a total order, so a best of any grouping is the same.
// Cells: read once for each of the two nodes and, if their children may need them, written once.
//
// Kernels: find
// Block: 256
// Bytes per row: none
//
// Kernels: reduce
// Block: 256
// Shared: 1024
// Bytes per row: none
#pragma once

#include "scan.cuh"

namespace dyno {

DYNO_FN Candidate no_split() { return {0.0, -1, -1, 0}; }

// ---- one candidate ------------------------------------------------------------------------------------------------

// The two children's scores; negative where the split is not feasible.
DYNO_FN double score_split(const FitState& fit, const Sums& left, const Sums& own) {
    const Sums right = own - left;
    const double g_left = static_cast<double>(left.g) * fit.scale_g, h_left = static_cast<double>(left.h) * fit.scale_h;
    const double g_right = static_cast<double>(right.g) * fit.scale_g;
    const double h_right = static_cast<double>(right.h) * fit.scale_h;
    const bool feasible = is_feasible_side(left.h, h_left, left.rows, fit.reg) &&
                          is_feasible_side(right.h, h_right, right.rows, fit.reg);
    return feasible ? score(g_left, h_left, fit.reg) + score(g_right, h_right, fit.reg) : -1.0;
}

struct Best {
    Candidate split;
    i64 left_g;
    i64 left_h;
};

template <Layout layout>
DYNO_FN void consider(const FitState& fit, const Node& node, const Sums& left, i32 bin, i32 missing_left, Best& best) {
    const double both = score_split(fit, left, sums_of<layout>(node));
    if (both < 0.0) return;
    const Candidate split = {split_gain(both, 0.0, node.own_score, fit.reg.gamma), 0, bin, missing_left};
    if (is_valid_gain(split.gain) && is_better(split, best.split)) best = {split, left.g, left.h};
}

// Both directions of one bin; without missing rows they are the same split, and missing left wins the tie.
template <Layout layout>
DYNO_FN void consider_bin(const FitState& fit, const Node& node, const Sums& prefix, const Sums& missing, i32 bin,
                          Best& best) {
    consider<layout>(fit, node, prefix + missing, bin, 1, best);
    if (missing.h > 0) consider<layout>(fit, node, prefix, bin, 0, best);
}

// ---- one feature --------------------------------------------------------------------------------------------------

DYNO_DEVICE Candidate best_of_warp(Candidate best) {
    for (u32 bit = WARP_SIZE / 2; bit > 0; bit /= 2) {
        const Candidate other = {shuffle_xor(WHOLE_WARP, best.gain, bit), shuffle_xor(WHOLE_WARP, best.feature, bit),
                                 shuffle_xor(WHOLE_WARP, best.bin, bit),
                                 shuffle_xor(WHOLE_WARP, best.missing_left, bit)};
        if (is_better(other, best)) best = other;
    }
    return best;
}

// The lane that found the warp's best split writes it; bins are dealt to lanes in turn.
DYNO_DEVICE void write_best(const Node& node, bool has_missing, const Best& own, FeatureSplit* to) {
    const Candidate best = best_of_warp(own.split);
    const u32 owner = best.gain > 0.0 ? static_cast<u32>(best.bin) % WARP_SIZE : 0;
    if (lane() != owner) return;
    const i32 missing_left = has_missing ? best.missing_left : unseen_goes_left(own.left_h, node.h - own.left_h);
    *to = {best.gain, own.left_g, own.left_h, best.bin, missing_left};
}

DYNO_FN bool is_kept(const FitState& fit, const Node& node) {
    return fit.max_depth == 0 || node.depth + 1 < fit.max_depth;
}

template <Layout layout>
DYNO_DEVICE void find_feature(const FitState& fit, u32 number, u32 feature) {
    const Search search = fit.searches[number];
    const SearchCells cells = open_cells<layout>(fit, search, feature);
    const Node& built = fit.nodes[search.built];
    const Node& derived = fit.nodes[cells.derived ? search.derived : search.built];
    Best best_built = {no_split(), 0, 0}, best_derived = best_built;
    const bool keep = is_kept(fit, built);
    scan_cells<layout>(cells, fit.n_bins, keep, [&](u32 at, const Sums& built_prefix, const Sums& derived_prefix) {
        const i32 bin = static_cast<i32>(at);
        if (at >= cells.missing) return;
        consider_bin<layout>(fit, built, built_prefix, cells.built_missing, bin, best_built);
        if (cells.derived) consider_bin<layout>(fit, derived, derived_prefix, cells.derived_missing, bin, best_derived);
    });
    FeatureSplit* to = fit.feature_splits + static_cast<i64>(2 * number) * fit.n_features + feature;
    write_best(built, cells.built_missing.h > 0, best_built, to);
    if (cells.derived) write_best(derived, cells.derived_missing.h > 0, best_derived, to + fit.n_features);
}

template <Layout layout>
DYNO_DEVICE void find(const FitState& fit) {
    const i64 n_work = static_cast<i64>(fit.n_searches) * fit.n_features;
    for (i64 work = first_item() / WARP_SIZE; work < n_work; work += item_stride() / WARP_SIZE)
        find_feature<layout>(fit, static_cast<u32>(work / fit.n_features), static_cast<u32>(work % fit.n_features));
}

DYNO_KERNEL(find_count, FitState, GROW_BLOCK) { find<Layout::count>(*state); }
DYNO_KERNEL(find_pair, FitState, GROW_BLOCK) { find<Layout::pair>(*state); }
DYNO_KERNEL(find_counted, FitState, GROW_BLOCK) { find<Layout::counted>(*state); }

// ---- one node -----------------------------------------------------------------------------------------------------

// Every thread calls and gets the result. Uses shared memory [0 .. 24 bytes a warp).
DYNO_DEVICE Candidate best_of_block(const Candidate& own) {
    Candidate* of_warp = shared<Candidate>(0);
    const Candidate best = best_of_warp(own);
    if (lane() == 0) of_warp[warp()] = best;
    sync_block();
    const Candidate all = best_of_warp(lane() < block_size() / WARP_SIZE ? of_warp[lane()] : no_split());
    sync_block();  // before the next call writes
    return all;
}

DYNO_DEVICE void reduce_features(const FitState& fit, const FeatureSplit* splits, Node& node) {
    Candidate best = no_split();
    for (i32 feature = static_cast<i32>(thread()); feature < fit.n_features; feature += block_size()) {
        const Candidate split = {splits[feature].gain, feature, splits[feature].bin, splits[feature].missing_left};
        if (split.gain > 0.0 && is_better(split, best)) best = split;
    }
    best = best_of_block(best);
    if (thread() != 0 || !(best.gain > 0.0)) return;
    node.gain = best.gain;
    node.feature = best.feature;
    node.bin = best.bin;
    node.missing_left = best.missing_left;
    node.left_g = splits[best.feature].left_g;
    node.left_h = splits[best.feature].left_h;
}

DYNO_KERNEL(reduce, FitState, GROW_BLOCK) {
    for (u32 work = block(); work < 2 * state->n_searches; work += grid_size()) {
        const Search search = state->searches[work / 2];
        const i32 index = work % 2 == 0 ? search.built : search.derived;
        if (index < 0) continue;
        const FeatureSplit* splits = state->feature_splits + static_cast<i64>(work) * state->n_features;
        reduce_features(*state, splits, state->nodes[index]);
    }
}

}  // namespace dyno
