// What ingest does to columns: look for infinities, find cuts, bin.
#pragma once

#include <vector>

#include "ingest_columns.hpp"
#include "plane.hpp"

namespace dyno {

struct Cuts {
    std::vector<double> values;   // all features' cuts, one after the other
    std::vector<i64> offsets;     // n_features + 1
    std::vector<i32> value_bins;  // 0 where every value is missing
};

struct Cell {
    i64 row;
    i32 feature;
};

// The first infinity by feature, then row; feature -1 if there is none.
Cell find_infinity(const std::vector<Column>& columns, i64 n_rows, int n_threads);

// Contract §3. `weight` is null or n_rows positive finite values.
Cuts find_cuts(const std::vector<Column>& columns, i64 n_rows, const float* weight, i64 max_bin, int n_threads);

// Contract §3: every value's bin, in both layouts.
Plane make_plane(const std::vector<Column>& columns, i64 n_rows, const double* cuts, const i64* offsets,
                 const i32* value_bins, int n_threads);

}  // namespace dyno
