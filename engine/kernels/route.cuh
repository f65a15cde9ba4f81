// A finished tree's leaf values onto the margins of eval rows, by the bins of their planes (contract §10).
//
// One thread takes one row from the root to its leaf; any grid will do. All eval planes in one launch.
// Order-free: a row's margin is one thread's own.
//
// Kernels: route
// Block: 256
// Bytes per row: read depth * (32 + bin_bytes) + 4, written 4
#pragma once

#include "items.cuh"
#include "state.cuh"

namespace dyno {

template <class Bin>
DYNO_FN float routed_value(const FitState& fit, const EvalPlane& plane, i64 row) {
    const Bin* columns = reinterpret_cast<const Bin*>(plane.columns.address);
    const Node* node = fit.nodes;
    while (node->left >= 0) {
        const i32 bin = columns[node->feature * plane.n_rows + row];
        const bool left = goes_left(bin, node->bin, fit.value_bins[node->feature], node->missing_left);
        node = fit.nodes + (left ? node->left : node->right);
    }
    return node->value;
}

template <class Bin>
DYNO_DEVICE void route(const FitState& fit) {
    for (i32 e = 0; e < fit.n_evals; ++e) {
        const EvalPlane plane = fit.evals[e];
        for (i64 row = first_item(); row < plane.n_rows; row += item_stride())
            plane.margins[row] += routed_value<Bin>(fit, plane, row);
    }
}

DYNO_KERNEL(route_u8, FitState, ROW_BLOCK) { route<unsigned char>(*state); }
DYNO_KERNEL(route_u16, FitState, ROW_BLOCK) { route<unsigned short>(*state); }

}  // namespace dyno
