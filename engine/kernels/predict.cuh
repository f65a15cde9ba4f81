// Margins of raw rows under a forest (contract §10): the base margin, then every tree's leaf value in tree order.
//
// One thread takes one row through all trees; any grid will do. The additions are float32, as everywhere.
// Order-free: a row's margin is one thread's own.
//
// Kernels: predict
// Block: 256
// Bytes per row: read trees * depth * (32 + value_bytes), written 4
#pragma once

#include "items.cuh"
#include "raw.cuh"

namespace dyno {

struct PredictNode {
    double threshold;  // raw values below it go left
    i32 feature;
    i32 left;  // -1 in a leaf; children count from the tree's root
    i32 right;
    i32 missing_left;
    float value;  // of a leaf
    u32 unused;
};

struct PredictState {
    const RawColumn* columns;
    const PredictNode* nodes;  // all trees, one after the other
    const i64* roots;          // each tree's first node
    float* margins;
    i64 n_rows;
    i64 n_trees;
    float base_margin;
    u32 unused;
};

DYNO_FN float leaf_value(const PredictNode* tree, const RawColumn* columns, i64 row) {
    PredictNode node = tree[0];
    while (node.left >= 0) {
        const double value = raw_value(columns[node.feature], row);
        const bool goes_left = value != value ? node.missing_left != 0 : value < node.threshold;
        node = tree[goes_left ? node.left : node.right];
    }
    return node.value;
}

DYNO_KERNEL(predict, PredictState, ROW_BLOCK) {
    for (i64 row = first_item(); row < state->n_rows; row += item_stride()) {
        float margin = state->base_margin;
        for (i64 tree = 0; tree < state->n_trees; ++tree)
            margin += leaf_value(state->nodes + state->roots[tree], state->columns, row);
        state->margins[row] = margin;
    }
}

}  // namespace dyno
