// What a finished tree adds to the margins (contract §10).
#pragma once

#include <vector>

#include "nodes.hpp"
#include "plane.hpp"
#include "team.hpp"

namespace dyno {

// Training rows already lie in the segment of their leaf. `values` holds one number a node.
void add_leaf_values(const std::vector<Node>& nodes, const std::vector<float>& values, const i32* rows, float* margins,
                     Team& team);

// Rows of another plane of the same cuts find their leaf by their bins.
void add_routed_values(const std::vector<Node>& nodes, const std::vector<float>& values, const Plane& plane,
                       float* margins, Team& team);

}  // namespace dyno
