// Gradients of every row, quantised once per tree (contract §5, §6).
#pragma once

#include <vector>

#include "instruction_set.hpp"
#include "nodes.hpp"
#include "plane.hpp"
#include "team.hpp"

namespace dyno {

// Quantised gradients of all rows; h is null for a constant hessian.
struct RowGradients {
    const i32* g;
    const i32* h;
};

class Gradients {
public:
    // Borrows label and weight (null for none).
    Gradients(Objective objective, const float* label, const float* weight, i64 n_rows, InstructionSet set);

    // From the margins; sums over all rows come back.
    Totals quantise_all(const float* margin, Team& team);

    // Every row has h = 1: histograms then count rows instead, and g alone is quantised.
    bool has_constant_hessian() const { return constant_hessian_; }
    RowGradients rows() const {
        return {reinterpret_cast<const i32*>(g_.data()),
                constant_hessian_ ? nullptr : reinterpret_cast<const i32*>(h_.data())};
    }
    double scale_g() const { return scale_g_; }  // what one unit of a sum is worth
    double scale_h() const { return scale_h_; }

private:
    Objective objective_;
    const float* label_;
    const float* weight_;
    i64 n_rows_;
    InstructionSet set_;
    bool constant_hessian_;
    bool frequencies_;  // weights multiply the quantised integers instead of the gradients
    AlignedBytes g_;    // the float32 bits first, the quantised integers in their place after
    AlignedBytes h_;
    double scale_g_ = 1.0;
    double scale_h_ = 1.0;
};

}  // namespace dyno
