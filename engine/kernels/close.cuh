// Ends a tree: leaf values (contract §10), the pieces of leaves whose rows get them, and the nodes for the host.
//
// close       every node that was expanded is split.
// close_best  leafwise: a last replay says which of them are; a leaf's rows lie with its descendants, if it has any.
//
// One block. Order-free: each node's values are one thread's own.
//
// Kernels: close
// Block: 256
// Shared: 1024
// Bytes per row: none
#pragma once

#include "lists.cuh"
#include "replay.cuh"

namespace dyno {

DYNO_FN float leaf_value(const FitState& fit, const Node& node) {
    const double g = static_cast<double>(node.g) * fit.scale_g, h = static_cast<double>(node.h) * fit.scale_h;
    return saturate(fit.learning_rate * leaf_weight(g, h, fit.reg));
}

// The leaf of the finished tree that holds the rows of a node without children.
DYNO_FN const Node& leaf_above(const FitState& fit, i32 index) {
    i32 leaf = index;
    for (; index >= 0; index = fit.nodes[index].parent)
        if (!fit.nodes[index].is_split) leaf = index;
    return fit.nodes[leaf];
}

DYNO_DEVICE void list_pieces(FitState& fit) {
    const auto n_pieces = [&](u32 i) {
        const Node& node = fit.nodes[i];
        return node.left < 0 ? (n_rows_of(node) + LEAF_PIECE_ROWS - 1) / LEAF_PIECE_ROWS : 0;
    };
    const u32 n = for_each_placed(fit.n_nodes, n_pieces, [&](u32 i, u32 place, u32 pieces) {
        if (pieces == 0) return;
        const Node& node = fit.nodes[i];
        const float value = leaf_above(fit, static_cast<i32>(i)).value;
        for (u32 piece = 0; piece < pieces; ++piece) {
            const u32 begin = node.begin + piece * LEAF_PIECE_ROWS;
            const u32 end = piece + 1 < pieces ? begin + LEAF_PIECE_ROWS : node.end;
            fit.leaves[place + piece] = {begin, end, static_cast<u32>(node.depth & 1), value};
        }
    });
    if (thread() == 0) fit.n_leaves = n;
}

DYNO_FN FinishedNode finished(const FitState& fit, const Node& node) {
    const double cover = static_cast<double>(node.h) * fit.scale_h;
    const i64 count = n_rows_of(node);
    if (!node.is_split) return {0.0, cover, count, -1, -1, 0, -1, -1, node.value};
    return {node.gain, cover, count, node.feature, node.bin, node.missing_left, node.left, node.right, 0.0f};
}

DYNO_DEVICE void close_tree(FitState& fit) {
    for (u32 i = thread(); i < fit.n_nodes; i += block_size()) fit.nodes[i].value = leaf_value(fit, fit.nodes[i]);
    sync_block();
    list_pieces(fit);
    sync_block();
    FinishedNode* tree = fit.trees + static_cast<u64>((fit.tree - 1) % fit.trees_held) * fit.most_nodes;
    for (u32 i = thread(); i < fit.n_nodes; i += block_size()) {
        Node& node = fit.nodes[i];
        if (!node.is_split) node.left = node.right = -1;
        tree[i] = finished(fit, node);
    }
}

DYNO_KERNEL(close, FitState, GROW_BLOCK) { close_tree(*state); }

DYNO_KERNEL(close_best, FitState, GROW_BLOCK) {
    for (u32 i = thread(); i < state->n_nodes; i += block_size()) state->nodes[i].is_split = 0;
    sync_block();
    if (warp() == 0) {
        replay_best_first(*state, [&](i32 index) {
            if (lane() == 0) state->nodes[index].is_split = 1;
        });
    }
    sync_block();
    close_tree(*state);
}

}  // namespace dyno
