// Everything that the kernels of one fit know: buffers, sizes, parameters, and the tree that grows.
//
// One FitState lies in device memory and is every kernel's only argument, so what is launched for a tree never changes.
// The host writes it once (engine/backends/resident_state.py describes the same layout); after that only kernels do.
// Plain data: fixed-size numbers and addresses.
#pragma once

#include "portable.cuh"

namespace dyno {

constexpr u32 TILE_WIDTH = 16;          // features of which a row's bins lie side by side
constexpr u32 LEAF_PIECE_ROWS = 8192;   // rows of a leaf that one block takes at once
constexpr u32 PARTITION_ROWS = 1024;    // likewise of a node that is split
constexpr u32 BUILD_BLOCK = 512;        // threads of what sums rows into shared memory
constexpr u32 GROW_BLOCK = 256;         // threads of everything else that grows a tree

struct FloatPair {
    float g;
    float h;
};

struct alignas(8) QuantisedPair {
    i32 g;
    i32 h;
};

// A node of the tree that grows. Its rows are positions [begin .. end) of rows[depth & 1].
struct Node {
    double gain;       // of its best split; 0 is none, except under a common cut: see is_planned
    i64 left_g;        // sums of that split's left side
    i64 left_h;
    i64 g;             // sums of the node's rows; h counts them where the hessian is constant
    i64 h;
    double own_score;
    i32 feature;
    i32 bin;
    i32 missing_left;
    i32 left;          // children, -1 until it is expanded; -1 in every leaf of a closed tree
    i32 right;
    i32 parent;
    i32 depth;
    i32 slot;          // of its histogram, -1 for none
    i32 is_split;      // in the finished tree
    u32 begin;
    u32 end;
    u32 n_left;        // rows that go left, written by partition
    u32 first_item;    // of its chunks in the partition list
    float value;       // of a leaf
};

// A node of a finished tree, for the host.
struct FinishedNode {
    double gain;
    double cover;
    i64 count;
    i32 feature;
    i32 bin;
    i32 missing_left;
    i32 left;   // -1 in a leaf
    i32 right;
    float value;
};

// The best split of one feature of one node.
struct FeatureSplit {
    double gain;  // 0 for none
    i64 left_g;
    i64 left_h;
    i32 bin;
    i32 missing_left;
};

// Nodes whose splits are to be found: siblings, of which the one of fewer rows is built and the other derived from
// their parent's histogram, which lies in its slot; or the root alone (derived = -1).
struct Search {
    i32 built;
    i32 derived;
};

struct BuildItem {
    i32 slot;
    u32 buffer;  // which of rows[] and pairs[]
    u32 begin;
    u32 end;
};

struct PartitionItem {
    i32 node;
    u32 chunk;  // the node's chunks count from 0
};

// Positions [begin .. end) of rows[buffer], which get a leaf's value.
struct LeafPiece {
    u32 begin;
    u32 end;
    u32 buffer;
    float value;
};

struct EvalPlane {
    Global<const void> columns;
    Global<float> margins;
    i64 n_rows;
};

struct FitState {
    // ---- the data --------------------------------------------------------------------------------------------------
    Global<const void> tiles;          // bin of (row, feature) at ((feature / 16) * n_rows + row) * 16 + feature % 16
    Global<const void> columns;        // the same at feature * n_rows + row
    Global<const i32> value_bins;      // by feature; also the number of its missing bin
    Global<const u32> first_bin;       // by feature, and the end: where its cells lie in a plane; multiples of 32
    Global<const i32> feature_of;      // by 32 cells of a plane
    Global<const float> label;
    Global<const float> weight;        // null for none
    Global<EvalPlane> evals;
    // ---- rows ------------------------------------------------------------------------------------------------------
    Global<float> margin;
    Global<FloatPair> gradient;
    Global<u32> rows[2];               // row numbers in node order
    Global<QuantisedPair> pairs[2];    // their gradients
    // ---- the tree --------------------------------------------------------------------------------------------------
    Global<u64> cells;                 // int64 sums: slot, plane (histogram.cuh), bin
    Global<Node> nodes;                // in order of creation
    Global<FeatureSplit> feature_splits; // built and derived node of a search, feature
    Global<Candidate> level_splits;    // best common cut by 32 cells of a plane
    Global<u32> may_miss;              // by feature: some row's value is missing
    Global<Search> searches;
    Global<i32> frontier[2];           // open nodes in the order that settles ties
    Global<i32> planned;               // nodes to split now, in that order
    Global<double> met_gain;           // of the nodes a best-first replay has met, in order of creation; 0 once split
    Global<i32> met_node;
    Global<BuildItem> build_items;
    Global<BuildItem> direct_items;    // nodes too small for the shared tile
    Global<PartitionItem> partition_items;
    Global<u64> partition_words;       // by item: epoch, flag, rows that go left
    Global<LeafPiece> leaves;          // of the last closed tree
    Global<FinishedNode> trees;        // room for `trees_held` of `most_nodes`
    // ---- sizes -----------------------------------------------------------------------------------------------------
    i64 n_rows;
    u64 slot_cells;            // 64-bit words of a slot
    i32 n_features;
    i32 n_evals;
    u32 n_bins;                // cells of a plane
    u32 group_width;           // features whose cells fit in shared memory together; divides 16
    u32 n_groups;
    u32 n_build_blocks;        // that build items should keep busy
    u32 most_nodes;
    u32 trees_held;
    u32 chunk_rows;            // rows of a build item at the most
    u32 direct_below;          // nodes of fewer rows are summed straight to global memory
    // ---- parameters ------------------------------------------------------------------------------------------------
    Regularisation reg;
    double learning_rate;
    i64 max_leaves;            // 0 is no limit, as for max_depth
    i64 node_budget;           // nodes that best-first waves may make, if the limits leave more than there is room for
    i32 max_depth;
    i32 frequencies;           // weights multiply the quantised gradients
    i32 constant_hessian;
    float base_margin;
    // ---- what changes ----------------------------------------------------------------------------------------------
    i64 root_g;                // sums over all rows: 0 before quantise adds to them
    i64 root_h;
    double scale_g;            // what one unit of a sum is worth
    double scale_h;
    u64 rows_tiled;            // of all trees, for the profile: rows that went through shared tiles,
    u64 rows_direct;           // rows summed straight to global memory,
    u64 rows_partitioned;      // rows moved to children
    u32 maximum_g;             // magnitude bits of the largest gradient: 0 before differentiate raises them
    u32 maximum_h;
    u32 n_leaves;              // pieces in `leaves`
    u32 tree;                  // trees begun, so 1 while the first one grows
    u32 epoch;                 // partitions so far, of all trees
    u32 is_finished;           // nothing is left to split
    u32 n_nodes;
    u32 n_slots;
    u32 n_splits;              // of the tree so far; with best-first, those of all waves
    u32 frontier_at;           // which of frontier[]
    u32 n_frontier;
    u32 n_searches;
    u32 n_build_items;
    u32 n_direct_items;
    u32 n_planned;
    u32 n_partition_items;
    u32 partition_ticket;
};

DYNO_FN u32 n_rows_of(const Node& node) { return node.end - node.begin; }

DYNO_FN double own_score(const FitState& fit, i64 g, i64 h) {
    return score(static_cast<double>(g) * fit.scale_g, static_cast<double>(h) * fit.scale_h, fit.reg);
}

}  // namespace dyno
