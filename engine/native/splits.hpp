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

// Where the candidates of a feature go: bin 0, and every other bin that holds a row.
struct Candidates {
    i64* cells;  // a row of `stride` for each word
    i64 stride;
    i32* bins;          // by candidate
    i32* candidate_of;  // by bin: the last candidate up to it; null if nobody asks
    i64 n = 0;
};

// One worker's scan. Holds prefix sums and scores of the feature that it looks at.
class SplitScan {
public:
    SplitScan(const CellLayout& layout, InstructionSet set);

    // Looks at the cells of one feature of a node, of which improve, add_to_level and at then speak; the latter two need
    // `by_bin`.
    void load(const i64* cells, int words, i32 n_value_bins, i64 rows, const Totals& own, const Scoring& scoring,
              bool by_bin);

    // The same from at most kMostRows rows themselves, without a histogram: takes the node's rows, then looks at one
    // feature after the other. Costs as many steps as rows, not cells.
    static constexpr i64 kMostRows = 32;
    void take_rows(const Plane& plane, const RowGradients& gradients, const RowSpan& rows, int words);
    void load_rows(i32 feature, const Totals& own, const Scoring& scoring, bool by_bin);

    // Replaces `best` by this feature's best candidate if that is better.
    void improve(i32 feature, Split& best) const;

    // Adds this feature's scores to the level's, whose row of this feature starts at `offset`.
    void add_to_level(i64 offset, bool may_miss, LevelScores& level) const;

    // The same for a node that no candidate may split.
    static void add_unsplittable(i64 offset, i32 n_value_bins, bool may_miss, double own_score, LevelScores& level);

    // The split at one candidate: sums of the left side, and the node's own gain; not found if it is not feasible.
    Split at(i32 feature, i32 bin, bool missing_left) const;

private:
    Totals left_of(i64 k, bool missing_left) const;
    void improve_side(i32 feature, bool missing_left, Split& best) const;

    template <class Bin>
    void gather(i32 feature, i64* missing, Candidates& to);
    void score(Candidates& candidates, const i64* missing, i32 n_value_bins, const Totals& own, const Scoring& scoring);

    InstructionSet set_;
    i64 stride_;                     // room for a row of candidates, and a vector more
    std::vector<i64> prefix_;        // up to three rows: sums up to each candidate's bin
    std::vector<i32> bins_;          // by candidate, ascending
    std::vector<double> scores_[2];  // by side, then candidate: score of both children, or kInfeasible
    std::vector<i32> candidate_of_;  // by bin: the last candidate up to it
    i64 largest_[2];                 // by side: bits of the largest valid gain, or 0
    i64 n_candidates_ = 0;
    const Plane* plane_ = nullptr;
    RowSpan rows_{};
    i64 row_values_[3 * kMostRows];  // by row: its cell
    std::vector<i64> cells_;         // of one feature, all zero between two looks
    std::vector<u64> seen_;          // a bit a bin, likewise
    i32 n_bins_ = 0;
    int words_ = 1;
    bool has_missing_ = false;
    Totals own_, missing_;
    Scoring scoring_;
    double own_score_ = 0.0;
};

// The level's best candidate by its scores, among the features of a range; `whole` is the sum of the nodes' own scores.
Candidate best_of_level(const LevelScores& level, const CellLayout& layout, FeatureRange range, double whole,
                        double gamma, InstructionSet set);

}  // namespace dyno
