#include "predict_kernels.hpp"

#include <immintrin.h>

#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12's own intrinsics, which begin with `x = x`

namespace dyno {
namespace {

// ---- for any instruction set -------------------------------------------------------------------------------------

DYNO_FN void transpose_body(const std::byte* first, i64 stride, int count, float* out, i64 pitch) {
    for (int i = 0; i < count; ++i) {
        const float* row = reinterpret_cast<const float*>(first + i * stride);
        for (int f = 0; f < STRIP; ++f) out[f * pitch + i] = row[f];
    }
}

DYNO_FN bool infinity_body(const float* values, int count) {
    int found = 0;  // no early exit: whole vectors are compared
    for (int i = 0; i < count; ++i) found |= __builtin_fabsf(values[i]) > FLOAT_MAX;
    return found;
}

template <class Value>
DYNO_FN void rank_body(const Pivots<Value>& pivots, const Value* values, int count, Rank* ranks) {
    constexpr int LANES = 16;
    const Value* heap = pivots.heap.data();
    for (int i = 0; i < count; i += LANES) {
        u32 rank[LANES] = {};
        for (int level = 0; level < pivots.levels; ++level) {
            const Value* own = heap + (1u << level) - 1;
#pragma GCC unroll 16
            for (int lane = 0; lane < LANES; ++lane) rank[lane] = 2 * rank[lane] + (values[i + lane] >= own[rank[lane]]);
        }
        for (int lane = 0; lane < LANES; ++lane) {
            const Value x = values[i + lane];
            ranks[i + lane] = static_cast<Rank>(x != x ? 255 : rank[lane]);
        }
    }
}

DYNO_FN void step_body(const Step* steps, u32 n_steps, u64* work) {
    for (u32 s = 0; s < n_steps; ++s) {
        const u64 *choice = work + steps[s].choice, *zero = work + steps[s].zero, *one = work + steps[s].one;
        RowBits chosen;
        for (int w = 0; w < WORDS; ++w) chosen.words[w] = zero[w] ^ ((zero[w] ^ one[w]) & choice[w]);
        __builtin_memcpy(work + steps[s].out, &chosen, sizeof chosen);
    }
}

// Transposes an 8 x 8 matrix of bits, a byte a row (Hacker's Delight, 7-3).
DYNO_FN u64 transpose_bits(u64 x) {
    u64 t = (x ^ (x >> 7)) & 0x00aa00aa00aa00aaull;
    x ^= t ^ (t << 7);
    t = (x ^ (x >> 14)) & 0x0000cccc0000ccccull;
    x ^= t ^ (t << 14);
    t = (x ^ (x >> 28)) & 0x00000000f0f0f0f0ull;
    return x ^ t ^ (t << 28);
}

DYNO_FN void join_body(const u64* work, const WorkWord* bits, int n_bits, int words, unsigned char* numbers) {
    for (int w = 0; w < words; ++w) {
        u64 eight[8] = {};  // of eight rows each: byte k is bit k of their numbers
        for (int bit = 0; bit < n_bits; ++bit) {
            const u64 word = work[bits[bit] + w];
            for (int j = 0; j < 8; ++j) eight[j] |= (word >> (8 * j) & 0xff) << (8 * (n_bits - 1 - bit));
        }
        for (int j = 0; j < 8; ++j) {
            const u64 transposed = transpose_bits(eight[j]);
            __builtin_memcpy(numbers + 64 * w + 8 * j, &transposed, 8);
        }
    }
}

DYNO_FN void add_body(const float* values, const unsigned char* numbers, int words, float* margins) {
    for (int i = 0; i < 64 * words; ++i) margins[i] += values[numbers[i]];
}

template <Objective objective>
DYNO_FN void respond_body(const float* __restrict margins, i64 count, double* __restrict out) {
    for (i64 i = 0; i < count; ++i) out[i] = response<objective>(margins[i]);
}

template <Objective objective>
void respond_baseline(const float* margins, i64 count, double* out) { respond_body<objective>(margins, count, out); }
template <Objective objective>
DYNO_AVX2 void respond_avx2(const float* margins, i64 count, double* out) {
    respond_body<objective>(margins, count, out);
}
template <Objective objective>
DYNO_AVX512 void respond_avx512(const float* margins, i64 count, double* out) {
    respond_body<objective>(margins, count, out);
}

#define DYNO_RESPONSES(wrapper) \
    {wrapper<Objective::squared_error>, wrapper<Objective::logistic>, wrapper<Objective::poisson>}

void transpose_baseline(const std::byte* first, i64 stride, int count, float* out, i64 pitch) {
    transpose_body(first, stride, count, out, pitch);
}

bool has_infinity_baseline(const float* x, int n) { return infinity_body(x, n); }
DYNO_AVX2 bool has_infinity_avx2(const float* x, int n) { return infinity_body(x, n); }
DYNO_AVX512 bool has_infinity_avx512(const float* x, int n) { return infinity_body(x, n); }

void rank_floats_baseline(const Pivots<float>& p, const float* x, int n, Rank* r) { rank_body(p, x, n, r); }
void rank_doubles_baseline(const Pivots<double>& p, const double* x, int n, Rank* r) { rank_body(p, x, n, r); }
DYNO_AVX2 void rank_floats_avx2(const Pivots<float>& p, const float* x, int n, Rank* r) { rank_body(p, x, n, r); }
DYNO_AVX2 void rank_doubles_avx2(const Pivots<double>& p, const double* x, int n, Rank* r) { rank_body(p, x, n, r); }

void run_tests_baseline(const RankPlane* planes, const Test* tests, u32 n_tests, int words, u64* outcomes) {
    for (u32 t = 0; t < n_tests; ++t) {
        const Rank* ranks = planes[tests[t].slot].ranks;
        const __m128i bound = _mm_set1_epi8(static_cast<char>(tests[t].bound));
        for (int w = 0; w < words; ++w) {
            u64 above = 0;
            for (int part = 0; part < 4; ++part) {
                const __m128i x = _mm_load_si128(reinterpret_cast<const __m128i*>(ranks + 64 * w + 16 * part));
                const __m128i at_most = _mm_cmpeq_epi8(_mm_max_epu8(x, bound), bound);
                above |= static_cast<u64>(~_mm_movemask_epi8(at_most) & 0xffff) << (16 * part);
            }
            outcomes[t * WORDS + w] = above;
        }
    }
}

DYNO_AVX2 void run_tests_avx2(const RankPlane* planes, const Test* tests, u32 n_tests, int words, u64* outcomes) {
    for (u32 t = 0; t < n_tests; ++t) {
        const Rank* ranks = planes[tests[t].slot].ranks;
        const __m256i bound = _mm256_set1_epi8(static_cast<char>(tests[t].bound));
        for (int w = 0; w < words; ++w) {
            u64 above = 0;
            for (int part = 0; part < 2; ++part) {
                const __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(ranks + 64 * w + 32 * part));
                const __m256i at_most = _mm256_cmpeq_epi8(_mm256_max_epu8(x, bound), bound);
                above |= static_cast<u64>(~static_cast<u32>(_mm256_movemask_epi8(at_most))) << (32 * part);
            }
            outcomes[t * WORDS + w] = above;
        }
    }
}

void run_steps_baseline(const Step* steps, u32 n, u64* work) { step_body(steps, n, work); }
DYNO_AVX2 void run_steps_avx2(const Step* steps, u32 n, u64* work) { step_body(steps, n, work); }

void join_bits_baseline(const u64* work, const WorkWord* bits, int n_bits, int words, unsigned char* numbers) {
    join_body(work, bits, n_bits, words, numbers);
}
DYNO_AVX2 void join_bits_avx2(const u64* work, const WorkWord* bits, int n_bits, int words,
                              unsigned char* numbers) {
    join_body(work, bits, n_bits, words, numbers);
}

void add_values_baseline(const float* values, int, const unsigned char* numbers, int words, float* margins) {
    add_body(values, numbers, words, margins);
}

// ---- AVX-512: a table of up to 256 floats is looked up in registers --------------------------------------------------

// Sixteen rows at a time: pairs, fours, then the 128-bit lanes change places.
DYNO_AVX512 void transpose_avx512(const std::byte* first, i64 stride, int count, float* out, i64 pitch) {
    int i = 0;
    for (; i + STRIP <= count; i += STRIP) {
        __m512 rows[STRIP], pairs[STRIP], fours[STRIP];
        for (int r = 0; r < STRIP; ++r) rows[r] = _mm512_loadu_ps(first + (i + r) * stride);
        for (int r = 0; r < STRIP; r += 2) {
            pairs[r] = _mm512_unpacklo_ps(rows[r], rows[r + 1]);
            pairs[r + 1] = _mm512_unpackhi_ps(rows[r], rows[r + 1]);
        }
        for (int r = 0; r < STRIP; r += 4) {
            for (int half = 0; half < 2; ++half) {
                const __m512d low = _mm512_castps_pd(pairs[r + half]), high = _mm512_castps_pd(pairs[r + half + 2]);
                fours[r + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
                fours[r + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
            }
        }
        for (int f = 0; f < 4; ++f) {
            const __m512 even_low = _mm512_shuffle_f32x4(fours[f], fours[4 + f], 0x88);
            const __m512 odd_low = _mm512_shuffle_f32x4(fours[f], fours[4 + f], 0xdd);
            const __m512 even_high = _mm512_shuffle_f32x4(fours[8 + f], fours[12 + f], 0x88);
            const __m512 odd_high = _mm512_shuffle_f32x4(fours[8 + f], fours[12 + f], 0xdd);
            _mm512_storeu_ps(out + f * pitch + i, _mm512_shuffle_f32x4(even_low, even_high, 0x88));
            _mm512_storeu_ps(out + (4 + f) * pitch + i, _mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
            _mm512_storeu_ps(out + (8 + f) * pitch + i, _mm512_shuffle_f32x4(even_low, even_high, 0xdd));
            _mm512_storeu_ps(out + (12 + f) * pitch + i, _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd));
        }
    }
    transpose_body(first + i * stride, stride, count - i, out + i, pitch);
}

// table[index] of 16 lanes, for a table of N.
template <int N>
DYNO_AVX512 inline __m512 look_up(const float* table, __m512i index) {
    if constexpr (N <= 16) {
        return _mm512_permutexvar_ps(index, _mm512_loadu_ps(table));
    } else if constexpr (N == 32) {
        return _mm512_permutex2var_ps(_mm512_loadu_ps(table), index, _mm512_loadu_ps(table + 16));
    } else {
        const __mmask16 in_upper = _mm512_test_epi32_mask(index, _mm512_set1_epi32(N / 2));
        return _mm512_mask_blend_ps(in_upper, look_up<N / 2>(table, index), look_up<N / 2>(table + N / 2, index));
    }
}

// Of 8 lanes.
template <int N>
DYNO_AVX512 inline __m512d look_up(const double* table, __m512i index) {
    if constexpr (N <= 8) {
        return _mm512_permutexvar_pd(index, _mm512_loadu_pd(table));
    } else if constexpr (N == 16) {
        return _mm512_permutex2var_pd(_mm512_loadu_pd(table), index, _mm512_loadu_pd(table + 8));
    } else {
        const __mmask8 in_upper = _mm512_test_epi64_mask(index, _mm512_set1_epi64(N / 2));
        return _mm512_mask_blend_pd(in_upper, look_up<N / 2>(table, index), look_up<N / 2>(table + N / 2, index));
    }
}

// The rank after `level` levels and all below it; NaN is never >= and so ends at 0.
template <int LEVEL, int LEVELS>
DYNO_AVX512 inline __m512i descend(const float* heap, __m512 x, __m512i rank) {
    if constexpr (LEVEL == LEVELS) {
        return rank;
    } else {
        const __m512 pivot = look_up<1 << LEVEL>(heap + (1 << LEVEL) - 1, rank);
        const __m512i twice = _mm512_add_epi32(rank, rank);
        const __mmask16 above = _mm512_cmp_ps_mask(x, pivot, _CMP_GE_OQ);
        return descend<LEVEL + 1, LEVELS>(heap, x, _mm512_mask_add_epi32(twice, above, twice, _mm512_set1_epi32(1)));
    }
}

template <int LEVEL, int LEVELS>
DYNO_AVX512 inline __m512i descend(const double* heap, __m512d x, __m512i rank) {
    if constexpr (LEVEL == LEVELS) {
        return rank;
    } else {
        const __m512d pivot = look_up<1 << LEVEL>(heap + (1 << LEVEL) - 1, rank);
        const __m512i twice = _mm512_add_epi64(rank, rank);
        const __mmask8 above = _mm512_cmp_pd_mask(x, pivot, _CMP_GE_OQ);
        return descend<LEVEL + 1, LEVELS>(heap, x, _mm512_mask_add_epi64(twice, above, twice, _mm512_set1_epi64(1)));
    }
}

template <int LEVELS>
DYNO_AVX512 void rank_vectors(const float* heap, const float* values, int count, Rank* ranks) {
    for (int i = 0; i < count; i += 16) {
        const __m512 x = _mm512_loadu_ps(values + i);
        const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
        const __m512i rank = descend<0, LEVELS>(heap, x, _mm512_setzero_si512());
        const __m512i found = _mm512_mask_mov_epi32(rank, is_nan, _mm512_set1_epi32(255));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(ranks + i), _mm512_cvtepi32_epi8(found));
    }
}

template <int LEVELS>
DYNO_AVX512 void rank_vectors(const double* heap, const double* values, int count, Rank* ranks) {
    for (int i = 0; i < count; i += 8) {
        const __m512d x = _mm512_loadu_pd(values + i);
        const __mmask8 is_nan = _mm512_cmp_pd_mask(x, x, _CMP_UNORD_Q);
        const __m512i rank = descend<0, LEVELS>(heap, x, _mm512_setzero_si512());
        const __m512i found = _mm512_mask_mov_epi64(rank, is_nan, _mm512_set1_epi64(255));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(ranks + i), _mm512_cvtepi64_epi8(found));
    }
}

template <class Value>
DYNO_AVX512 void rank_avx512(const Pivots<Value>& pivots, const Value* values, int count, Rank* ranks) {
    const Value* heap = pivots.heap.data();
    switch (pivots.levels) {
        case 0: return rank_vectors<0>(heap, values, count, ranks);
        case 1: return rank_vectors<1>(heap, values, count, ranks);
        case 2: return rank_vectors<2>(heap, values, count, ranks);
        case 3: return rank_vectors<3>(heap, values, count, ranks);
        case 4: return rank_vectors<4>(heap, values, count, ranks);
        case 5: return rank_vectors<5>(heap, values, count, ranks);
        case 6: return rank_vectors<6>(heap, values, count, ranks);
        case 7: return rank_vectors<7>(heap, values, count, ranks);
        default: return rank_vectors<8>(heap, values, count, ranks);
    }
}

DYNO_AVX512 void run_tests_avx512(const RankPlane* planes, const Test* tests, u32 n_tests, int words,
                                  u64* outcomes) {
    for (u32 t = 0; t < n_tests; ++t) {
        const Rank* ranks = planes[tests[t].slot].ranks;
        const __m512i bound = _mm512_set1_epi8(static_cast<char>(tests[t].bound));
        for (int w = 0; w < words; ++w)
            outcomes[t * WORDS + w] = _mm512_cmpgt_epu8_mask(_mm512_load_si512(ranks + 64 * w), bound);
    }
}

DYNO_AVX512 void run_steps_avx512(const Step* steps, u32 n_steps, u64* work) {
    for (u32 s = 0; s < n_steps; ++s) {
        const __m512i choice = _mm512_load_si512(work + steps[s].choice);
        const __m512i zero = _mm512_load_si512(work + steps[s].zero), one = _mm512_load_si512(work + steps[s].one);
        _mm512_store_si512(work + steps[s].out, _mm512_ternarylogic_epi64(choice, one, zero, 0xca));
    }
}

DYNO_AVX512 void join_bits_avx512(const u64* work, const WorkWord* bits, int n_bits, int words,
                                  unsigned char* numbers) {
    for (int w = 0; w < words; ++w) {
        __m512i number = _mm512_setzero_si512();
        for (int bit = 0; bit < n_bits; ++bit) {
            const __m512i twice = _mm512_add_epi8(number, number);
            number = _mm512_mask_add_epi8(twice, work[bits[bit] + w], twice, _mm512_set1_epi8(1));
        }
        _mm512_storeu_si512(numbers + 64 * w, number);
    }
}

template <int N>
DYNO_AVX512 void add_vectors(const float* __restrict values, const unsigned char* __restrict numbers, int words,
                             float* __restrict margins) {
    for (int i = 0; i < 64 * words; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(numbers + i));
        const __m512 value = look_up<N>(values, _mm512_cvtepu8_epi32(bytes));
        _mm512_storeu_ps(margins + i, _mm512_add_ps(_mm512_loadu_ps(margins + i), value));
    }
}

DYNO_AVX512 void add_values_avx512(const float* values, int n_bits, const unsigned char* numbers, int words,
                                   float* margins) {
    switch (n_bits) {
        case 5: return add_vectors<32>(values, numbers, words, margins);
        case 6: return add_vectors<64>(values, numbers, words, margins);
        case 7: return add_vectors<128>(values, numbers, words, margins);
        case 8: return add_vectors<256>(values, numbers, words, margins);
        default: return add_vectors<16>(values, numbers, words, margins);
    }
}

constexpr PredictKernels BASELINE = {transpose_baseline,   has_infinity_baseline, rank_floats_baseline,
                                     rank_doubles_baseline, run_tests_baseline,    run_steps_baseline,
                                     join_bits_baseline,    add_values_baseline,   DYNO_RESPONSES(respond_baseline)};
constexpr PredictKernels AVX2 = {transpose_baseline, has_infinity_avx2, rank_floats_avx2, rank_doubles_avx2,
                                 run_tests_avx2,     run_steps_avx2,    join_bits_avx2,   add_values_baseline,
                                 DYNO_RESPONSES(respond_avx2)};
constexpr PredictKernels AVX512 = {transpose_avx512, has_infinity_avx512, rank_avx512<float>, rank_avx512<double>,
                                   run_tests_avx512, run_steps_avx512,    join_bits_avx512,   add_values_avx512,
                                   DYNO_RESPONSES(respond_avx512)};

}  // namespace

const PredictKernels& predict_kernels(InstructionSet set) {
    switch (set) {
        case InstructionSet::avx512: return AVX512;
        case InstructionSet::avx2: return AVX2;
        default: return BASELINE;
    }
}

}  // namespace dyno
