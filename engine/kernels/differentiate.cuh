// Last tree's leaf values onto the margins, then every row's gradient and hessian and their largest magnitudes
// (contract §5, §10), in one pass; and how rows start before the first tree.
//
// The rows come as pieces of leaves: a block takes a piece, its threads the piece's rows.
// Order-free: a row belongs to one piece, and a maximum of magnitude bits is exact in any order: one atomic a block.
//
// Kernels: differentiate
// Block: 256
// Shared: 32
// Bytes per row: read 4 + 4 + 4 + weight_bytes, written 4 + 8
//
// Kernels: start_rows
// Block: 256
// Bytes per row: read 0, written 8
#pragma once

#include "items.cuh"
#include "reduce.cuh"
#include "state.cuh"

namespace dyno {

// ---- before the first tree -----------------------------------------------------------------------------------------

// Rows in order, cut into pieces as if they were leaves whose value changes no margin: -0.0.
DYNO_DEVICE void start_pieces(FitState& fit, u32 at) {
    const u32 begin = at * LEAF_PIECE_ROWS;
    const i64 end = static_cast<i64>(begin) + LEAF_PIECE_ROWS;
    fit.leaves[at] = {begin, static_cast<u32>(end < fit.n_rows ? end : fit.n_rows), 0, -0.0f};
}

DYNO_DEVICE void fill(float* margins, i64 n_rows, float value) {
    for (i64 row = first_item(); row < n_rows; row += item_stride()) margins[row] = value;
}

DYNO_KERNEL(start_rows, FitState, ROW_BLOCK) {
    const u32 n_pieces = static_cast<u32>((state->n_rows + LEAF_PIECE_ROWS - 1) / LEAF_PIECE_ROWS);
    if (first_item() == 0) state->n_leaves = n_pieces;
    for (i64 at = first_item(); at < n_pieces; at += item_stride()) start_pieces(*state, static_cast<u32>(at));
    for (i64 row = first_item(); row < state->n_rows; row += item_stride()) state->rows[0][row] = static_cast<u32>(row);
    fill(state->margin, state->n_rows, state->base_margin);
    for (i32 e = 0; e < state->n_evals; ++e) fill(state->evals[e].margins, state->evals[e].n_rows, state->base_margin);
}

// ---- every tree ----------------------------------------------------------------------------------------------------

template <Objective objective>
DYNO_FN FloatPair differentiate_row(const FitState& fit, float margin, u32 row) {
    Gradient exact = gradient<objective>(static_cast<double>(margin), static_cast<double>(fit.label[row]));
    if (fit.weight != nullptr && !fit.frequencies) {
        const double weight = static_cast<double>(fit.weight[row]);
        exact.g *= weight;
        exact.h *= weight;
    }
    return {saturate(exact.g), saturate(exact.h)};
}

template <Objective objective>
DYNO_DEVICE void differentiate(FitState& fit) {
    u32 largest_g = 0, largest_h = 0;
    const Largest larger;
    for (u32 piece = block(); piece < fit.n_leaves; piece += grid_size()) {
        const LeafPiece leaf = fit.leaves[piece];
        for (u32 at = leaf.begin + thread(); at < leaf.end; at += block_size()) {
            const u32 row = fit.rows[leaf.buffer][at];
            const float margin = fit.margin[row] + leaf.value;
            fit.margin[row] = margin;
            const FloatPair rounded = differentiate_row<objective>(fit, margin, row);
            fit.gradient[row] = rounded;
            largest_g = larger(largest_g, bits_of(rounded.g) & 0x7fffffffu);
            largest_h = larger(largest_h, bits_of(rounded.h) & 0x7fffffffu);
        }
    }
    largest_g = reduce_block(largest_g, larger);
    largest_h = reduce_block(largest_h, larger);
    if (thread() == 0) {
        atomic_max(&fit.maximum_g, largest_g);
        atomic_max(&fit.maximum_h, largest_h);
    }
}

DYNO_KERNEL(differentiate_squared_error, FitState, ROW_BLOCK) { differentiate<Objective::squared_error>(*state); }
DYNO_KERNEL(differentiate_logistic, FitState, ROW_BLOCK) { differentiate<Objective::logistic>(*state); }
DYNO_KERNEL(differentiate_poisson, FitState, ROW_BLOCK) { differentiate<Objective::poisson>(*state); }

}  // namespace dyno
