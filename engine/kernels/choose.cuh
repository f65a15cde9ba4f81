// Which nodes split now, within the budgets (contract §9); their children; and the work list of the partition.
//
// choose_every   depthwise: every node of the level that has a valid split, or as many as max_leaves allows.
// choose_best    leafwise: every node that a best-first replay over the known gains pops and that has no children yet.
//                The first of them is in the final tree for certain; the others may turn out to be left out again.
// choose_common  levelwise: the level's best cut, and every node of the frontier that it can split.
//
// One block. Order-free: lists are written at prefix sums, so in the order of the frontier; ties are settled by the
// total orders of the contract.
//
// Kernels: choose
// Block: 256
// Shared: 1024
// Bytes per row: none
#pragma once

#include "find.cuh"
#include "reduce.cuh"
#include "replay.cuh"

namespace dyno {

// ---- children -----------------------------------------------------------------------------------------------------

DYNO_FN Node new_node(const FitState& fit, i32 parent, i32 depth, i64 g, i64 h) {
    Node node = {};
    node.g = g;
    node.h = h;
    node.own_score = own_score(fit, g, h);
    node.left = node.right = node.slot = -1;
    node.parent = parent;
    node.depth = depth;
    return node;
}

DYNO_FN u32 n_chunks_of(const Node& node) { return (n_rows_of(node) + PARTITION_ROWS - 1) / PARTITION_ROWS; }

// Gives the planned nodes children, whose rows the partition will tell apart, and lists its work.
DYNO_DEVICE void expand_planned(FitState& fit, u32 n_planned) {
    const i32 first = static_cast<i32>(fit.n_nodes);
    const auto n_items = [&](u32 i) { return n_chunks_of(fit.nodes[fit.planned[i]]); };
    const auto expand = [&](u32 i, u32 first_item, u32) {
        const i32 index = fit.planned[i];
        Node& node = fit.nodes[index];
        node.is_split = 1;
        node.first_item = first_item;
        node.left = first + 2 * static_cast<i32>(i);
        node.right = node.left + 1;
        fit.nodes[node.left] = new_node(fit, index, node.depth + 1, node.left_g, node.left_h);
        fit.nodes[node.right] = new_node(fit, index, node.depth + 1, node.g - node.left_g, node.h - node.left_h);
    };
    const u32 n_partition_items = for_each_placed(n_planned, n_items, expand);
    sync_block();
    for (u32 i = warp(); i < n_planned; i += block_size() / WARP_SIZE) {
        const i32 index = fit.planned[i];
        const Node& node = fit.nodes[index];
        for (u32 chunk = lane(); chunk < n_chunks_of(node); chunk += WARP_SIZE)
            fit.partition_items[node.first_item + chunk] = {index, chunk};
    }
    if (thread() != 0) return;
    fit.n_planned = n_planned;
    fit.n_partition_items = n_partition_items;
    fit.partition_ticket = 0;
    fit.epoch += 1;
    fit.n_nodes += 2 * n_planned;
    fit.n_splits += n_planned;
    fit.is_finished = n_planned == 0;
}

DYNO_FN i64 room(const FitState& fit) {
    return fit.max_leaves == 0 ? static_cast<i64>(fit.n_rows) : fit.max_leaves - 1 - static_cast<i64>(fit.n_splits);
}

// ---- depthwise ----------------------------------------------------------------------------------------------------

// Gains compare as their bits do; 0 is no valid split.
DYNO_FN u64 gain_key(const Node& node) { return node.gain > 0.0 ? bits_of(node.gain) : 0; }

DYNO_DEVICE u32 count_from(const FitState& fit, u64 least) {
    const i32* frontier = fit.frontier[fit.frontier_at];
    u32 n = 0;
    for (u32 i = thread(); i < fit.n_frontier; i += block_size()) n += gain_key(fit.nodes[frontier[i]]) >= least;
    return sum_block(n);
}

// The n-th largest key; at least n are positive.
DYNO_DEVICE u64 nth_largest_key(const FitState& fit, u32 n) {
    u64 key = 0;
    for (u64 bit = u64{1} << 62; bit != 0; bit >>= 1)
        if (count_from(fit, key | bit) >= n) key |= bit;
    return key;
}

// The least key that the room allows; of those that tie at it, the later ones lose their split.
DYNO_DEVICE u64 least_key(const FitState& fit, u32 n) {
    const i32* frontier = fit.frontier[fit.frontier_at];
    const u64 least = nth_largest_key(fit, n);
    const u32 n_ties = n - count_from(fit, least + 1);
    const auto is_tied = [&](u32 i) { return gain_key(fit.nodes[frontier[i]]) == least ? 1u : 0u; };
    for_each_placed(fit.n_frontier, is_tied, [&](u32 i, u32 rank, u32 tied) {
        if (tied && rank >= n_ties) fit.nodes[frontier[i]].gain = 0.0;
    });
    sync_block();
    return least;
}

DYNO_KERNEL(choose_every, FitState, GROW_BLOCK) {
    if (state->is_finished) return;
    const i32* frontier = state->frontier[state->frontier_at];
    const i64 most = room(*state);
    u64 least = 1;
    if (count_from(*state, least) > most && most > 0) least = least_key(*state, static_cast<u32>(most));
    const auto is_chosen = [&](u32 i) { return most > 0 && gain_key(state->nodes[frontier[i]]) >= least ? 1u : 0u; };
    const u32 n = for_each_placed(state->n_frontier, is_chosen, [&](u32 i, u32 place, u32 chosen) {
        if (chosen) state->planned[place] = frontier[i];
    });
    sync_block();
    expand_planned(*state, n);
}

// ---- leafwise -----------------------------------------------------------------------------------------------------

struct Wave {
    u32 n_popped;   // nodes without children
    u32 n_certain;  // popped before any of them: nothing that is still unknown can change these
};

DYNO_DEVICE Wave replay_wave(const FitState& fit) {
    Wave wave = {0, 0};
    replay_best_first(fit, [&](i32 index) {
        if (fit.nodes[index].left >= 0) {
            if (wave.n_popped == 0) wave.n_certain += 1;
            return;
        }
        if (lane() == 0) fit.planned[wave.n_popped] = index;
        wave.n_popped += 1;
    });
    return wave;
}

// How many of the wave to expand: the first always, others as long as every split that may still prove certain will
// find room for its children.
DYNO_FN u32 affordable(const FitState& fit, const Wave& wave) {
    const i64 kept_free = 2 * (fit.max_leaves - 1 - static_cast<i64>(wave.n_certain));
    const i64 others = (fit.node_budget - static_cast<i64>(fit.n_nodes) - kept_free) / 2;
    const i64 most = others > 0 ? 1 + others : 1;
    return wave.n_popped < most ? wave.n_popped : static_cast<u32>(most);
}

DYNO_KERNEL(choose_best, FitState, GROW_BLOCK) {
    if (state->is_finished) return;
    u32 n = 0;
    if (warp() == 0) n = affordable(*state, replay_wave(*state));
    expand_planned(*state, broadcast_block(n));
}

// ---- levelwise ----------------------------------------------------------------------------------------------------

DYNO_DEVICE Candidate best_level_split(const FitState& fit) {
    Candidate best = no_split();
    for (u32 at = thread(); at < fit.n_bins / WARP_SIZE; at += block_size())
        if (is_better(fit.level_splits[at], best)) best = fit.level_splits[at];
    return best_of_block(best);
}

// Splits the node by the level's cut, if it can be.
template <Layout layout>
DYNO_FN bool split_in_common(const FitState& fit, const Candidate& cut, Node& node) {
    if (node.slot < 0) return false;
    const u32 first = fit.first_bin[cut.feature];
    Sums left = load_cell<layout>(cells_of(fit, node.slot, first + cut.bin), fit.n_bins);
    if (cut.missing_left)
        left = left + load_cell<layout>(cells_of(fit, node.slot, first + fit.value_bins[cut.feature]), fit.n_bins);
    const double both = score_split(fit, left, sums_of<layout>(node));
    if (both < 0.0) return false;
    node.gain = split_gain(both, 0.0, node.own_score, fit.reg.gamma);
    node.left_g = left.g;
    node.left_h = left.h;
    node.feature = cut.feature;
    node.bin = cut.bin;
    node.missing_left = cut.missing_left;
    return true;
}

// Where no row of the level is missing, a missing value met later goes to the heavier side of all that the cut splits.
DYNO_DEVICE void settle_unseen(const FitState& fit, u32 n_planned) {
    i64 h_left = 0, h_right = 0;
    for (u32 i = thread(); i < n_planned; i += block_size()) {
        const Node& node = fit.nodes[fit.planned[i]];
        h_left += node.left_h;
        h_right += node.h - node.left_h;
    }
    h_left = reduce_block(h_left, Sum());
    h_right = reduce_block(h_right, Sum());
    const i32 missing_left = broadcast_block(unseen_goes_left(h_left, h_right));
    for (u32 i = thread(); i < n_planned; i += block_size()) fit.nodes[fit.planned[i]].missing_left = missing_left;
}

template <Layout layout>
DYNO_DEVICE void choose_common(FitState& fit) {
    if (fit.is_finished) return;
    const i32* frontier = fit.frontier[fit.frontier_at];
    const Candidate cut = best_level_split(fit);
    const bool is_found = cut.gain > 0.0;
    const auto is_split = [&](u32 i) {
        return is_found && split_in_common<layout>(fit, cut, fit.nodes[frontier[i]]) ? 1u : 0u;
    };
    const u32 n = for_each_placed(fit.n_frontier, is_split, [&](u32 i, u32 place, u32 split) {
        if (split) fit.planned[place] = frontier[i];
    });
    const u32 n_planned = n <= room(fit) ? n : 0;
    sync_block();
    if (n_planned > 0 && !fit.may_miss[cut.feature]) settle_unseen(fit, n_planned);
    sync_block();
    expand_planned(fit, n_planned);
}

DYNO_KERNEL(choose_common_count, FitState, GROW_BLOCK) { choose_common<Layout::count>(*state); }
DYNO_KERNEL(choose_common_pair, FitState, GROW_BLOCK) { choose_common<Layout::pair>(*state); }
DYNO_KERNEL(choose_common_counted, FitState, GROW_BLOCK) { choose_common<Layout::counted>(*state); }

}  // namespace dyno
