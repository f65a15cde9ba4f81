#include "predict_pack.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "predict_steps.hpp"
#include "team.hpp"

namespace dyno {
namespace {

constexpr std::ptrdiff_t MOST_THRESHOLDS = 254;  // finite ones: ranks 0 .. 254, and one for missing
constexpr Rank NEVER = 255;                     // no rank is above it

// ---- features and nodes ------------------------------------------------------------------------------------------

void find_features(PackedForest& packed, const ForestArrays& forest) {
    std::map<i32, RankedFeature> found;
    for (i64 i = 0; i < forest.offsets[forest.n_trees]; ++i) {
        if (forest.leaf[i]) continue;
        RankedFeature& feature = found[forest.feature[i]];
        feature.feature = forest.feature[i];
        feature.thresholds.push_back(forest.threshold[i]);
        (forest.missing_left[i] ? feature.left_slot : feature.right_slot) = 0;
    }
    for (auto& [number, feature] : found) {
        std::vector<double>& all = feature.thresholds;
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        for (i32* slot : {&feature.right_slot, &feature.left_slot}) {
            if (*slot < 0) continue;
            *slot = static_cast<i32>(packed.slots.size());
            packed.slots.push_back({number, slot == &feature.left_slot});
        }
        packed.features.push_back(std::move(feature));
    }
    if (packed.slots.empty()) packed.slots.push_back({0, false});
}

// The largest double below the threshold: x >= threshold is x > it.
double below(double threshold) { return std::nextafter(threshold, -std::numeric_limits<double>::infinity()); }

class NodePacker {
public:
    NodePacker(PackedForest& packed, const ForestArrays& forest) : packed_(packed), forest_(forest) {
        feature_at_.resize(packed.n_features());
        for (std::size_t f = 0; f < packed.features.size(); ++f) feature_at_[packed.features[f].feature] = f;
    }

    void pack_tree(i64 first) {
        const u32 root = static_cast<u32>(packed_.nodes.size());
        packed_.roots.push_back(root);
        add_node(first, 0);
        for (u32 node = root; node < packed_.nodes.size(); ++node) {
            const i64 i = first + packed_.original[node];
            if (forest_.leaf[i]) continue;
            set_left(node, static_cast<u32>(packed_.nodes.size()));
            add_node(first, forest_.left[i]);
            add_node(first, forest_.right[i]);
        }
    }

private:
    void add_node(i64 first, i32 index) {
        const i64 i = first + index;
        const u32 self = static_cast<u32>(packed_.nodes.size());
        if (forest_.leaf[i]) {
            packed_.nodes.push_back({std::numeric_limits<double>::infinity(), 0, self});
            if (packed_.has_ranks) packed_.rank_nodes.push_back({NEVER, 0, self});
        } else {
            add_inner(i);
        }
        packed_.values.push_back(forest_.value[i]);
        packed_.original.push_back(index);
    }

    void add_inner(i64 i) {
        const RankedFeature& feature = packed_.features[feature_at_[forest_.feature[i]]];
        const bool missing_left = forest_.missing_left[i];
        const u32 slot = missing_left ? feature.left_slot : feature.right_slot;
        packed_.nodes.push_back({below(forest_.threshold[i]), slot, 0});
        if (!packed_.has_ranks) return;
        const auto at = std::lower_bound(feature.thresholds.begin(), feature.thresholds.end(), forest_.threshold[i]);
        const auto rank = at - feature.thresholds.begin();
        packed_.rank_nodes.push_back({static_cast<Rank>(rank + missing_left), slot, 0});
    }

    void set_left(u32 node, u32 left) {
        packed_.nodes[node].left = left;
        if (packed_.has_ranks) packed_.rank_nodes[node].left = left;
    }

    PackedForest& packed_;
    const ForestArrays& forest_;
    std::vector<std::size_t> feature_at_;
};

}  // namespace

PackedForest::PackedForest(const ForestArrays& forest) {
    FloatingPointMode mode;
    find_features(*this, forest);
    has_ranks = std::all_of(features.begin(), features.end(), [](const RankedFeature& feature) {
        return std::count_if(feature.thresholds.begin(), feature.thresholds.end(),
                             [](double threshold) { return std::isfinite(threshold); }) <= MOST_THRESHOLDS;
    });
    NodePacker packer(*this, forest);
    for (i64 tree = 0; tree < forest.n_trees; ++tree) packer.pack_tree(forest.offsets[tree]);
    if (has_ranks) pack_steps(*this);
}

}  // namespace dyno
