#include "predict_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dyno {
namespace {

static_assert(STRIP == GROUP_FEATURES);

constexpr int TILE = 128;  // rows; a group's values stay in L1

// The smallest float32 >= threshold parts float32 values exactly as the threshold does.
float narrow(double threshold) {
    const float near = static_cast<float>(threshold);
    return static_cast<double>(near) >= threshold ? near : std::nextafter(near, INFINITY);
}

// A group's columns, column f's TILE values at out + f * TILE. Behind the last row stand copies of the first.
template <class Value>
void copy_values(const Column* columns, int n_columns, i64 begin, int count, const PredictKernels& kernels, Value* out) {
    bool is_copied = false;
    if constexpr (sizeof(Value) == 4) {
        is_copied = n_columns == STRIP && is_strip<Value>(columns, n_columns);
        if (is_copied) kernels.transpose_floats(columns[0].data + begin * columns[0].stride, columns[0].stride, count, out, TILE);
    }
    for (int f = 0; f < n_columns; ++f) {
        Value* own = out + f * TILE;
        for (int i = 0; i < count && !is_copied; ++i) own[i] = *columns[f].at<Value>(begin + i);
        std::fill(own + count, own + TILE, own[0]);
    }
}

bool has_infinity(const float* values, const PredictKernels& kernels) { return kernels.has_infinity(values, TILE); }

bool has_infinity(const double* values, const PredictKernels&) {
    int found = 0;
    for (int i = 0; i < TILE; ++i) found |= std::fabs(values[i]) > std::numeric_limits<double>::max();
    return found;
}

// The rank stands in one slot or both.
void store_ranks(const RankedFeature& feature, const Rank* ranks, int count, int at, RankPlane* planes) {
    if (feature.right_slot >= 0) std::copy_n(ranks, count, planes[feature.right_slot].ranks + at);
    if (feature.left_slot < 0) return;
    Rank* out = planes[feature.left_slot].ranks + at;
    for (int i = 0; i < count; ++i) out[i] = static_cast<Rank>(ranks[i] + 1);  // 255, missing, becomes 0
}

}  // namespace

ValueRanks::ValueRanks(const PackedForest& forest, const std::vector<Column>& columns, bool check,
                       const PredictKernels& kernels)
    : kernels_(kernels), check_(check) {
    auto used = forest.features.begin();
    for (i32 f = 0; f < static_cast<i32>(columns.size()); ++f) {
        const bool is_used = used != forest.features.end() && used->feature == f;
        if (!is_used && !check) continue;
        columns_.push_back(columns[f]);
        features_.push_back(is_used ? &*used : nullptr);
        float_pivots_.emplace_back();
        double_pivots_.emplace_back();
        if (!is_used) continue;
        if (columns[f].is_double) {
            double_pivots_.back() = Pivots<double>(used->thresholds);
        } else {
            std::vector<float> thresholds(used->thresholds.size());
            std::transform(used->thresholds.begin(), used->thresholds.end(), thresholds.begin(), narrow);
            float_pivots_.back() = Pivots<float>(thresholds);
        }
        ++used;
    }
    groups_ = make_groups(columns_);
}

bool ValueRanks::load(i64 begin, int count, RankPlane* planes) const {
    bool finite = true;
    for (int at = 0; at < count; at += TILE) {
        const int rows = std::min(TILE, count - at);
        for (const Group group : groups_) {
            const bool is_double = columns_[group.first].is_double;
            finite &= is_double ? load_tile<double>(group, begin + at, rows, at, planes)
                                : load_tile<float>(group, begin + at, rows, at, planes);
        }
    }
    return finite;
}

template <class Value>
bool ValueRanks::load_tile(Group group, i64 begin, int count, int at, RankPlane* planes) const {
    alignas(64) Value values[GROUP_FEATURES * TILE];
    alignas(64) Rank ranks[TILE];
    copy_values(&columns_[group.first], group.count, begin, count, kernels_, values);
    bool finite = true;
    for (int f = 0; f < group.count; ++f) {
        const int column = group.first + f;
        const Value* own = values + f * TILE;
        if (check_) finite &= !has_infinity(own, kernels_);
        if (features_[column] == nullptr) continue;
        if constexpr (sizeof(Value) == 4) kernels_.rank_floats(float_pivots_[column], own, TILE, ranks);
        else kernels_.rank_doubles(double_pivots_[column], own, TILE, ranks);
        store_ranks(*features_[column], ranks, TILE, at, planes);
    }
    return finite;
}

// ---- from bins ---------------------------------------------------------------------------------------------------

BinRanks::BinRanks(const PackedForest& forest, const Plane& plane, const double* cuts, const i64* offsets)
    : forest_(forest), plane_(plane) {
    for (const RankedFeature& feature : forest.features) {
        const double* own = cuts + offsets[feature.feature];
        const i32 value_bins = plane.value_bins[feature.feature];
        // A bin's rank is the number of thresholds among the cuts below it; the missing bin comes last.
        std::vector<Rank> ranks(value_bins + 1, 0);
        std::size_t rank = 0;
        for (i32 bin = 1; bin < value_bins; ++bin) {
            if (rank < feature.thresholds.size() && feature.thresholds[rank] == own[bin - 1]) ++rank;
            ranks[bin] = static_cast<Rank>(rank);
        }
        ranks[value_bins] = 255;
        const bool has_infinity = feature.thresholds.back() == INFINITY;
        fit_ &= value_bins > 0 && rank + has_infinity == feature.thresholds.size();
        rank_of_bin_.push_back(std::move(ranks));
    }
}

bool BinRanks::load(i64 begin, int count, RankPlane* planes) const {
    if (plane_.wide) load_bins<std::uint16_t>(begin, count, planes);
    else load_bins<std::uint8_t>(begin, count, planes);
    return true;
}

template <class Bin>
void BinRanks::load_bins(i64 begin, int count, RankPlane* planes) const {
    alignas(64) Rank ranks[BLOCK_ROWS];
    for (std::size_t f = 0; f < forest_.features.size(); ++f) {
        const Bin* bins = plane_.column<Bin>(forest_.features[f].feature) + begin;
        const Rank* table = rank_of_bin_[f].data();
        for (int i = 0; i < count; ++i) ranks[i] = table[bins[i]];
        store_ranks(forest_.features[f], ranks, count, 0, planes);
    }
}

}  // namespace dyno
