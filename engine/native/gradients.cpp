#include "gradients.hpp"

#include <algorithm>
#include <bit>

namespace dyno {
namespace {

constexpr i64 kChunk = 16384;

struct Rows {
    const float* margin;
    const float* label;
    const float* weight;
    i32* g;
    i32* h;
    i64 begin;
    i64 end;
};

struct Maxima {
    u32 g = 0;
    u32 h = 0;
};

// Writes the bits of the float32 gradients. Magnitudes compare as their bits do, so the maximum is an integer one.
template <Objective objective, bool is_weighted, bool constant_hessian>
DYNO_FN Maxima differentiate_body(const Rows& rows) {
    const float* __restrict margin = rows.margin;
    const float* __restrict label = rows.label;
    const float* __restrict weight = rows.weight;
    i32* __restrict g = rows.g;
    i32* __restrict h = rows.h;
    u32 max_g = 0, max_h = 0;
    for (i64 i = rows.begin; i < rows.end; ++i) {
        Gradient d = gradient<objective>(margin[i], label[i]);
        if (is_weighted) {
            d.g *= static_cast<double>(weight[i]);
            d.h *= static_cast<double>(weight[i]);
        }
        const u32 bits_g = std::bit_cast<u32>(saturate(d.g));
        g[i] = static_cast<i32>(bits_g);
        max_g = std::max(max_g, bits_g & 0x7fffffffu);
        if (!constant_hessian) {
            // At most 1/4 without weights; saturating it would only keep the compiler from vectorising.
            constexpr bool is_small = objective == Objective::logistic && !is_weighted;
            const u32 bits_h = std::bit_cast<u32>(is_small ? static_cast<float>(d.h) : saturate(d.h));
            h[i] = static_cast<i32>(bits_h);
            max_h = std::max(max_h, bits_h & 0x7fffffffu);
        }
    }
    return {max_g, max_h};
}

struct Values {
    i32* values;             // float32 bits in, quantised integers out
    const float* frequency;  // null for none
    i64 begin;
    i64 end;
    double scale;
    bool is_hessian;
};

DYNO_FN i64 quantise_body(const Values& job) {
    i32* __restrict values = job.values;
    const double scale = job.scale;
    i64 sum = 0;
    if (job.is_hessian) {
        for (i64 i = job.begin; i < job.end; ++i) values[i] = quantise_hessian(std::bit_cast<float>(values[i]), scale);
    } else {
        for (i64 i = job.begin; i < job.end; ++i) values[i] = quantise(std::bit_cast<float>(values[i]), scale);
    }
    if (job.frequency) {
        for (i64 i = job.begin; i < job.end; ++i) values[i] *= static_cast<i32>(job.frequency[i]);
    }
    for (i64 i = job.begin; i < job.end; ++i) sum += values[i];
    return sum;
}

template <Objective objective, bool is_weighted, bool constant_hessian>
struct Differentiate {
    DYNO_AVX512 static Maxima avx512(const Rows& rows) {
        return differentiate_body<objective, is_weighted, constant_hessian>(rows);
    }
    DYNO_AVX2 static Maxima avx2(const Rows& rows) {
        return differentiate_body<objective, is_weighted, constant_hessian>(rows);
    }
    static Maxima baseline(const Rows& rows) {
        return differentiate_body<objective, is_weighted, constant_hessian>(rows);
    }
    static Maxima run(InstructionSet set, const Rows& rows) {
        return set == InstructionSet::avx512 ? avx512(rows) : set == InstructionSet::avx2 ? avx2(rows) : baseline(rows);
    }
};

template <bool is_weighted>
Maxima differentiate(Objective objective, InstructionSet set, bool constant_hessian, const Rows& rows) {
    switch (objective) {
        case Objective::squared_error:
            if (constant_hessian) return Differentiate<Objective::squared_error, is_weighted, true>::run(set, rows);
            return Differentiate<Objective::squared_error, is_weighted, false>::run(set, rows);
        case Objective::logistic: return Differentiate<Objective::logistic, is_weighted, false>::run(set, rows);
        default: return Differentiate<Objective::poisson, is_weighted, false>::run(set, rows);
    }
}

DYNO_AVX512 i64 quantise_avx512(const Values& job) { return quantise_body(job); }
DYNO_AVX2 i64 quantise_avx2(const Values& job) { return quantise_body(job); }
i64 quantise_baseline(const Values& job) { return quantise_body(job); }

i64 quantise_rows(InstructionSet set, const Values& job) {
    const auto run = set == InstructionSet::avx512 ? quantise_avx512
                     : set == InstructionSet::avx2 ? quantise_avx2
                                                   : quantise_baseline;
    return run(job);
}

bool are_frequencies(const float* weight, i64 n_rows) {
    return weight != nullptr && std::all_of(weight, weight + n_rows, is_frequency);
}

// Weights that are all 1 are none.
const float* without_ones(const float* weight, i64 n_rows) {
    const bool plain = weight != nullptr && std::all_of(weight, weight + n_rows, [](float w) { return w == 1.0f; });
    return plain ? nullptr : weight;
}

}  // namespace

Gradients::Gradients(Objective objective, const float* label, const float* weight, i64 n_rows, InstructionSet set)
    : objective_(objective),
      label_(label),
      weight_(without_ones(weight, n_rows)),
      n_rows_(n_rows),
      set_(set),
      constant_hessian_(objective == Objective::squared_error && weight_ == nullptr),
      frequencies_(are_frequencies(weight_, n_rows)),
      g_(static_cast<std::size_t>(n_rows) * sizeof(i32)) {
    if (!constant_hessian_) h_ = AlignedBytes(static_cast<std::size_t>(n_rows) * sizeof(i32));
}

Totals Gradients::quantise_all(const float* margin, Team& team) {
    const i64 n_chunks = (n_rows_ + kChunk - 1) / kChunk;
    i32* g = reinterpret_cast<i32*>(g_.data());
    i32* h = reinterpret_cast<i32*>(h_.data());
    std::vector<Maxima> maxima(n_chunks);
    team.run(n_chunks, [&](i64 chunk, int) {
        const Rows rows{margin, label_, weight_, g, h, chunk * kChunk, std::min((chunk + 1) * kChunk, n_rows_)};
        maxima[chunk] = weight_ && !frequencies_ ? differentiate<true>(objective_, set_, constant_hessian_, rows)
                                                 : differentiate<false>(objective_, set_, constant_hessian_, rows);
    });
    Maxima all;
    for (const Maxima& m : maxima) all = {std::max(all.g, m.g), std::max(all.h, m.h)};

    const int exponent_g = quantise_exponent(std::bit_cast<float>(all.g));
    const int exponent_h = quantise_exponent(std::bit_cast<float>(all.h));
    std::vector<Totals> sums(n_chunks);
    team.run(n_chunks, [&](i64 chunk, int) {
        const i64 begin = chunk * kChunk, end = std::min(begin + kChunk, n_rows_);
        const float* frequency = frequencies_ ? weight_ : nullptr;
        sums[chunk].g = quantise_rows(set_, {g, frequency, begin, end, power_of_two(exponent_g), false});
        if (!constant_hessian_)
            sums[chunk].h = quantise_rows(set_, {h, frequency, begin, end, power_of_two(exponent_h), true});
    });
    Totals totals;
    for (const Totals& sum : sums) totals = totals + sum;
    totals.count = n_rows_;
    scale_g_ = power_of_two(-exponent_g);
    scale_h_ = constant_hessian_ ? 1.0 : power_of_two(-exponent_h);
    if (constant_hessian_) totals.h = n_rows_;
    return totals;
}

}  // namespace dyno
