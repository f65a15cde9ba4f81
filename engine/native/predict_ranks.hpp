// Blocks of rows as ranks among a packed forest's thresholds: from raw values, or from the bins of the same cuts.
#pragma once

#include <cstdint>
#include <vector>

#include "ingest_columns.hpp"
#include "plane.hpp"
#include "predict_pack.hpp"

namespace dyno {

// What a forest's ranks are made from: the caller's columns.
class ValueRanks {
public:
    // With `check`, columns that no tree looks at are read as well, to see infinities.
    ValueRanks(const PackedForest& forest, const std::vector<Column>& columns, bool check,
               const PredictKernels& kernels);

    // The ranks of rows [begin .. begin + count); false if there is an infinity among them and they are checked.
    bool load(i64 begin, int count, RankPlane* planes) const;

private:
    template <class Value>
    bool load_tile(Group group, i64 begin, int count, int at, RankPlane* planes) const;

    const PredictKernels& kernels_;
    bool check_;
    std::vector<Column> columns_;
    std::vector<const RankedFeature*> features_;  // of each column; null if no tree looks at it
    std::vector<Group> groups_;
    std::vector<Pivots<float>> float_pivots_;     // of each column, if it is float32
    std::vector<Pivots<double>> double_pivots_;
};

// A data set's bins. Every threshold must be one of the cuts its plane was made with.
class BinRanks {
public:
    BinRanks(const PackedForest& forest, const Plane& plane, const double* cuts, const i64* offsets);

    // Whether each threshold is a cut of its feature, or the infinity behind the last, so that bins decide as values do.
    bool fit() const { return fit_; }

    bool load(i64 begin, int count, RankPlane* planes) const;

private:
    template <class Bin>
    void load_bins(i64 begin, int count, RankPlane* planes) const;

    const PackedForest& forest_;
    const Plane& plane_;
    bool fit_ = true;
    std::vector<std::vector<Rank>> rank_of_bin_;  // of each feature of the forest
};

}  // namespace dyno
