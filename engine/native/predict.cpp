#include "predict.hpp"

#include <algorithm>
#include <atomic>
#include <limits>

#include "guarded.hpp"

namespace dyno {
namespace {

constexpr int LANES = 8;
constexpr i64 FEW_ROWS = 32;             // so few are walked: a block costs the same for one row as for all
constexpr i64 WALKED_ROWS = 64;          // of a block that is walked
constexpr i64 BLOCKS_A_SLICE = 1024;     // between two pauses
constexpr double TREE_NANOSECONDS = 0.5;  // a row's, about
constexpr double RESPONSE_NANOSECONDS = 2.0;
constexpr double WORTH_A_THREAD = 100'000;

int threads_for(double nanoseconds) { return static_cast<int>(std::clamp(nanoseconds / WORTH_A_THREAD, 1.0, 1e6)); }

// From `at`, LANES nodes, down to leaves, in lockstep so that their loads overlap; value_of(lane, slot).
template <class Value, class ValueOf>
void descend(const Node<Value>* nodes, u32* at, const ValueOf& value_of) {
    u32 moved;
    do {
        moved = 0;
#pragma GCC unroll 8
        for (int lane = 0; lane < LANES; ++lane) {
            const Node<Value>& node = nodes[at[lane]];
            const u32 next = node.left + (value_of(lane, node.slot) > node.bound);
            moved |= next ^ at[lane];
            at[lane] = next;
        }
    } while (moved);
}

// ---- what becomes of the leaves ------------------------------------------------------------------------------------

// Margins, or what is made of them while they are in the cache.
template <class Value>
struct SumSink {
    const PackedForest& forest;
    float base_margin;
    void (*make)(const float* margins, i64 count, Value* out);
    Value* out;

    // Of up to BLOCK_ROWS rows.
    struct Block {
        const SumSink& sink;
        Value* out;
        int count;
        alignas(64) float margins[BLOCK_ROWS];

        Block(const SumSink& of, i64 begin, int n) : sink(of), out(of.out + begin), count(n) {
            std::fill_n(margins, BLOCK_ROWS, of.base_margin);
        }
        void add(i64, int row, u32 node) { margins[row] += sink.forest.values[node]; }
        void add_entries(i64 tree, const unsigned char* numbers, int words, const PredictKernels& kernels) {
            const SteppedTree& own = sink.forest.stepped[tree];
            kernels.add_values(&sink.forest.entry_values[own.first_entry], own.n_bits, numbers, words, margins);
        }
        void finish() { sink.make(margins, count, out); }
    };
};

SumSink<float> margin_sink(const PackedForest& forest, float base_margin, float* out) {
    return {forest, base_margin, [](const float* margins, i64 count, float* to) { std::copy_n(margins, count, to); }, out};
}

Respond respond_of(Objective objective, const PredictRun& run) {
    return predict_kernels(run.instruction_set).respond[static_cast<int>(objective)];
}

struct LeafSink {
    const PackedForest& forest;
    i32* out;

    struct Block {
        const LeafSink& sink;
        i32* out;
        int count;

        Block(const LeafSink& of, i64 begin, int n) : sink(of), out(of.out + begin * of.forest.n_trees()), count(n) {}
        void add(i64 tree, int row, u32 node) { out[row * sink.forest.n_trees() + tree] = sink.forest.original[node]; }
        void add_entries(i64 tree, const unsigned char* numbers, int, const PredictKernels&) {
            const u32* own = &sink.forest.entries[sink.forest.stepped[tree].first_entry];
            for (int i = 0; i < count; ++i) add(tree, i, own[numbers[i]]);
        }
        void finish() {}
    };
};

// ---- blocks of rows ------------------------------------------------------------------------------------------------

// Calls task(begin, count, worker) for blocks of all rows; stops early if one of them returns false.
template <class Task>
bool for_blocks(i64 n_rows, i64 block_rows, Team& team, const PredictRun& run, const Task& task) {
    const i64 n_blocks = (n_rows + block_rows - 1) / block_rows;
    std::atomic<bool> good{true};
    for (i64 first = 0; first < n_blocks && good; first += BLOCKS_A_SLICE) {
        if (first > 0) run.pause();
        run_guarded(team, std::min(BLOCKS_A_SLICE, n_blocks - first), [&](i64 block, int worker) {
            const i64 begin = (first + block) * block_rows;
            if (!task(begin, static_cast<int>(std::min(block_rows, n_rows - begin)), worker)) good = false;
        });
    }
    return good;
}

// No larger than it takes to occupy every thread.
i64 rows_a_block(i64 n_rows, i64 most, int n_threads) {
    const i64 share = (n_rows + n_threads - 1) / n_threads;
    return std::min((share + 63) / 64 * 64, most);
}

// ---- by steps --------------------------------------------------------------------------------------------------

struct StepScratch {
    std::vector<RankPlane> planes;
    std::vector<RowBits> work;
    alignas(64) unsigned char numbers[BLOCK_ROWS] = {};

    explicit StepScratch(const PackedForest& forest) : planes(forest.slots.size()), work(forest.work_size) {
        std::fill_n(work[ALL_ONE].words, WORDS, ~u64{0});
    }
};

// Entries that are inner nodes are walked on from.
template <class Block>
void walk_on(const PackedForest& forest, i64 tree, const StepScratch& scratch, Block& block) {
    const u32* own = &forest.entries[forest.stepped[tree].first_entry];
    for (int i = 0; i < block.count; i += LANES) {
        u32 at[LANES];
        for (int lane = 0; lane < LANES; ++lane) at[lane] = own[scratch.numbers[i + lane]];
        descend(forest.rank_nodes.data(), at,
                [&](int lane, u32 slot) { return scratch.planes[slot].ranks[i + lane]; });
        for (int lane = 0; lane < std::min(LANES, block.count - i); ++lane) block.add(tree, i + lane, at[lane]);
    }
}

template <class Block>
void pass_trees(const PackedForest& forest, const PredictKernels& kernels, StepScratch& scratch, Block& block) {
    const int words = (block.count + 63) / 64;
    u64* work = scratch.work.data()->words;
    for (const TreeGroup& group : forest.groups) {
        kernels.run_tests(scratch.planes.data(), forest.tests.data() + group.first_test, group.n_tests, words,
                          work + word_of(FIRST_TEST));
        for (i64 tree = group.begin; tree < group.end; ++tree) {
            const SteppedTree& own = forest.stepped[tree];
            kernels.run_steps(forest.steps.data() + own.first_step, own.n_steps, work);
            kernels.join_bits(work, own.bits, own.n_bits, words, scratch.numbers);
            if (own.ends) block.add_entries(tree, scratch.numbers, words, kernels);
            else walk_on(forest, tree, scratch, block);
        }
    }
}

template <class Ranks, class Sink>
bool predict_by_steps(const PackedForest& forest, const Ranks& ranks, i64 n_rows, const Sink& sink,
                     const PredictRun& run) {
    const PredictKernels& kernels = predict_kernels(run.instruction_set);
    Team team(std::min(run.n_threads, useful_threads(forest, n_rows)));
    std::vector<StepScratch> scratch(team.size(), StepScratch(forest));
    return for_blocks(n_rows, rows_a_block(n_rows, BLOCK_ROWS, team.size()), team, run,
                      [&](i64 begin, int count, int worker) {
                          if (!ranks.load(begin, count, scratch[worker].planes.data())) return false;
                          typename Sink::Block block(sink, begin, count);
                          pass_trees(forest, kernels, scratch[worker], block);
                          block.finish();
                          return true;
                      });
}

// ---- by walking ----------------------------------------------------------------------------------------------------

double value_at(const Column& column, i64 row) {
    return column.is_double ? *column.at<double>(row) : static_cast<double>(*column.at<float>(row));
}

bool load_slots(const PackedForest& forest, const RawRows& rows, i64 row, double* values) {
    constexpr double INFINITE = std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < forest.slots.size(); ++s) {
        const double x = value_at(rows.columns[forest.slots[s].feature], row);
        values[s] = x == x ? x : forest.slots[s].missing_left ? -INFINITE : INFINITE;
    }
    if (!rows.check) return true;
    bool finite = true;
    for (const Column& column : rows.columns) {
        const double x = value_at(column, row);
        finite &= x != INFINITE && x != -INFINITE;
    }
    return finite;
}

// LANES trees at a time.
template <class Block>
void walk_row(const PackedForest& forest, const double* values, i64 first_tree, int row, Block& block) {
    const i64 n_trees = std::min<i64>(LANES, forest.n_trees() - first_tree);
    u32 at[LANES];
    for (i64 lane = 0; lane < LANES; ++lane) at[lane] = forest.roots[first_tree + std::min(lane, n_trees - 1)];
    descend(forest.nodes.data(), at, [&](int, u32 slot) { return values[slot]; });
    for (i64 lane = 0; lane < n_trees; ++lane) block.add(first_tree + lane, row, at[lane]);
}

template <class Sink>
bool predict_by_walking(const PackedForest& forest, const RawRows& rows, const Sink& sink, const PredictRun& run) {
    const std::size_t n_slots = forest.slots.size();
    Team team(std::min(run.n_threads, useful_threads(forest, rows.n_rows)));
    const i64 block_rows = rows_a_block(rows.n_rows, WALKED_ROWS, team.size());
    const std::size_t room = std::min(block_rows, rows.n_rows) * n_slots;
    std::vector<std::vector<double>> scratch(team.size(), std::vector<double>(room));
    return for_blocks(rows.n_rows, block_rows, team, run, [&](i64 begin, int count, int worker) {
        double* values = scratch[worker].data();
        for (int i = 0; i < count; ++i) {
            if (!load_slots(forest, rows, begin + i, values + i * n_slots)) return false;
        }
        typename Sink::Block block(sink, begin, count);
        for (i64 tree = 0; tree < forest.n_trees(); tree += LANES) {
            for (int i = 0; i < count; ++i) walk_row(forest, values + i * n_slots, tree, i, block);
        }
        block.finish();
        return true;
    });
}

template <class Sink>
bool predict(const PackedForest& forest, const RawRows& rows, const Sink& sink, const PredictRun& run) {
    FloatingPointMode mode;
    if (!forest.has_ranks || rows.n_rows <= FEW_ROWS) return predict_by_walking(forest, rows, sink, run);
    const ValueRanks ranks(forest, rows.columns, rows.check, predict_kernels(run.instruction_set));
    return predict_by_steps(forest, ranks, rows.n_rows, sink, run);
}

}  // namespace

int useful_threads(const PackedForest& forest, i64 n_rows) {
    return threads_for(static_cast<double>(n_rows) * static_cast<double>(forest.n_trees()) * TREE_NANOSECONDS);
}

void respond(Objective objective, const float* margins, i64 n_rows, double* out, const PredictRun& run) {
    FloatingPointMode mode;
    const Respond make = respond_of(objective, run);
    Team team(std::min(run.n_threads, threads_for(static_cast<double>(n_rows) * RESPONSE_NANOSECONDS)));
    for_blocks(n_rows, BLOCK_ROWS, team, run, [&](i64 begin, int count, int) {
        make(margins + begin, count, out + begin);
        return true;
    });
}

bool predict_margins(const PackedForest& forest, const RawRows& rows, float base_margin, float* out,
                     const PredictRun& run) {
    return predict(forest, rows, margin_sink(forest, base_margin, out), run);
}

bool predict_responses(const PackedForest& forest, const RawRows& rows, float base_margin, Objective objective,
                       double* out, const PredictRun& run) {
    return predict(forest, rows, SumSink<double>{forest, base_margin, respond_of(objective, run), out}, run);
}

bool predict_leaves(const PackedForest& forest, const RawRows& rows, i32* out, const PredictRun& run) {
    return predict(forest, rows, LeafSink{forest, out}, run);
}

void predict_margins(const PackedForest& forest, const BinRanks& ranks, i64 n_rows, float base_margin, float* out,
                     const PredictRun& run) {
    FloatingPointMode mode;
    predict_by_steps(forest, ranks, n_rows, margin_sink(forest, base_margin, out), run);
}

void predict_responses(const PackedForest& forest, const BinRanks& ranks, i64 n_rows, float base_margin,
                       Objective objective, double* out, const PredictRun& run) {
    FloatingPointMode mode;
    predict_by_steps(forest, ranks, n_rows, SumSink<double>{forest, base_margin, respond_of(objective, run), out}, run);
}

void predict_leaves(const PackedForest& forest, const BinRanks& ranks, i64 n_rows, i32* out, const PredictRun& run) {
    FloatingPointMode mode;
    predict_by_steps(forest, ranks, n_rows, LeafSink{forest, out}, run);
}

}  // namespace dyno
