// Trees as tests and steps (predict_pack.hpp): which bits number a row's entry, and how they come from the tests.
//
// The entries are the leaves of the tree's top: of as many nodes, breadth first, as leave it at most 256. Each has a
// range of numbers of its own, left to right; any number of the range means the entry, so that below a range's common
// upper bits no step has to be made. A tree that is full to its depth numbers its leaves by their ways.
// Where a tree has hardly more distinct tests than levels (levelwise: one a level), the tests are the number themselves,
// without a step, and the entries are a table of all their outcomes.
#pragma once

#include "predict_pack.hpp"

namespace dyno {

// Fills in the tests, steps and entries of a forest that has ranked nodes.
void pack_steps(PackedForest& forest);

}  // namespace dyno
