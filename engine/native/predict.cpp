// Blocks of rows walk down packed trees, eight rows in lockstep so that their loads overlap.
//
// A block's values are first copied to a small matrix of *slots*, one a (feature, missing direction) pair that the
// forest uses, in which a missing value is +infinity or -infinity: it then goes its way by the same comparison as any
// other value, and a step down is free of branches.
#include "predict.hpp"

#include <algorithm>
#include <limits>

#include "guarded.hpp"

namespace dyno {
namespace {

constexpr int LANES = 8;
constexpr i64 MAX_BLOCK_ROWS = 256;
constexpr i64 BLOCK_BYTES = 24 * 1024;  // the values of a block stay in L1 beside a tree

struct Slot {
    i32 feature;
    bool missing_left;
};

// Children are neighbours: the right one follows the left. A leaf leads to itself, its threshold NaN.
template <class Value>
struct Node {
    Value threshold;
    u32 slot;
    u32 left;
};

// The smallest Value >= threshold parts values exactly as the threshold does.
template <class Value>
Value narrow_threshold(double threshold) {
    if constexpr (sizeof(Value) == 8) return threshold;
    const float near = static_cast<float>(threshold);
    if (static_cast<double>(near) >= threshold) return near;
    return static_cast<float>(value_of(order_key(near) + 1));
}

template <class Value>
struct PackedForest {
    std::vector<Slot> slots;
    std::vector<Node<Value>> nodes;
    std::vector<float> values;     // of each packed node; 0 in an inner one
    std::vector<i32> original;     // each packed node's index in its tree as given
    std::vector<i64> roots;

    PackedForest(const ForestArrays& forest, i32 n_features) : slot_of_(2 * static_cast<std::size_t>(n_features), NONE) {
        const i64 n_nodes = forest.offsets[forest.n_trees];
        nodes.reserve(n_nodes);
        values.reserve(n_nodes);
        original.reserve(n_nodes);
        for (i64 tree = 0; tree < forest.n_trees; ++tree) pack_tree(forest, forest.offsets[tree]);
        if (slots.empty()) slots.push_back({0, false});  // what leaves look at when no node splits
    }

private:
    static constexpr u32 NONE = static_cast<u32>(-1);

    void pack_tree(const ForestArrays& forest, i64 first) {
        const u32 root = static_cast<u32>(nodes.size());
        roots.push_back(root);
        add_node(forest, first, 0);
        for (u32 node = root; node < nodes.size(); ++node) {
            const i64 i = first + original[node];
            if (forest.leaf[i]) continue;
            nodes[node].left = static_cast<u32>(nodes.size());
            add_node(forest, first, forest.left[i]);
            add_node(forest, first, forest.right[i]);
        }
    }

    void add_node(const ForestArrays& forest, i64 first, i32 index) {
        const i64 i = first + index;
        const u32 self = static_cast<u32>(nodes.size());
        if (forest.leaf[i]) nodes.push_back({std::numeric_limits<Value>::quiet_NaN(), 0, self});
        else nodes.push_back({narrow_threshold<Value>(forest.threshold[i]), slot(forest.feature[i], forest.missing_left[i]), 0});
        values.push_back(forest.value[i]);
        original.push_back(index);
    }

    u32 slot(i32 feature, bool missing_left) {
        u32& known = slot_of_[2 * static_cast<std::size_t>(feature) + missing_left];
        if (known == NONE) {
            known = static_cast<u32>(slots.size());
            slots.push_back({feature, missing_left});
        }
        return known;
    }

    std::vector<u32> slot_of_;
};

template <class Value>
Value value_at(const Column& column, i64 row) {
    if constexpr (sizeof(Value) == 4) return *column.at<float>(row);
    else return column.is_double ? *column.at<double>(row) : static_cast<double>(*column.at<float>(row));
}

// The block's values, row-major by slot.
template <class Value>
void load_slots(const std::vector<Column>& columns, const std::vector<Slot>& slots, i64 begin, i64 count, Value* out) {
    constexpr Value INFINITE = std::numeric_limits<Value>::infinity();
    const i64 n_slots = static_cast<i64>(slots.size());
    for (i64 s = 0; s < n_slots; ++s) {
        const Column& column = columns[slots[s].feature];
        const Value missing = slots[s].missing_left ? -INFINITE : INFINITE;
        for (i64 i = 0; i < count; ++i) {
            const Value x = value_at<Value>(column, begin + i);
            out[i * n_slots + s] = x != x ? missing : x;
        }
    }
}

// Takes LANES rows, one after the other in `values`, from a root to their leaves.
template <class Value>
void descend(const Node<Value>* nodes, u32 root, const Value* values, i64 n_slots, u32* reached) {
    u32 node[LANES];
    std::fill_n(node, LANES, root);
    u32 moved;
    do {
        moved = 0;
#pragma GCC unroll 8
        for (int lane = 0; lane < LANES; ++lane) {
            const Node<Value>& at = nodes[node[lane]];
            const u32 next = at.left + (values[lane * n_slots + at.slot] >= at.threshold);
            moved |= next ^ node[lane];
            node[lane] = next;
        }
    } while (moved);
    std::copy_n(node, LANES, reached);
}

// Calls visit(tree, row, packed node) for every row and tree; for a row, trees come in order.
template <class Value, class Visit>
void walk(const std::vector<Column>& columns, i64 n_rows, const PackedForest<Value>& forest, int n_threads,
          const Visit& visit) {
    const i64 n_slots = static_cast<i64>(forest.slots.size());
    const i64 fitting = BLOCK_BYTES / (n_slots * static_cast<i64>(sizeof(Value))) / LANES * LANES;
    const i64 block_rows = std::clamp<i64>(fitting, LANES, MAX_BLOCK_ROWS);
    const i64 n_blocks = (n_rows + block_rows - 1) / block_rows;
    Team team(worker_count(n_threads, n_blocks));
    std::vector<std::vector<Value>> scratch(team.size(), std::vector<Value>(block_rows * n_slots));
    run_guarded(team, n_blocks, [&](i64 block, int worker) {
        Value* values = scratch[worker].data();
        const i64 begin = block * block_rows, count = std::min(block_rows, n_rows - begin);
        load_slots<Value>(columns, forest.slots, begin, count, values);
        for (std::size_t tree = 0; tree < forest.roots.size(); ++tree) {
            for (i64 i = 0; i < count; i += LANES) {
                u32 reached[LANES];
                descend(forest.nodes.data(), static_cast<u32>(forest.roots[tree]), values + i * n_slots, n_slots, reached);
                const i64 lanes = std::min<i64>(LANES, count - i);
                for (i64 lane = 0; lane < lanes; ++lane) visit(tree, begin + i + lane, reached[lane]);
            }
        }
    });
}

bool any_double(const std::vector<Column>& columns) {
    return std::any_of(columns.begin(), columns.end(), [](const Column& column) { return column.is_double; });
}

template <class Value>
void add_margins(const std::vector<Column>& columns, i64 n_rows, const ForestArrays& arrays, float* margins,
                 int n_threads) {
    const PackedForest<Value> forest(arrays, static_cast<i32>(columns.size()));
    walk<Value>(columns, n_rows, forest, n_threads,
                [&](std::size_t, i64 row, u32 node) { margins[row] += forest.values[node]; });
}

template <class Value>
void note_leaves(const std::vector<Column>& columns, i64 n_rows, const ForestArrays& arrays, i32* leaves,
                 int n_threads) {
    const PackedForest<Value> forest(arrays, static_cast<i32>(columns.size()));
    walk<Value>(columns, n_rows, forest, n_threads, [&](std::size_t tree, i64 row, u32 node) {
        leaves[row * arrays.n_trees + static_cast<i64>(tree)] = forest.original[node];
    });
}

}  // namespace

void predict_margins(const std::vector<Column>& columns, i64 n_rows, const ForestArrays& forest, float base_margin,
                     float* margins, int n_threads) {
    FloatingPointMode mode;
    std::fill_n(margins, n_rows, base_margin);
    if (any_double(columns)) add_margins<double>(columns, n_rows, forest, margins, n_threads);
    else add_margins<float>(columns, n_rows, forest, margins, n_threads);
}

void predict_leaves(const std::vector<Column>& columns, i64 n_rows, const ForestArrays& forest, i32* leaves,
                    int n_threads) {
    FloatingPointMode mode;
    if (any_double(columns)) note_leaves<double>(columns, n_rows, forest, leaves, n_threads);
    else note_leaves<float>(columns, n_rows, forest, leaves, n_threads);
}

}  // namespace dyno
