#include "partition.hpp"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace dyno {
namespace {

constexpr i64 kChunk = 32768;

struct Chunk {
    std::size_t planned;  // which of the planned nodes
    i64 begin;
    i64 end;
    bool is_whole;  // the node has no other chunk
    i64 n_left = 0;
};

// Bins `<= bin` or `== also` go left.
template <class Bin>
struct Rule {
    const Bin* column;
    i32 bin;
    i32 also;
};

// `left` may be `rows` itself: never written ahead of what is read.
template <class Bin>
DYNO_FN i64 divide_body(const Rule<Bin>& rule, const i32* rows, i64 begin, i64 n, i32* left, i32* right, i64 n_left) {
    i64 n_right = begin - n_left;
    for (i64 i = begin; i < n; ++i) {
        const i32 row = rows[i];
        const i32 bin = rule.column[row];
        const bool goes_left = (bin <= rule.bin) | (bin == rule.also);
        left[n_left] = row;
        right[n_right] = row;
        n_left += goes_left;
        n_right += !goes_left;
    }
    return n_left;
}

template <class Bin>
i64 divide_portable(const Rule<Bin>& rule, const i32* rows, i64 n, i32* left, i32* right) {
    return divide_body(rule, rows, 0, n, left, right, 0);
}

template <class Bin>
DYNO_AVX512 u32 left_of_sixteen(const Bin* bins, const Rule<Bin>& rule) {
    const __m128i* at = reinterpret_cast<const __m128i*>(bins);
    if constexpr (sizeof(Bin) == 1) {
        const __m128i bin = _mm_loadu_si128(at);
        return _mm_cmple_epu8_mask(bin, _mm_set1_epi8(static_cast<char>(rule.bin))) |
               _mm_cmpeq_epu8_mask(bin, _mm_set1_epi8(static_cast<char>(rule.also)));
    } else {
        const __m256i bin = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
        return _mm256_cmple_epu16_mask(bin, _mm256_set1_epi16(static_cast<short>(rule.bin))) |
               _mm256_cmpeq_epu16_mask(bin, _mm256_set1_epi16(static_cast<short>(rule.also)));
    }
}

// Looks up the bins of a block one by one (a vector gather is slower than its loads), then divides sixteen rows at
// once.
template <class Bin>
DYNO_AVX512 i64 divide_avx512(const Rule<Bin>& rule, const i32* rows, i64 n, i32* left, i32* right) {
    constexpr i64 kBlock = 256;
    alignas(64) Bin bins[kBlock];
    i64 n_left = 0;
    i64 i = 0;
    for (; i + 16 <= n;) {
        const i64 end = std::min(i + kBlock, n / 16 * 16);
        for (i64 j = i; j < end; ++j) bins[j - i] = rule.column[rows[j]];
        for (i64 begin = i; i < end; i += 16) {
            const u32 goes_left = left_of_sixteen(bins + (i - begin), rule);
            const __m512i row = _mm512_loadu_si512(rows + i);
            _mm512_storeu_si512(left + n_left, _mm512_maskz_compress_epi32(static_cast<__mmask16>(goes_left), row));
            _mm512_storeu_si512(right + (i - n_left),
                                _mm512_maskz_compress_epi32(static_cast<__mmask16>(~goes_left), row));
            n_left += __builtin_popcount(goes_left);
        }
    }
    return divide_body(rule, rows, i, n, left, right, n_left);
}

template <class Bin>
i64 divide(InstructionSet set, const Plane& plane, const Candidate& split, const i32* rows, i64 n, i32* left,
           i32* right) {
    const i32 missing = plane.value_bins[split.feature];
    const Rule<Bin> rule{plane.column<Bin>(split.feature), split.bin, split.missing_left ? missing : split.bin};
    return (set == InstructionSet::avx512 ? divide_avx512<Bin> : divide_portable<Bin>)(rule, rows, n, left, right);
}

std::vector<Chunk> chunks_of(const std::vector<Node>& nodes, const std::vector<i32>& planned) {
    std::vector<Chunk> chunks;
    for (std::size_t p = 0; p < planned.size(); ++p) {
        const Node& node = nodes[planned[p]];
        const bool is_whole = node.rows() <= kChunk;
        for (i64 begin = node.begin; begin < node.end; begin += kChunk)
            chunks.push_back({p, begin, std::min(begin + kChunk, node.end), is_whole});
    }
    return chunks;
}

void copy_rows(i32* to, const i32* from, i64 n) {
    if (n > 0) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(i32));
}

}  // namespace

RowOrder::RowOrder(const Plane& plane, InstructionSet set) : plane_(plane), set_(set) {
    const std::size_t size = static_cast<std::size_t>(plane.n_rows) * sizeof(i32);
    rows_ = AlignedBytes(size);
    divided_ = AlignedBytes(size);
}

void RowOrder::reset(Team& team) {
    i32* rows = reinterpret_cast<i32*>(rows_.data());
    const i64 n = plane_.n_rows;
    team.run((n + kChunk - 1) / kChunk, [=](i64 chunk, int) {
        const i64 end = std::min((chunk + 1) * kChunk, n);
        for (i64 i = chunk * kChunk; i < end; ++i) rows[i] = static_cast<i32>(i);
    });
}

std::vector<i64> RowOrder::partition(const std::vector<Node>& nodes, const std::vector<i32>& planned, Team& team) {
    i32* rows = reinterpret_cast<i32*>(rows_.data());
    i32* divided = reinterpret_cast<i32*>(divided_.data());
    std::vector<Chunk> chunks = chunks_of(nodes, planned);
    double n_rows = 0;
    for (const i32 index : planned) n_rows += static_cast<double>(nodes[index].rows());
    team.run(
        static_cast<i64>(chunks.size()),
        [&](i64 c, int) {
            Chunk& chunk = chunks[c];
            const Candidate& split = nodes[planned[chunk.planned]].best.candidate;
            i32* const own = rows + chunk.begin;
            i32* const rights = divided + chunk.begin;
            const i64 n = chunk.end - chunk.begin;
            const auto run = plane_.wide ? divide<std::uint16_t> : divide<std::uint8_t>;
            chunk.n_left = run(set_, plane_, split, own, n, own, rights);  // the left rows to their own chunk's front
            const i64 n_right = n - chunk.n_left;
            if (chunk.is_whole) copy_rows(own + chunk.n_left, rights, n_right);
            else copy_rows(rights + n_right, own, chunk.n_left);
        },
        n_rows);

    std::vector<i64> n_left(planned.size(), 0);
    for (const Chunk& chunk : chunks) n_left[chunk.planned] += chunk.n_left;
    if (std::all_of(chunks.begin(), chunks.end(), [](const Chunk& chunk) { return chunk.is_whole; })) return n_left;

    std::vector<i64> before(chunks.size(), 0);  // left rows of the same node in earlier chunks
    for (std::size_t c = 1; c < chunks.size(); ++c)
        if (chunks[c].planned == chunks[c - 1].planned) before[c] = before[c - 1] + chunks[c - 1].n_left;
    team.run(static_cast<i64>(chunks.size()), [&](i64 c, int) {
        const Chunk& chunk = chunks[c];
        if (chunk.is_whole) return;
        const i64 first = nodes[planned[chunk.planned]].begin;
        const i64 rights_before = chunk.begin - first - before[c];
        const i64 n_right = chunk.end - chunk.begin - chunk.n_left;
        copy_rows(rows + first + before[c], divided + chunk.begin + n_right, chunk.n_left);
        copy_rows(rows + first + n_left[chunk.planned] + rights_before, divided + chunk.begin, n_right);
    });
    return n_left;
}

}  // namespace dyno
