// Stable partition of the rows of planned nodes (contract §10).
#pragma once

#include <vector>

#include "instruction_set.hpp"
#include "nodes.hpp"
#include "plane.hpp"
#include "team.hpp"

namespace dyno {

class RowOrder {
public:
    RowOrder(const Plane& plane, InstructionSet set);

    void reset(Team& team);
    const i32* rows() const { return reinterpret_cast<const i32*>(rows_.data()); }

    // Orders the segment of each node by its best split, left rows first; returns each one's number of left rows.
    std::vector<i64> partition(const std::vector<Node>& nodes, const std::vector<i32>& planned, Team& team);

private:
    const Plane& plane_;
    InstructionSet set_;
    AlignedBytes rows_;
    AlignedBytes divided_;  // where chunks put their rows, right before left, until a node's are all counted
};

}  // namespace dyno
