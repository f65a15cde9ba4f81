// Prediction over raw values (contract §10), for a forest as Python keeps it.
#pragma once

#include <vector>

#include "ingest_columns.hpp"

namespace dyno {

// Node arrays of all trees one after the other; children count from their tree's first node. Sound: Forest checked it.
struct ForestArrays {
    const i32* feature;
    const double* threshold;
    const unsigned char* missing_left;
    const i32* left;
    const i32* right;
    const unsigned char* leaf;
    const float* value;
    const i64* offsets;  // n_trees + 1
    i64 n_trees;
};

// base_margin plus the trees' values, in float32, tree after tree.
void predict_margins(const std::vector<Column>& columns, i64 n_rows, const ForestArrays& forest, float base_margin,
                     float* margins, int n_threads);

// The leaf a row ends in, as a node of its tree: n_rows x n_trees, row-major.
void predict_leaves(const std::vector<Column>& columns, i64 n_rows, const ForestArrays& forest, i32* leaves,
                    int n_threads);

}  // namespace dyno
