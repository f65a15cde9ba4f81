// A forest as prediction reads it: packed once, then good for any rows, threads and instruction set.
//
// Two forms of the same trees. *Nodes* are walked, over values promoted to double: for few rows, and for features with
// more thresholds than a byte tells apart. *Steps* are for many rows: a value becomes its *rank* among the thresholds of
// its feature, a byte; a *test* compares a byte, for 512 rows at a time; and steps choose between the outcomes of tests,
// bit by bit, until they have the number of the row's *entry*, one of at most 256: the leaf, or a node to walk on from.
#pragma once

#include <cstdint>
#include <vector>

#include "predict_kernels.hpp"
#include "semantics.cuh"

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

// A feature as some of the nodes see it: a missing value is below everything where it goes left, else above.
struct Slot {
    i32 feature;
    bool missing_left;
};

// Goes right where its slot's value > bound. Children are neighbours: the right one follows the left. A leaf leads to
// itself, its bound the largest Value.
template <class Value>
struct Node {
    Value bound;
    u32 slot;
    u32 left;
};

// A feature that the forest splits on. A rank is the number of thresholds <= x.
struct RankedFeature {
    i32 feature = 0;
    std::vector<double> thresholds;  // ascending, distinct
    i32 right_slot = -1;             // holds the rank, 255 where missing; -1 if no node sends missing values right
    i32 left_slot = -1;              // holds the rank + 1, 0 where missing
};

// A tree as steps; what there is to know about it is in predict_steps.hpp.
struct SteppedTree {
    u32 first_step;
    u32 n_steps;
    u32 first_entry;
    i32 n_bits;
    WorkWord bits[8];  // where the n_bits of the entries' numbers are then found, the highest first
    bool ends;          // every entry is a leaf
};

// Trees in a row whose tests are made together, once each.
struct TreeGroup {
    i64 begin;
    i64 end;
    u32 first_test;
    u32 n_tests;
};

struct PackedForest {
    explicit PackedForest(const ForestArrays& forest);

    i64 n_trees() const { return static_cast<i64>(roots.size()); }
    i32 n_features() const { return features.empty() ? 0 : features.back().feature + 1; }

    std::vector<RankedFeature> features;  // by feature
    std::vector<Slot> slots;              // at least one, for leaves to look at
    std::vector<Node<double>> nodes;
    std::vector<float> values;   // of each node; 0 in an inner one
    std::vector<i32> original;   // each node's index in its tree as given
    std::vector<u32> roots;

    bool has_ranks = false;  // whether what follows is there
    std::vector<Node<Rank>> rank_nodes;
    std::vector<Test> tests;
    std::vector<Step> steps;
    std::vector<u32> entries;         // nodes; of each tree 2^n_bits, at least 16
    std::vector<float> entry_values;  // of entries that are leaves
    std::vector<SteppedTree> stepped;
    std::vector<TreeGroup> groups;
    u32 work_size = FIRST_TEST;
};

}  // namespace dyno
