// Prediction (contract §10): the leaf of every row in every tree, and the sum of their values.
#pragma once

#include <functional>
#include <vector>

#include "predict_pack.hpp"
#include "predict_ranks.hpp"

namespace dyno {

struct PredictRun {
    int n_threads;
    InstructionSet instruction_set;
    std::function<void()> pause;  // called now and then by the caller's own thread; what it throws ends the prediction
};

// Rows as the caller gave them.
struct RawRows {
    std::vector<Column> columns;  // at least the forest's n_features()
    i64 n_rows;
    bool check;                   // whether infinities are to be looked for
};

// How many threads so many rows are worth starting.
int useful_threads(const PackedForest& forest, i64 n_rows);

// `out` of margins has n_rows, base_margin plus the trees' values, in float32, tree after tree; of responses, what the
// objective makes of these (contract §5). `out` of leaves is n_rows x n_trees, row-major, nodes of their trees as given.
// False if an infinity was seen: `out` is then not complete.
bool predict_margins(const PackedForest& forest, const RawRows& rows, float base_margin, float* out,
                     const PredictRun& run);
bool predict_responses(const PackedForest& forest, const RawRows& rows, float base_margin, Objective objective,
                       double* out, const PredictRun& run);
bool predict_leaves(const PackedForest& forest, const RawRows& rows, i32* out, const PredictRun& run);

// The same from bins; the forest has ranks, and `ranks.fit()`.
void predict_margins(const PackedForest& forest, const BinRanks& ranks, i64 n_rows, float base_margin, float* out,
                     const PredictRun& run);
void predict_responses(const PackedForest& forest, const BinRanks& ranks, i64 n_rows, float base_margin,
                       Objective objective, double* out, const PredictRun& run);
void predict_leaves(const PackedForest& forest, const BinRanks& ranks, i64 n_rows, i32* out, const PredictRun& run);

// Responses to margins that were found elsewhere.
void respond(Objective objective, const float* margins, i64 n_rows, double* out, const PredictRun& run);

}  // namespace dyno
