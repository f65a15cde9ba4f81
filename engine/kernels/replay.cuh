// Best-first growth over what is known: the order in which leaves would be split one at a time (contract §9).
#pragma once

#include "state.cuh"

namespace dyno {

struct Met {
    double gain;  // 0 for none
    u32 order;    // of creation
};

DYNO_FN bool is_popped_before(const Met& a, const Met& b) {
    return a.gain != b.gain ? a.gain > b.gain : a.order < b.order;
}

DYNO_DEVICE Met next_popped(const double* gains, u32 n_met) {
    Met best = {0.0, 0};
    for (u32 order = lane(); order < n_met; order += WARP_SIZE) {
        const Met met = {gains[order], order};
        if (is_popped_before(met, best)) best = met;
    }
    for (u32 bit = WARP_SIZE / 2; bit > 0; bit /= 2) {
        const Met other = {shuffle_xor(WHOLE_WARP, best.gain, bit), shuffle_xor(WHOLE_WARP, best.order, bit)};
        if (is_popped_before(other, best)) best = other;
    }
    return best;
}

// Pops leaves up to the leaf budget and calls pop(node) for each, in order, by all lanes of the one warp that calls.
// A node that has not been expanded yet is a leaf whose children nobody knows: nothing takes its place.
template <class Pop>
DYNO_DEVICE void replay_best_first(const FitState& fit, Pop&& pop) {
    const auto meet = [&](i32 index, u32 order) {
        fit.met_node[order] = index;
        fit.met_gain[order] = fit.nodes[index].gain;
    };
    if (lane() == 0) meet(0, 0);
    sync_warp(WHOLE_WARP);
    u32 n_met = 1;
    for (i64 n_leaves = 1; n_leaves < fit.max_leaves; ++n_leaves) {
        const Met best = next_popped(fit.met_gain, n_met);
        if (!(best.gain > 0.0)) return;
        const i32 index = fit.met_node[best.order];
        const Node& node = fit.nodes[index];
        const bool is_expanded = node.left >= 0;
        sync_warp(WHOLE_WARP);  // all have looked
        if (lane() == 0) {
            fit.met_gain[best.order] = 0.0;
            if (is_expanded) {
                meet(node.left, n_met);
                meet(node.right, n_met + 1);
            }
        }
        if (is_expanded) n_met += 2;
        pop(index);
        sync_warp(WHOLE_WARP);
    }
}

}  // namespace dyno
