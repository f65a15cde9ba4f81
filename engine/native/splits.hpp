// The scan for splits: prefix sums of a feature's cells, and the score of every candidate (contract §7, §8).
#pragma once

#include <vector>

#include "histogram.hpp"
#include "instruction_set.hpp"
#include "nodes.hpp"

namespace dyno {

// For each candidate (feature, bin) and side that missing goes to, over the nodes of a frontier in their order:
// the sum of scores, and how many nodes the candidate can split. Rows of `layout` width; side 1 is missing left.
struct LevelScores {
    void clear(i64 cells) {
        n_cells = cells;
        score.assign(static_cast<std::size_t>(2 * cells), 0.0);
        n_feasible.assign(static_cast<std::size_t>(2 * cells), 0);
    }

    i64 n_cells = 0;
    std::vector<double> score;
    std::vector<i64> n_feasible;
};

// One worker's scan. Holds prefix sums and scores of the feature that it looks at.
class SplitScan {
public:
    SplitScan(const CellLayout& layout, InstructionSet set);

    // Looks at the cells of one feature of a node; what follows speaks of them.
    void load(const i64* cells, int words, i32 n_value_bins, const Totals& own, const Scoring& scoring);

    // As `load`, for a node that no candidate may split.
    void load_unsplittable(i32 n_value_bins, const Totals& own, const Scoring& scoring);

    // Replaces `best` by this feature's best candidate if that is better.
    void improve(i32 feature, Split& best) const;

    // Adds this feature's scores to the level's, whose row of this feature starts at `offset`.
    void add_to_level(i64 offset, bool may_miss, LevelScores& level) const;

    // The split at one candidate: sums of the left side, and the node's own gain; not found if it is not feasible.
    Split at(i32 feature, i32 bin, bool missing_left) const;

private:
    Totals left_of(i32 bin, bool missing_left) const;
    void improve_side(i32 feature, bool missing_left, Split& best) const;

    InstructionSet set_;
    std::vector<i64> prefix_;        // up to three rows of max_value_bins
    std::vector<double> scores_[2];  // by side: score of both children, or kInfeasible
    i64 stride_;
    i32 n_bins_ = 0;
    int words_ = 1;
    bool has_missing_ = false;
    Totals own_, missing_;
    Scoring scoring_;
    double own_score_ = 0.0;
};

// The level's best candidate by its scores, among the features of a range; `whole` is the sum of the nodes' own scores.
Candidate best_of_level(const LevelScores& level, const CellLayout& layout, FeatureRange range, double whole,
                        double gamma);

}  // namespace dyno
