// Gradients as integers of at most 28 bits (contract §6), in row order, and the sums of all rows.
//
// Each thread reads the maxima and so knows the exponents. One thread takes one row; any grid will do.
// Order-free: a row is one thread's own, and the sums are integer sums: two 64-bit atomics a block.
//
// Kernels: quantise_rows
// Block: 256
// Shared: 64
// Bytes per row: read 8 + weight_bytes, written 8 + 4
#pragma once

#include "items.cuh"
#include "reduce.cuh"
#include "state.cuh"

namespace dyno {

// With a constant hessian, sums of h count rows.
DYNO_FN QuantisedPair quantise_row(const FitState& fit, FloatPair value, i64 row, double scale_g, double scale_h) {
    QuantisedPair q = {quantise(value.g, scale_g), fit.constant_hessian ? 1 : quantise_hessian(value.h, scale_h)};
    if (fit.frequencies) {
        const i32 times = static_cast<i32>(fit.weight[row]);
        q.g *= times;
        q.h *= times;
    }
    return q;
}

DYNO_KERNEL(quantise_rows, FitState, ROW_BLOCK) {
    const int exponent_g = quantise_exponent(float_of(state->maximum_g));
    const int exponent_h = state->constant_hessian ? 0 : quantise_exponent(float_of(state->maximum_h));
    const double scale_g = power_of_two(exponent_g), scale_h = power_of_two(exponent_h);
    i64 sum_g = 0, sum_h = 0;
    for (i64 row = first_item(); row < state->n_rows; row += item_stride()) {
        const QuantisedPair q = quantise_row(*state, state->gradient[row], row, scale_g, scale_h);
        state->pairs[0][row] = q;
        state->rows[0][row] = static_cast<u32>(row);
        sum_g += q.g;
        sum_h += q.h;
    }
    sum_g = reduce_block(sum_g, Sum());
    sum_h = reduce_block(sum_h, Sum());
    if (thread() == 0) {
        atomic_add(&state->root_g, sum_g);
        atomic_add(&state->root_h, sum_h);
    }
    if (first_item() == 0) {
        state->scale_g = power_of_two(-exponent_g);
        state->scale_h = power_of_two(-exponent_h);
    }
}

}  // namespace dyno
