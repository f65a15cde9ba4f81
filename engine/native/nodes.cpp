#include "nodes.hpp"

namespace dyno {
namespace {

std::vector<i32> breadth_first(const std::vector<Node>& nodes) {
    std::vector<i32> order{0};
    order.reserve(nodes.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Node& node = nodes[order[i]];
        if (node.is_leaf()) continue;
        order.push_back(node.left);
        order.push_back(node.right);
    }
    return order;
}

}  // namespace

void FinishedTrees::append(const std::vector<Node>& nodes, const std::vector<float>& values, const Scoring& scoring) {
    i32 next_child = 1;  // breadth first, children come in the order of their parents
    for (const i32 index : breadth_first(nodes)) {
        const Node& node = nodes[index];
        const bool is_leaf = node.is_leaf();
        const Candidate& split = node.best.candidate;
        feature.push_back(is_leaf ? -1 : split.feature);
        bin.push_back(is_leaf ? -1 : split.bin);
        missing_left.push_back(is_leaf ? 0 : static_cast<std::uint8_t>(split.missing_left));
        left.push_back(is_leaf ? -1 : next_child);
        right.push_back(is_leaf ? -1 : next_child + 1);
        next_child += is_leaf ? 0 : 2;
        leaf.push_back(is_leaf);
        value.push_back(is_leaf ? values[index] : 0.0f);
        gain.push_back(is_leaf ? 0.0 : split.gain);
        cover.push_back(scoring.hessian(node.totals));
        count.push_back(node.rows());
    }
    offsets.push_back(static_cast<i64>(feature.size()));
}

}  // namespace dyno
