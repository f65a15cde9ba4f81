// Builds the histograms of many nodes at once: rows in chunks, features in ranges, shared out among a team.
#pragma once

#include <vector>

#include "histogram.hpp"
#include "slots.hpp"
#include "team.hpp"

namespace dyno {

// Rough time of one thread to add a row to one feature's histogram.
constexpr double kNanosecondsToAdd = 0.4;

struct BuildOrder {
    RowSpan rows;
    Strip to;  // of all features
};

class HistogramBuilder {
public:
    // Partial histograms lie in slots for the while: they are many only when few nodes are open.
    HistogramBuilder(const Plane& plane, const CellLayout& layout, SlotPool& slots, Team& team)
        : plane_(plane), layout_(layout), slots_(slots), team_(team), staging_(static_cast<std::size_t>(team.size())) {}

    void build(const std::vector<BuildOrder>& orders, const RowGradients& gradients);

    // One range of one node, by the worker that calls.
    void build(const RowSpan& rows, FeatureRange range, const Strip& to, const RowGradients& gradients, int worker);

private:
    // A node of several chunks gets a partial histogram for each, and these are added up.
    struct Sum {
        Strip to;
        std::size_t first_partial;
        std::size_t end_partial;
    };

    // What one worker does at a time.
    struct Piece {
        const BuildOrder* chunk;
        FeatureRange range;
    };

    void cut_in_chunks(const std::vector<BuildOrder>& orders, bool packed);
    std::vector<Piece> pieces_for(i64 n_workers) const;
    i64 ranges_wanted(const BuildOrder& chunk, i64 n_rows, i64 n_workers) const;
    void add_up();

    const Plane& plane_;
    const CellLayout& layout_;
    SlotPool& slots_;
    Team& team_;
    std::vector<Staging> staging_;  // by worker
    std::vector<BuildOrder> chunks_;
    std::vector<Sum> sums_;
    std::vector<i32> partials_;  // slots
};

}  // namespace dyno
