// Where the fields of the structures that the host shares with the kernels lie, by the compiler's own account.
#include <cstddef>
#include <cstring>

#include "state.cuh"

namespace {

struct Field {
    const char* name;
    std::size_t offset;
    std::size_t size;
};

#define FIELD(Struct, name) {#Struct "." #name, offsetof(dyno::Struct, name), sizeof(dyno::Struct::name)}
#define WHOLE(Struct) {#Struct, 0, sizeof(dyno::Struct)}

const Field fields[] = {
    FIELD(FitState, tiles),
    FIELD(FitState, columns),
    FIELD(FitState, value_bins),
    FIELD(FitState, first_bin),
    FIELD(FitState, feature_of),
    FIELD(FitState, label),
    FIELD(FitState, weight),
    FIELD(FitState, evals),
    FIELD(FitState, margin),
    FIELD(FitState, gradient),
    FIELD(FitState, rows),
    FIELD(FitState, pairs),
    FIELD(FitState, cells),
    FIELD(FitState, nodes),
    FIELD(FitState, feature_splits),
    FIELD(FitState, level_splits),
    FIELD(FitState, may_miss),
    FIELD(FitState, searches),
    FIELD(FitState, frontier),
    FIELD(FitState, planned),
    FIELD(FitState, met_gain),
    FIELD(FitState, met_node),
    FIELD(FitState, build_items),
    FIELD(FitState, direct_items),
    FIELD(FitState, partition_items),
    FIELD(FitState, partition_words),
    FIELD(FitState, leaves),
    FIELD(FitState, trees),
    FIELD(FitState, n_rows),
    FIELD(FitState, slot_cells),
    FIELD(FitState, n_features),
    FIELD(FitState, n_evals),
    FIELD(FitState, n_bins),
    FIELD(FitState, group_width),
    FIELD(FitState, n_groups),
    FIELD(FitState, n_build_blocks),
    FIELD(FitState, most_nodes),
    FIELD(FitState, trees_held),
    FIELD(FitState, chunk_rows),
    FIELD(FitState, direct_below),
    FIELD(FitState, reg),
    FIELD(FitState, learning_rate),
    FIELD(FitState, max_leaves),
    FIELD(FitState, node_budget),
    FIELD(FitState, max_depth),
    FIELD(FitState, frequencies),
    FIELD(FitState, constant_hessian),
    FIELD(FitState, base_margin),
    FIELD(FitState, root_g),
    FIELD(FitState, root_h),
    FIELD(FitState, scale_g),
    FIELD(FitState, scale_h),
    FIELD(FitState, rows_tiled),
    FIELD(FitState, rows_direct),
    FIELD(FitState, rows_partitioned),
    FIELD(FitState, maximum_g),
    FIELD(FitState, maximum_h),
    FIELD(FitState, n_leaves),
    FIELD(FitState, tree),
    FIELD(FitState, epoch),
    FIELD(FitState, is_finished),
    FIELD(FitState, n_nodes),
    FIELD(FitState, n_slots),
    FIELD(FitState, n_splits),
    FIELD(FitState, frontier_at),
    FIELD(FitState, n_frontier),
    FIELD(FitState, n_searches),
    FIELD(FitState, n_build_items),
    FIELD(FitState, n_direct_items),
    FIELD(FitState, n_planned),
    FIELD(FitState, n_partition_items),
    FIELD(FitState, partition_ticket),
    FIELD(Node, end),
    FIELD(FinishedNode, gain),
    FIELD(FinishedNode, cover),
    FIELD(FinishedNode, count),
    FIELD(FinishedNode, feature),
    FIELD(FinishedNode, bin),
    FIELD(FinishedNode, missing_left),
    FIELD(FinishedNode, left),
    FIELD(FinishedNode, right),
    FIELD(FinishedNode, value),
    FIELD(EvalPlane, columns),
    FIELD(EvalPlane, margins),
    FIELD(EvalPlane, n_rows),
    FIELD(Regularisation, lambda),
    FIELD(Regularisation, alpha),
    FIELD(Regularisation, gamma),
    FIELD(Regularisation, min_child_weight),
    FIELD(Regularisation, min_samples_leaf),
    WHOLE(FitState),
    WHOLE(FinishedNode),
    WHOLE(EvalPlane),
    WHOLE(Regularisation),
    WHOLE(Node),
    WHOLE(FeatureSplit),
    WHOLE(Candidate),
    WHOLE(Search),
    WHOLE(BuildItem),
    WHOLE(PartitionItem),
    WHOLE(LeafPiece),
    WHOLE(FloatPair),
    WHOLE(QuantisedPair),
};

}  // namespace

// Offset and size of "Struct.field", or 0 and the size of "Struct"; false if there is no such name.
extern "C" bool state_layout(const char* name, std::size_t* offset, std::size_t* size) {
    for (const Field& field : fields) {
        if (std::strcmp(field.name, name) != 0) continue;
        *offset = field.offset;
        *size = field.size;
        return true;
    }
    return false;
}
