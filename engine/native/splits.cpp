#include "splits.hpp"

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

namespace dyno {
namespace {

constexpr double kInfeasible = -1.0;  // scores are never negative

// What the loops below need of a scan, by value so that no store can alias it. Of `scores` and `largest`, one for each
// side that missing goes to: right, then left.
struct ScoreTask {
    const i64* prefix;
    i64 stride;
    i64 n;  // candidates
    Totals own;
    Totals missing;
    Scoring scoring;
    double own_score;
    double* scores[2];
};

// Bits of the largest valid gain, by side; 0 for none. Such bits compare as the gains do.
struct LargestGains {
    i64 of_side[2];
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

// A valid gain's bits, or 0.
DYNO_FN i64 gain_bits(double both, double own, double gamma) {
    const double gain = split_gain(both, 0.0, own, gamma);
    return (both >= 0.0) & is_valid_gain(gain) ? static_cast<i64>(bits_of(gain)) : 0;
}

// The score of both children where `left` are the rows on the left, or kInfeasible.
template <InstructionSet set>
DYNO_FN double score_of_both(const Totals& left, const ScoreTask& task) {
    const Regularisation& reg = task.scoring.regularisation;
    const Totals right{task.own.g - left.g, task.own.h - left.h, task.own.count - left.count};
    const double gl = to_double<set>(left.g) * task.scoring.scale_g, hl = to_double<set>(left.h) * task.scoring.scale_h;
    const double gr = to_double<set>(right.g) * task.scoring.scale_g,
                 hr = to_double<set>(right.h) * task.scoring.scale_h;
    const bool feasible = is_feasible_side(left.h, hl, left.count, reg) & is_feasible_side(right.h, hr, right.count, reg);
    const double both = score(gl, hl, reg) + score(gr, hr, reg);
    return feasible ? both : kInfeasible;
}

// Seeks the largest gains only if asked.
template <InstructionSet set, int words, bool has_missing, bool seeks_largest>
DYNO_FN LargestGains score_body(const ScoreTask& given) {
    const ScoreTask task = given;
    const double gamma = task.scoring.regularisation.gamma;
    const i64* __restrict prefix = task.prefix;
    double* __restrict right_scores = task.scores[0];
    double* __restrict left_scores = task.scores[1];
    i64 largest_right = 0, largest_left = 0;
    for (i64 k = 0; k < task.n; ++k) {
        const Totals present = prefix_at<words>(prefix, task.stride, k);
        const Totals with_missing{present.g + task.missing.g, present.h + task.missing.h,
                                  present.count + task.missing.count};
        const double left = score_of_both<set>(with_missing, task);
        left_scores[k] = left;
        if constexpr (seeks_largest) {
            const i64 bits = gain_bits(left, task.own_score, gamma);
            largest_left = bits > largest_left ? bits : largest_left;
        }
        // Without missing rows both sides score the same, and missing left wins the tie.
        if constexpr (has_missing) {
            const double right = score_of_both<set>(present, task);
            right_scores[k] = right;
            if constexpr (seeks_largest) {
                const i64 bits = gain_bits(right, task.own_score, gamma);
                largest_right = bits > largest_right ? bits : largest_right;
            }
        }
    }
    return {{largest_right, largest_left}};
}

// `candidate_of` is null where every bin is a candidate.
template <bool is_dense>
DYNO_FN void add_scores_body(const double* __restrict scores, const i32* __restrict candidate_of, i64 n, double own,
                             double* __restrict sum, i64* __restrict count) {
    for (i64 bin = 0; bin < n; ++bin) {
        const double both = scores[is_dense ? bin : candidate_of[bin]];
        const bool feasible = both >= 0.0;
        sum[bin] += feasible ? both : own;
        count[bin] += feasible;
    }
}

template <InstructionSet set>
DYNO_FN i64 level_gain_bits(double scores, i64 n_feasible, double whole, double gamma) {
    const double gain = split_gain(scores, 0.0, whole, gamma * to_double<set>(n_feasible));
    return (n_feasible >= 1) & is_valid_gain(gain) ? static_cast<i64>(bits_of(gain)) : 0;
}

template <InstructionSet set>
DYNO_FN i64 largest_level_gain_body(const double* scores, const i64* count, i64 n, double whole, double gamma) {
    i64 largest = 0;
    for (i64 bin = 0; bin < n; ++bin) {
        const i64 bits = level_gain_bits<set>(scores[bin], count[bin], whole, gamma);
        largest = bits > largest ? bits : largest;
    }
    return largest;
}

// ---- candidates: bin 0, and every other bin that holds a row ---------------------------------------------------------
//
// An empty bin parts the rows as the bin before it does, so it ties with that one and loses.

template <int words>
DYNO_FN void compress_body(const i64* cells, i64 n, Candidates& to) {
    for (i64 bin = 0; bin < n; ++bin) {
        const bool kept = (bin == 0) | (cells[bin * words + (words > 1)] != 0);
        for (int w = 0; w < words; ++w) to.cells[w * to.stride + to.n] = cells[bin * words + w];
        to.bins[to.n] = static_cast<i32>(bin);
        to.n += kept;
        if (to.candidate_of) to.candidate_of[bin] = static_cast<i32>(to.n - 1);
    }
}

// By mask and lane: how many of the mask's bits stand at the lane or below.
struct BitCounts {
    std::uint8_t of[256][8];
    constexpr BitCounts() : of() {
        for (int mask = 0; mask < 256; ++mask)
            for (int lane = 0; lane < 8; ++lane)
                of[mask][lane] = static_cast<std::uint8_t>(std::popcount(static_cast<u32>(mask & ((2 << lane) - 1))));
    }
};
constexpr BitCounts kBitCounts;

// Sums up to each lane.
DYNO_AVX512 __m512i add_up_lanes(__m512i sum) {
    constexpr __mmask8 all = 0xff;  // GCC 12 warns of the plain form, whose unused operand it leaves undefined
    const __m512i zero = _mm512_setzero_si512();
    sum = _mm512_add_epi64(sum, _mm512_maskz_alignr_epi64(all, sum, zero, 7));
    sum = _mm512_add_epi64(sum, _mm512_maskz_alignr_epi64(all, sum, zero, 6));
    return _mm512_add_epi64(sum, _mm512_maskz_alignr_epi64(all, sum, zero, 4));
}

// Eight bins at a time, added up before the empty ones are left out: their sums are those of the bin before.
template <int words, bool takes_all>
DYNO_AVX512 void collect_avx512(const i64* cells, i64 n, Candidates& to) {
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    const __m512i last = _mm512_set1_epi64(7);
    const __m256i eight = _mm256_set1_epi32(8);
    __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m512i before[words] = {};
    for (i64 bin = 0; bin < n; bin += 8, cells += 8 * words) {
        const u32 there = (1u << std::min<i64>(8 * words, words * (n - bin))) - 1;
        __m512i word[words];
        word[0] = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there), cells);
        if constexpr (words == 2) {
            const __m512i next = _mm512_maskz_loadu_epi64(static_cast<__mmask8>(there >> 8), cells + 8);
            word[1] = _mm512_permutex2var_epi64(word[0], odd, next);
            word[0] = _mm512_permutex2var_epi64(word[0], even, next);
        }
        const __m512i rows = word[words - 1];
        const __mmask8 kept = static_cast<__mmask8>(_mm512_test_epi64_mask(rows, rows) | (bin == 0));
        for (int w = 0; w < words; ++w) {
            const __m512i sum = _mm512_add_epi64(add_up_lanes(word[w]), before[w]);
            before[w] = _mm512_maskz_permutexvar_epi64(0xff, last, sum);
            _mm512_storeu_si512(to.cells + w * to.stride + to.n, takes_all ? sum : _mm512_maskz_compress_epi64(kept, sum));
        }
        if constexpr (takes_all) {
            to.n = std::min(bin + 8, n);
            continue;
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.bins + to.n), _mm256_maskz_compress_epi32(kept, numbers));
        if (to.candidate_of) {
            const __m128i counts = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kBitCounts.of[kept]));
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.candidate_of + bin),
                                _mm256_add_epi32(_mm256_cvtepu8_epi32(counts), _mm256_set1_epi32(static_cast<i32>(to.n) - 1)));
        }
        numbers = _mm256_add_epi32(numbers, eight);
        to.n += __builtin_popcount(kept);
    }
    for (int w = 0; w < words; ++w) _mm512_storeu_si512(to.cells + w * to.stride + to.n, before[w]);
}

// ---- one function per instruction set ----------------------------------------------------------------------------------

template <InstructionSet set>
struct Kernels;

#define DYNO_SPLIT_KERNELS(set, target)                                                                   \
    template <>                                                                                           \
    struct Kernels<set> {                                                                                 \
        template <int words, bool has_missing, bool seeks_largest>                                        \
        target static LargestGains score(const ScoreTask& task) {                                         \
            return score_body<set, words, has_missing, seeks_largest>(task);                              \
        }                                                                                                 \
        target static void add_scores(const double* scores, const i32* candidate_of, i64 n, double own,   \
                                      double* sum, i64* count) {                                          \
            if (candidate_of) add_scores_body<false>(scores, candidate_of, n, own, sum, count);           \
            else add_scores_body<true>(scores, candidate_of, n, own, sum, count);                         \
        }                                                                                                 \
        target static i64 largest_level_gain(const double* scores, const i64* count, i64 n, double whole, \
                                             double gamma) {                                              \
            return largest_level_gain_body<set>(scores, count, n, whole, gamma);                          \
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

i64 whole_vectors(i64 n) { return (n + 7) / 8 * 8; }

// Every bin a candidate; bins and candidates then need no table.
template <int words>
DYNO_FN void copy_body(const i64* cells, i64 n, Candidates& to) {
    for (int w = 0; w < words; ++w)
        for (i64 bin = 0; bin < n; ++bin) to.cells[w * to.stride + bin] = cells[bin * words + w];
    to.n = n;
}

DYNO_FN void add_up_body(int words, Candidates& to) {
    for (int w = 0; w < words; ++w) {
        i64* row = to.cells + w * to.stride;
        std::fill(row + to.n, row + whole_vectors(to.n), i64{0});
        for (i64 k = 1; k < whole_vectors(to.n); ++k) row[k] += row[k - 1];
    }
}

// The candidates' sums. The last one is repeated to a whole number of vectors: copies tie with it and lose.
template <int words>
void collect(InstructionSet set, const i64* cells, i64 n, bool takes_all, Candidates& to) {
    if constexpr (words < 3) {
        if (set == InstructionSet::avx512)
            return takes_all ? collect_avx512<words, true>(cells, n, to) : collect_avx512<words, false>(cells, n, to);
    }
    takes_all ? copy_body<words>(cells, n, to) : compress_body<words>(cells, n, to);
    add_up_body(words, to);
}

template <int words>
LargestGains score_candidates(InstructionSet set, const ScoreTask& task, bool has_missing, bool seeks_largest) {
    return with_kernels(set, [&](auto kernels) {
        if (seeks_largest)
            return has_missing ? kernels.template score<words, true, true>(task)
                               : kernels.template score<words, false, true>(task);
        return has_missing ? kernels.template score<words, true, false>(task)
                           : kernels.template score<words, false, false>(task);
    });
}

}  // namespace

SplitScan::SplitScan(const CellLayout& layout, InstructionSet set)
    : set_(set), stride_((layout.max_value_bins + 7) / 8 * 8 + 8) {
    prefix_.resize(static_cast<std::size_t>(3 * stride_));
    bins_.resize(static_cast<std::size_t>(stride_));
    for (auto& scores : scores_) scores.resize(static_cast<std::size_t>(stride_));
    candidate_of_.resize(static_cast<std::size_t>(stride_));
    cells_.assign(static_cast<std::size_t>(3 * stride_), 0);
    seen_.assign(static_cast<std::size_t>(stride_ / 64 + 1), 0);
}

void SplitScan::load(const i64* cells, int words, i32 n_value_bins, i64 rows, const Totals& own,
                     const Scoring& scoring, bool by_bin) {
    words_ = words;
    Candidates candidates{prefix_.data(), stride_, bins_.data(), by_bin ? candidate_of_.data() : nullptr};
    // Level scores are by bin: leaving out a few bins would cost more than it saves.
    const bool takes_all = by_bin && rows > n_value_bins;
    const auto run = words == 1 ? collect<1> : words == 2 ? collect<2> : collect<3>;
    run(set_, cells, n_value_bins, takes_all, candidates);
    score(candidates, cells + static_cast<i64>(n_value_bins) * words, n_value_bins, own, scoring);
}

void SplitScan::take_rows(const Plane& plane, const RowGradients& gradients, const RowSpan& rows, int words) {
    plane_ = &plane;
    rows_ = rows;
    words_ = words;
    for (i64 i = 0; i < rows.n; ++i) {
        const i64 row = rows.list ? rows.list[i] : rows.first + i;
        i64* value = row_values_ + i * words;
        if (words == 1) value[0] = packed_row(gradients.g[row]);
        else {
            value[0] = gradients.g[row];
            value[1] = gradients.h ? gradients.h[row] : 1;
            if (words == 3) value[2] = 1;
        }
    }
}

void SplitScan::load_rows(i32 feature, const Totals& own, const Scoring& scoring, bool by_bin) {
    const i32 n_value_bins = plane_->value_bins[feature];
    i64 missing[3] = {};
    Candidates candidates{prefix_.data(), stride_, bins_.data(), by_bin ? candidate_of_.data() : nullptr};
    plane_->wide ? gather<std::uint16_t>(feature, missing, candidates) : gather<std::uint8_t>(feature, missing, candidates);
    add_up_body(words_, candidates);
    score(candidates, missing, n_value_bins, own, scoring);
}

// Adds the rows to cells that are zero, notes which, and leaves them zero again.
template <class Bin>
void SplitScan::gather(i32 feature, i64* missing, Candidates& to) {
    const i32 n_value_bins = plane_->value_bins[feature];
    for (i64 i = 0; i < rows_.n; ++i) {
        const i32 bin = plane_->row<Bin>(rows_.list ? rows_.list[i] : rows_.first + i)[feature];
        for (int w = 0; w < words_; ++w) cells_[bin * words_ + w] += row_values_[i * words_ + w];
        seen_[bin / 64] |= u64{1} << bin % 64;
    }
    const auto take = [&](i32 bin, i64* into, i64 stride) {
        for (int w = 0; w < words_; ++w) into[w * stride] = std::exchange(cells_[bin * words_ + w], 0);
    };
    take(n_value_bins, missing, 1);
    seen_[n_value_bins / 64] &= ~(u64{1} << n_value_bins % 64);
    seen_[0] |= n_value_bins > 0;
    for (i32 first = 0; first < n_value_bins; first += 64) {
        for (u64 bits = std::exchange(seen_[first / 64], 0); bits != 0; bits &= bits - 1) {
            const i32 bin = first + std::countr_zero(bits);
            take(bin, to.cells + to.n, to.stride);
            to.bins[to.n++] = bin;
        }
    }
    if (to.candidate_of == nullptr) return;
    for (i64 k = 0; k < to.n; ++k)
        std::fill(to.candidate_of + to.bins[k], to.candidate_of + (k + 1 < to.n ? to.bins[k + 1] : n_value_bins),
                  static_cast<i32>(k));
}

void SplitScan::score(Candidates& candidates, const i64* missing, i32 n_value_bins, const Totals& own,
                      const Scoring& scoring) {
    const int words = words_;
    n_bins_ = n_value_bins;
    n_candidates_ = candidates.n;
    own_ = {own.g, own.h, words == 3 ? own.count : own.h};
    scoring_ = scoring;
    own_score_ = scoring.own_score(own);
    missing_ = words == 1   ? prefix_at<1>(missing, 1, 0)
               : words == 2 ? prefix_at<2>(missing, 1, 0)
                            : prefix_at<3>(missing, 1, 0);
    has_missing_ = missing_.h > 0;
    const ScoreTask task{prefix_.data(), stride_,    whole_vectors(candidates.n), own_,
                         missing_,       scoring_,   own_score_,                  {scores_[0].data(), scores_[1].data()}};
    const auto run = words == 1 ? score_candidates<1> : words == 2 ? score_candidates<2> : score_candidates<3>;
    const LargestGains largest = run(set_, task, has_missing_, candidates.candidate_of == nullptr);
    for (int side = 0; side < 2; ++side) largest_[side] = largest.of_side[side];
}

void SplitScan::improve(i32 feature, Split& best) const {
    improve_side(feature, true, best);
    if (has_missing_) improve_side(feature, false, best);
}

void SplitScan::improve_side(i32 feature, bool missing_left, Split& best) const {
    const i64 largest = largest_[missing_left];
    if (largest == 0 || largest < static_cast<i64>(bits_of(best.candidate.gain))) return;
    const double* scores = scores_[missing_left].data();
    i64 k = 0;
    while (gain_bits(scores[k], own_score_, scoring_.regularisation.gamma) != largest) ++k;
    const Candidate candidate{double_of(static_cast<u64>(largest)), feature, bins_[k], missing_left};
    if (best.is_found && !is_better(candidate, best.candidate)) return;
    best = {candidate, left_of(k, missing_left), true};
    if (!has_missing_) best.candidate.missing_left = unseen_goes_left(best.left.h, own_.h - best.left.h);
}

void SplitScan::add_to_level(i64 offset, bool may_miss, LevelScores& level) const {
    for (int side = may_miss ? 0 : 1; side < 2; ++side) {
        const i64 row = side * level.n_cells + offset;
        const double* scores = scores_[has_missing_ ? side : 1].data();
        const i32* candidate_of = n_candidates_ == n_bins_ ? nullptr : candidate_of_.data();
        with_kernels(set_, [&](auto kernels) {
            kernels.add_scores(scores, candidate_of, n_bins_, own_score_, level.score.data() + row,
                               level.n_feasible.data() + row);
        });
    }
}

void SplitScan::add_unsplittable(i64 offset, i32 n_value_bins, bool may_miss, double own_score, LevelScores& level) {
    for (int side = may_miss ? 0 : 1; side < 2; ++side) {
        double* sum = level.score.data() + side * level.n_cells + offset;
        for (i32 bin = 0; bin < n_value_bins; ++bin) sum[bin] += own_score;
    }
}

Split SplitScan::at(i32 feature, i32 bin, bool missing_left) const {
    const i64 k = n_candidates_ == n_bins_ ? bin : candidate_of_[bin];
    const double both = scores_[has_missing_ ? missing_left : 1][k];
    const double gain = split_gain(both, 0.0, own_score_, scoring_.regularisation.gamma);
    return {{gain, feature, bin, missing_left}, left_of(k, missing_left), both >= 0.0};
}

Totals SplitScan::left_of(i64 k, bool missing_left) const {
    const Totals present = words_ == 1   ? prefix_at<1>(prefix_.data(), stride_, k)
                           : words_ == 2 ? prefix_at<2>(prefix_.data(), stride_, k)
                                         : prefix_at<3>(prefix_.data(), stride_, k);
    return missing_left ? present + missing_ : present;
}

Candidate best_of_level(const LevelScores& level, const CellLayout& layout, FeatureRange range, double whole,
                        double gamma, InstructionSet set) {
    Candidate best{0.0, -1, -1, 0};
    for (i32 feature = range.begin; feature < range.end; ++feature) {
        const i64 offset = layout.offset[feature], n = layout.offset[feature + 1] - offset - 1;
        for (int side = 1; side >= 0; --side) {
            const double* scores = level.score.data() + side * level.n_cells + offset;
            const i64* count = level.n_feasible.data() + side * level.n_cells + offset;
            const i64 largest = with_kernels(
                set, [&](auto kernels) { return kernels.largest_level_gain(scores, count, n, whole, gamma); });
            if (largest == 0 || largest < static_cast<i64>(bits_of(best.gain))) continue;
            i32 bin = 0;
            while (level_gain_bits<InstructionSet::baseline>(scores[bin], count[bin], whole, gamma) != largest) ++bin;
            const Candidate candidate{double_of(static_cast<u64>(largest)), feature, bin, side};
            if (best.feature < 0 || is_better(candidate, best)) best = candidate;
        }
    }
    return best;
}

}  // namespace dyno
