#include "splits.hpp"

#include <algorithm>

namespace dyno {
namespace {

constexpr double kInfeasible = -1.0;  // scores are never negative

// What the loops below need of a scan, by value so that no store can alias it.
struct ScoreTask {
    const i64* prefix;
    i64 stride;
    i32 n_bins;
    Totals own;
    Totals shift;  // the missing rows, where they go left
    Scoring scoring;
    double* scores;
};

// Correctly rounded, and made of what every vector unit has: the halves are exact, so only their sum rounds.
template <InstructionSet set>
DYNO_FN double to_double(i64 x) {
    if constexpr (set == InstructionSet::avx512) return static_cast<double>(x);
    const u64 bits = static_cast<u64>(x);
    const double high = double_of((bits >> 32) ^ 0x4530000080000000ull) - double_of(0x4530000080100000ull);
    const double low = double_of((bits & 0xffffffffull) | 0x4330000000000000ull);
    return high + low;
}

template <int words>
DYNO_FN Totals prefix_at(const i64* prefix, i64 stride, i64 bin) {
    if constexpr (words == 1)
        return {packed_gradient(prefix[bin]), packed_count(prefix[bin]), packed_count(prefix[bin])};
    const i64 h = prefix[stride + bin];
    if constexpr (words == 2) return {prefix[bin], h, h};  // h >= 1 a row: it serves as a count where 1 row is enough
    return {prefix[bin], h, prefix[2 * stride + bin]};
}

template <InstructionSet set, int words>
DYNO_FN void score_body(const ScoreTask& given) {
    const ScoreTask task = given;
    const Regularisation reg = task.scoring.regularisation;
    const i64* __restrict prefix = task.prefix;
    double* __restrict scores = task.scores;
    for (i64 bin = 0; bin < task.n_bins; ++bin) {
        const Totals at = prefix_at<words>(prefix, task.stride, bin);
        const i64 left_g = at.g + task.shift.g, left_h = at.h + task.shift.h, left_rows = at.count + task.shift.count;
        const i64 right_g = task.own.g - left_g, right_h = task.own.h - left_h, right_rows = task.own.count - left_rows;
        const double gl = to_double<set>(left_g) * task.scoring.scale_g,
                     hl = to_double<set>(left_h) * task.scoring.scale_h;
        const double gr = to_double<set>(right_g) * task.scoring.scale_g,
                     hr = to_double<set>(right_h) * task.scoring.scale_h;
        const bool feasible =
            is_feasible_side(left_h, hl, left_rows, reg) & is_feasible_side(right_h, hr, right_rows, reg);
        const double both = score(gl, hl, reg) + score(gr, hr, reg);
        scores[bin] = feasible ? both : kInfeasible;
    }
}

// A valid gain's bits, or 0: such bits compare as the gains do.
DYNO_FN i64 gain_bits(double both, double own, double gamma) {
    const double gain = split_gain(both, 0.0, own, gamma);
    return (both >= 0.0) & is_valid_gain(gain) ? static_cast<i64>(bits_of(gain)) : 0;
}

DYNO_FN i64 largest_gain_body(const double* scores, i64 n, double own, double gamma) {
    i64 largest = 0;
    for (i64 bin = 0; bin < n; ++bin) {
        const i64 bits = gain_bits(scores[bin], own, gamma);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

DYNO_FN void add_scores_body(const double* __restrict scores, i64 n, double own, double* __restrict sum,
                             i64* __restrict count) {
    for (i64 bin = 0; bin < n; ++bin) {
        const bool feasible = scores[bin] >= 0.0;
        sum[bin] += feasible ? scores[bin] : own;
        count[bin] += feasible;
    }
}

template <InstructionSet set>
struct Kernels;

#define DYNO_SPLIT_KERNELS(set, target)                                                                   \
    template <>                                                                                           \
    struct Kernels<set> {                                                                                 \
        target static void score_packed(const ScoreTask& task) { score_body<set, 1>(task); }              \
        target static void score_pairs(const ScoreTask& task) { score_body<set, 2>(task); }               \
        target static void score_counted(const ScoreTask& task) { score_body<set, 3>(task); }             \
        target static i64 largest_gain(const double* scores, i64 n, double own, double gamma) {           \
            return largest_gain_body(scores, n, own, gamma);                                              \
        }                                                                                                 \
        target static void add_scores(const double* scores, i64 n, double own, double* sum, i64* count) { \
            add_scores_body(scores, n, own, sum, count);                                                  \
        }                                                                                                 \
    };

DYNO_SPLIT_KERNELS(InstructionSet::avx512, DYNO_AVX512)
DYNO_SPLIT_KERNELS(InstructionSet::avx2, DYNO_AVX2)
DYNO_SPLIT_KERNELS(InstructionSet::baseline, )

// Calls `use` with the kernels of one instruction set.
template <class Use>
auto with_kernels(InstructionSet set, Use&& use) {
    if (set == InstructionSet::avx512) return use(Kernels<InstructionSet::avx512>{});
    if (set == InstructionSet::avx2) return use(Kernels<InstructionSet::avx2>{});
    return use(Kernels<InstructionSet::baseline>{});
}

template <int words>
void prefix_sums(const i64* cells, i64 n, i64 stride, i64* prefix) {
    i64 sum[words] = {};
    for (i64 bin = 0; bin < n; ++bin)
        for (int w = 0; w < words; ++w) prefix[w * stride + bin] = sum[w] += cells[bin * words + w];
}

}  // namespace

SplitScan::SplitScan(const CellLayout& layout, InstructionSet set)
    : set_(set), stride_((layout.max_value_bins + 7) / 8 * 8) {
    prefix_.resize(static_cast<std::size_t>(3 * stride_));
    for (auto& scores : scores_) scores.resize(static_cast<std::size_t>(stride_));
}

void SplitScan::load(const i64* cells, int words, i32 n_value_bins, const Totals& own, const Scoring& scoring) {
    words_ = words;
    n_bins_ = n_value_bins;
    own_ = {own.g, own.h, words == 3 ? own.count : own.h};
    scoring_ = scoring;
    own_score_ = scoring.own_score(own);
    const auto prefix = words == 1 ? prefix_sums<1> : words == 2 ? prefix_sums<2> : prefix_sums<3>;
    prefix(cells, n_bins_, stride_, prefix_.data());
    const i64* last = cells + static_cast<i64>(n_bins_) * words;
    missing_ = words == 1 ? prefix_at<1>(last, 1, 0) : words == 2 ? prefix_at<2>(last, 1, 0) : prefix_at<3>(last, 1, 0);
    has_missing_ = missing_.h > 0;
    with_kernels(set_, [&](auto kernels) {
        const auto run = words == 1 ? kernels.score_packed : words == 2 ? kernels.score_pairs : kernels.score_counted;
        run({prefix_.data(), stride_, n_bins_, own_, missing_, scoring_, scores_[1].data()});
        // Without missing rows both sides score the same, and missing left wins the tie.
        if (has_missing_) run({prefix_.data(), stride_, n_bins_, own_, Totals{}, scoring_, scores_[0].data()});
    });
}

void SplitScan::load_unsplittable(i32 n_value_bins, const Totals& own, const Scoring& scoring) {
    n_bins_ = n_value_bins;
    own_score_ = scoring.own_score(own);
    has_missing_ = false;
    std::fill_n(scores_[1].begin(), n_bins_, kInfeasible);
}

void SplitScan::improve(i32 feature, Split& best) const {
    improve_side(feature, true, best);
    if (has_missing_) improve_side(feature, false, best);
}

void SplitScan::improve_side(i32 feature, bool missing_left, Split& best) const {
    const double* scores = scores_[missing_left].data();
    const double gamma = scoring_.regularisation.gamma;
    const i64 largest =
        with_kernels(set_, [&](auto kernels) { return kernels.largest_gain(scores, n_bins_, own_score_, gamma); });
    if (largest == 0 || largest < static_cast<i64>(bits_of(best.candidate.gain))) return;
    i32 bin = 0;
    while (gain_bits(scores[bin], own_score_, gamma) != largest) ++bin;
    const Candidate candidate{double_of(static_cast<u64>(largest)), feature, bin, missing_left};
    if (best.is_found && !is_better(candidate, best.candidate)) return;
    best = {candidate, left_of(bin, missing_left), true};
    if (!has_missing_) best.candidate.missing_left = unseen_goes_left(best.left.h, own_.h - best.left.h);
}

void SplitScan::add_to_level(i64 offset, bool may_miss, LevelScores& level) const {
    with_kernels(set_, [&](auto kernels) {
        for (int side = may_miss ? 0 : 1; side < 2; ++side) {
            const i64 row = side * level.n_cells + offset;
            kernels.add_scores(scores_[has_missing_ ? side : 1].data(), n_bins_, own_score_, level.score.data() + row,
                               level.n_feasible.data() + row);
        }
    });
}

Split SplitScan::at(i32 feature, i32 bin, bool missing_left) const {
    const double both = scores_[has_missing_ ? missing_left : 1][bin];
    const double gain = split_gain(both, 0.0, own_score_, scoring_.regularisation.gamma);
    return {{gain, feature, bin, missing_left}, left_of(bin, missing_left), both >= 0.0};
}

Totals SplitScan::left_of(i32 bin, bool missing_left) const {
    const Totals present = words_ == 1   ? prefix_at<1>(prefix_.data(), stride_, bin)
                           : words_ == 2 ? prefix_at<2>(prefix_.data(), stride_, bin)
                                         : prefix_at<3>(prefix_.data(), stride_, bin);
    return missing_left ? present + missing_ : present;
}

Candidate best_of_level(const LevelScores& level, const CellLayout& layout, FeatureRange range, double whole,
                        double gamma) {
    Candidate best{0.0, -1, -1, 0};
    for (i32 feature = range.begin; feature < range.end; ++feature) {
        const i64 offset = layout.offset[feature];
        for (i64 bin = 0; bin + 1 < layout.offset[feature + 1] - offset; ++bin) {
            for (int side = 1; side >= 0; --side) {
                const i64 k = level.n_feasible[side * level.n_cells + offset + bin];
                const double gain = split_gain(level.score[side * level.n_cells + offset + bin], 0.0, whole,
                                               gamma * static_cast<double>(k));
                if (k >= 1 && is_valid_gain(gain) && gain > best.gain)
                    best = {gain, feature, static_cast<i32>(bin), side};
            }
        }
    }
    return best;
}

}  // namespace dyno
