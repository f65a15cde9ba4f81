// What the next round looks at: segments and slots of new nodes, the frontier, and the lists that find and build read.
//
// open_root    starts a tree. open_every, open_best, open_common follow a partition; they differ in the frontier.
// open_again   lists the root's build anew.
// Of two siblings the one of fewer rows is built, in a slot of its own; the other takes over its parent's slot and is
// derived there. No slot is ever given back within a tree: there are as many as the tree may have leaves.
//
// One block. Order-free: lists are written at prefix sums.
//
// Kernels: open
// Block: 256
// Shared: 1024
// Bytes per row: none
#pragma once

#include "choose.cuh"

namespace dyno {

constexpr u32 LEAST_CHUNK_ROWS = 512;  // fewer are not worth clearing and flushing a tile for

// ---- build lists --------------------------------------------------------------------------------------------------

DYNO_FN const Node& built_node(const FitState& fit, u32 search) { return fit.nodes[fit.searches[search].built]; }

DYNO_FN bool is_tiled(const FitState& fit, const Node& node) { return n_rows_of(node) >= fit.direct_below; }

// Small enough to keep every processor busy, not smaller.
DYNO_DEVICE u32 rows_of_chunk(const FitState& fit, u32 n_tiled_rows) {
    const u32 n_chunks = (fit.n_build_blocks + fit.n_groups - 1) / fit.n_groups;
    u32 rows = n_tiled_rows / n_chunks + 1;
    rows = rows < fit.chunk_rows ? rows : fit.chunk_rows;
    return rows > LEAST_CHUNK_ROWS ? rows : LEAST_CHUNK_ROWS;
}

DYNO_FN BuildItem build_item(const Node& node, u32 begin, u32 end) {
    return {node.slot, static_cast<u32>(node.depth & 1), begin, end < node.end ? end : node.end};
}

DYNO_DEVICE void list_builds(FitState& fit, u32 n_searches) {
    u32 own_tiled = 0, own_direct = 0;
    for (u32 i = thread(); i < n_searches; i += block_size())
        (is_tiled(fit, built_node(fit, i)) ? own_tiled : own_direct) += n_rows_of(built_node(fit, i));
    const u32 n_tiled_rows = sum_block(own_tiled), n_direct_rows = sum_block(own_direct);
    const u32 rows = rows_of_chunk(fit, n_tiled_rows);
    const auto n_chunks = [&](u32 i) {
        const Node& node = built_node(fit, i);
        return is_tiled(fit, node) ? (n_rows_of(node) + rows - 1) / rows : 0;
    };
    const u32 n_build_items = for_each_placed(n_searches, n_chunks, [&](u32 i, u32 place, u32 n) {
        const Node& node = built_node(fit, i);
        for (u32 chunk = 0; chunk < n; ++chunk) {
            const u32 begin = node.begin + chunk * rows;
            fit.build_items[place + chunk] = build_item(node, begin, begin + rows);
        }
    });
    const auto is_direct = [&](u32 i) { return is_tiled(fit, built_node(fit, i)) ? 0u : 1u; };
    const u32 n_direct_items = for_each_placed(n_searches, is_direct, [&](u32 i, u32 place, u32 direct) {
        const Node& node = built_node(fit, i);
        if (direct) fit.direct_items[place] = build_item(node, node.begin, node.end);
    });
    if (thread() != 0) return;
    fit.n_searches = n_searches;
    fit.n_build_items = n_build_items;
    fit.n_direct_items = n_direct_items;
    fit.rows_tiled += n_tiled_rows;
    fit.rows_direct += n_direct_rows;
}

// ---- searches -----------------------------------------------------------------------------------------------------

DYNO_FN bool may_be_split(const FitState& fit, const Node& node) {
    const bool is_deepest = fit.max_depth != 0 && node.depth >= fit.max_depth;
    return !is_deepest && static_cast<i64>(n_rows_of(node)) >= 2 * fit.reg.min_samples_leaf;
}

// Siblings by rows: the built one is the smaller, the left one of equals.
DYNO_FN Search siblings(const Node& parent) {
    const bool left_is_smaller = 2 * static_cast<i64>(parent.n_left) <= n_rows_of(parent);
    return left_is_smaller ? Search{parent.left, parent.right} : Search{parent.right, parent.left};
}

DYNO_FN void set_segments(const FitState& fit, const Node& parent) {
    Node& left = fit.nodes[parent.left];
    Node& right = fit.nodes[parent.right];
    left.begin = parent.begin;
    left.end = right.begin = parent.begin + parent.n_left;
    right.end = parent.end;
}

// Segments of all new nodes; a search for every pair of which at least the larger may be split.
DYNO_DEVICE void open_children(FitState& fit, bool has_room) {
    const u32 first_slot = fit.n_slots;
    u32 own_rows = 0;
    const auto is_searched = [&](u32 i) {
        const Node& parent = fit.nodes[fit.planned[i]];
        set_segments(fit, parent);
        own_rows += n_rows_of(parent);
        return has_room && may_be_split(fit, fit.nodes[siblings(parent).derived]) ? 1u : 0u;
    };
    const u32 n = for_each_placed(fit.n_planned, is_searched, [&](u32 i, u32 place, u32 searched) {
        if (!searched) return;
        const Node& parent = fit.nodes[fit.planned[i]];
        const Search search = siblings(parent);
        fit.searches[place] = search;
        fit.nodes[search.derived].slot = parent.slot;
        fit.nodes[search.built].slot = static_cast<i32>(first_slot + place);
    });
    const u32 n_partitioned_rows = sum_block(own_rows);
    if (thread() == 0) {
        fit.n_slots = first_slot + n;
        fit.rows_partitioned += n_partitioned_rows;
    }
    list_builds(fit, n);
}

// ---- the frontier -------------------------------------------------------------------------------------------------

// Children in their parent's place; of the other nodes, those that stay open.
DYNO_DEVICE void advance_frontier(FitState& fit, bool others_stay) {
    const u32 at = fit.frontier_at;
    const i32* from = fit.frontier[at];
    i32* to = fit.frontier[1 - at];
    const u32 stay = others_stay && fit.n_planned > 0 ? 1 : 0;
    const auto n_open = [&](u32 i) { return fit.nodes[from[i]].left >= 0 ? 2u : stay; };
    const u32 n = for_each_placed(fit.n_frontier, n_open, [&](u32 i, u32 place, u32 open) {
        const Node& node = fit.nodes[from[i]];
        if (open > 0) to[place] = open == 2 ? node.left : from[i];
        if (open == 2) to[place + 1] = node.right;
    });
    sync_block();
    if (thread() != 0) return;
    fit.n_frontier = n;
    fit.frontier_at = 1 - at;
}

DYNO_KERNEL(open_every, FitState, GROW_BLOCK) {
    const bool has_room = room(*state) > 0;
    advance_frontier(*state, false);
    open_children(*state, has_room);
}

DYNO_KERNEL(open_common, FitState, GROW_BLOCK) {
    const bool has_room = room(*state) > 0;
    advance_frontier(*state, true);
    open_children(*state, has_room);
}

// Best first has no frontier: the replay knows which leaves are open, and whether there is room.
DYNO_KERNEL(open_best, FitState, GROW_BLOCK) { open_children(*state, true); }

// ---- the root -----------------------------------------------------------------------------------------------------

// Takes the sums of all rows, and leaves what the next tree's gradients are measured by as they must find it.
DYNO_DEVICE void start_tree(FitState& fit) {
    Node root = new_node(fit, -1, 0, fit.root_g, fit.root_h);
    root.end = static_cast<u32>(fit.n_rows);
    root.slot = 0;
    fit.nodes[0] = root;
    fit.searches[0] = {0, -1};
    fit.frontier[0][0] = 0;
    fit.root_g = fit.root_h = 0;
    fit.maximum_g = fit.maximum_h = 0;
    fit.tree += 1;
    fit.is_finished = 0;
    fit.n_nodes = fit.n_slots = fit.n_frontier = 1;
    fit.n_splits = fit.frontier_at = 0;
}

DYNO_KERNEL(open_root, FitState, GROW_BLOCK) {
    if (thread() == 0) start_tree(*state);
    sync_block();
    const bool is_searched = state->max_leaves != 1 && may_be_split(*state, state->nodes[0]);
    if (!is_searched && thread() == 0) state->nodes[0].slot = -1;
    list_builds(*state, is_searched ? 1 : 0);
}

// For the tuner, which changes the root's segment and how it is to be built.
DYNO_KERNEL(open_again, FitState, GROW_BLOCK) { list_builds(*state, 1); }

}  // namespace dyno
