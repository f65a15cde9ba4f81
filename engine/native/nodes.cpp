#include "nodes.hpp"

namespace dyno {

std::vector<Node> breadth_first(const std::vector<Node>& nodes) {
    std::vector<Node> ordered{nodes[0]};
    for (std::size_t i = 0; i < ordered.size(); ++i) {
        if (ordered[i].is_leaf()) continue;
        const Node& left = nodes[ordered[i].left];
        const Node& right = nodes[ordered[i].right];
        ordered[i].left = static_cast<i32>(ordered.size());
        ordered[i].right = ordered[i].left + 1;
        ordered.push_back(left);
        ordered.push_back(right);
    }
    return ordered;
}

void FinishedTrees::reserve(std::size_t n_nodes) {
    for (auto* of : {&feature, &bin, &left, &right}) of->reserve(n_nodes);
    for (auto* of : {&missing_left, &leaf}) of->reserve(n_nodes);
    for (auto* of : {&gain, &cover}) of->reserve(n_nodes);
    value.reserve(n_nodes);
    count.reserve(n_nodes);
}

void FinishedTrees::append(const std::vector<Node>& nodes, const std::vector<float>& values, const Scoring& scoring) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const Node& node = nodes[i];
        const bool is_leaf = node.is_leaf();
        const Candidate& split = node.best.candidate;
        feature.push_back(is_leaf ? -1 : split.feature);
        bin.push_back(is_leaf ? -1 : split.bin);
        missing_left.push_back(is_leaf ? 0 : static_cast<std::uint8_t>(split.missing_left));
        left.push_back(is_leaf ? -1 : node.left);
        right.push_back(is_leaf ? -1 : node.right);
        leaf.push_back(is_leaf);
        value.push_back(is_leaf ? values[i] : 0.0f);
        gain.push_back(is_leaf ? 0.0 : split.gain);
        cover.push_back(scoring.hessian(node.totals));
        count.push_back(node.rows());
    }
    offsets.push_back(static_cast<i64>(feature.size()));
}

}  // namespace dyno
