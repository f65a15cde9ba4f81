// The vector code of prediction, for each instruction set; the bits do not depend on the choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "instruction_set.hpp"
#include "semantics.cuh"

namespace dyno {

constexpr int BLOCK_ROWS = 512;
constexpr int WORDS = BLOCK_ROWS / 64;
constexpr int STRIP = 16;  // neighbouring floats of a row, a cache line

using Rank = unsigned char;

// One slot's ranks of a block of rows.
struct alignas(64) RankPlane {
    Rank ranks[BLOCK_ROWS];
};

// One bit a row of a block.
struct alignas(64) RowBits {
    u64 words[WORDS];
};

struct Test {
    u32 slot;
    Rank bound;  // 1 where the rank is above it
};

// Steps work on an array of RowBits: all zero, all one, the outcomes of the group's tests, then what steps leave.
constexpr u32 ALL_ZERO = 0;
constexpr u32 ALL_ONE = 1;
constexpr u32 FIRST_TEST = 2;

// The same array's first word of one of them: an address is then one instruction away.
using WorkWord = std::uint16_t;
constexpr u32 MOST_WORK = 65536 / WORDS;
constexpr WorkWord word_of(u32 index) { return static_cast<WorkWord>(index * WORDS); }

// out = choice ? one : zero, bit by bit.
struct Step {
    WorkWord out;
    WorkWord choice;
    WorkWord zero;
    WorkWord one;
};

// A feature's thresholds as a full binary search tree, breadth first, filled up with infinity: so each level's are
// neighbours, and a lookup in a table of them is a step of the search.
template <class Value>
struct Pivots {
    int levels = 0;
    std::vector<Value> heap;

    Pivots() = default;
    explicit Pivots(const std::vector<Value>& ascending) {
        while ((std::size_t{1} << levels) <= ascending.size()) ++levels;
        heap.assign((std::size_t{1} << levels) + VECTOR, std::numeric_limits<Value>::infinity());
        for (int level = 0; level < levels; ++level) {
            for (std::size_t k = 0; k < std::size_t{1} << level; ++k) {
                const std::size_t at = ((2 * k + 1) << (levels - 1 - level)) - 1;
                if (at < ascending.size()) heap[(std::size_t{1} << level) - 1 + k] = ascending[at];
            }
        }
    }

private:
    static constexpr int VECTOR = 16;  // a vector load of a level may run over
};

// out[i] = the response (contract §5) to margins[i].
using Respond = void (*)(const float* margins, i64 count, double* out);

// `words` is how many times 64 rows are wanted; arrays have room for BLOCK_ROWS and begin at multiples of 64 bytes.
struct PredictKernels {
    // Column f of a row-major strip of STRIP columns goes to out + f * pitch.
    void (*transpose_floats)(const std::byte* first, i64 stride, int count, float* out, i64 pitch);

    bool (*has_infinity)(const float* values, int count);

    // The number of pivots <= x, 255 where x is NaN; for any count that fills whole times 16.
    void (*rank_floats)(const Pivots<float>& pivots, const float* values, int count, Rank* ranks);
    void (*rank_doubles)(const Pivots<double>& pivots, const double* values, int count, Rank* ranks);

    void (*run_tests)(const RankPlane* planes, const Test* tests, u32 n_tests, int words, u64* outcomes);

    void (*run_steps)(const Step* steps, u32 n_steps, u64* work);

    // Each row's number: n_bits of it, the highest first, are found at work + bits[k].
    void (*join_bits)(const u64* work, const WorkWord* bits, int n_bits, int words, unsigned char* numbers);

    // margins[i] += values[numbers[i]]; `values` has 2^n_bits of them and at least 16.
    void (*add_values)(const float* values, int n_bits, const unsigned char* numbers, int words, float* margins);

    Respond respond[3];  // by Objective
};

const PredictKernels& predict_kernels(InstructionSet set);

}  // namespace dyno
