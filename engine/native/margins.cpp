#include "margins.hpp"

#include <algorithm>

namespace dyno {
namespace {

constexpr i64 kChunk = 16384;

struct Piece {
    i64 begin;
    i64 end;
    float value;
};

// A node as routing sees it: bins `<= bin` or `== also` go left.
struct Step {
    i32 feature;
    i32 bin;
    i32 also;
    i32 child[2];
};

std::vector<Step> steps_of(const std::vector<Node>& nodes, const Plane& plane) {
    std::vector<Step> steps;
    steps.reserve(nodes.size());
    for (const Node& node : nodes) {
        const Candidate& split = node.best.candidate;
        if (node.is_leaf()) steps.push_back({-1, 0, 0, {-1, -1}});
        else
            steps.push_back({split.feature,
                             split.bin,
                             split.missing_left ? plane.value_bins[split.feature] : split.bin,
                             {node.right, node.left}});
    }
    return steps;
}

template <class Bin>
void route(const std::vector<Step>& steps, const std::vector<float>& values, const Plane& plane, i64 begin, i64 end,
           float* margins) {
    for (i64 row = begin; row < end; ++row) {
        const Bin* bins = plane.row<Bin>(row);
        i32 at = 0;
        while (steps[at].feature >= 0) {
            const Step& step = steps[at];
            const i32 bin = bins[step.feature];
            at = step.child[(bin <= step.bin) | (bin == step.also)];
        }
        margins[row] += values[at];
    }
}

}  // namespace

void add_leaf_values(const std::vector<Node>& nodes, const std::vector<float>& values, const i32* rows, float* margins,
                     Team& team) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].is_leaf()) continue;
        for (i64 begin = nodes[i].begin; begin < nodes[i].end; begin += kChunk)
            pieces.push_back({begin, std::min(begin + kChunk, nodes[i].end), values[i]});
    }
    team.run(static_cast<i64>(pieces.size()), [&](i64 p, int) {
        const Piece& piece = pieces[p];
        for (i64 i = piece.begin; i < piece.end; ++i) margins[rows[i]] += piece.value;
    });
}

void add_routed_values(const std::vector<Node>& nodes, const std::vector<float>& values, const Plane& plane,
                       float* margins, Team& team) {
    const std::vector<Step> steps = steps_of(nodes, plane);
    const auto run = plane.wide ? route<std::uint16_t> : route<std::uint8_t>;
    team.run((plane.n_rows + kChunk - 1) / kChunk, [&](i64 chunk, int) {
        run(steps, values, plane, chunk * kChunk, std::min((chunk + 1) * kChunk, plane.n_rows), margins);
    });
}

}  // namespace dyno
