#include "predict_steps.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <utility>

namespace dyno {
namespace {

constexpr int MAX_BITS = 8;                  // an entry's number is a byte
constexpr std::size_t GROUP_TESTS = 4096;    // 64 bytes a test: they stay in L2
constexpr std::size_t LEAST_ENTRIES = 16;    // a vector of values
constexpr u32 ANY = MOST_WORK;               // a bit that nothing depends on

// A node keeps its left side's bits while its right side is numbered.
static_assert(FIRST_TEST + GROUP_TESTS + MAX_BITS * (1u << MAX_BITS) <= MOST_WORK);

using TestKey = std::pair<u32, Rank>;
using Bits = std::array<u32, MAX_BITS>;  // bit k of a number: which of the RowBits that steps work on

// Which nodes are above the entries, and how many entries are below each; of one tree.
class Top {
public:
    Top(const PackedForest& forest, u32 root, u32 end) : forest_(forest), root_(root), n_entries_(end - root, 0) {
        u32 entries = 1;
        for (u32 node = root; node < end && entries < 1u << MAX_BITS; ++node) {
            if (is_leaf(node)) continue;
            n_entries_[node - root] = 1;
            ++entries;
        }
        for (u32 node = end; node-- > root;) {
            u32& own = n_entries_[node - root];
            own = own == 0 ? 1 : n_entries_[left_of(node) - root] + n_entries_[left_of(node) + 1 - root];
        }
    }

    bool is_entry(u32 node) const { return n_entries(node) == 1; }
    u32 n_entries(u32 node) const { return n_entries_[node - root_]; }
    u32 left_of(u32 node) const { return forest_.rank_nodes[node].left; }

    int depth(u32 node) const {
        return is_entry(node) ? 0 : 1 + std::max(depth(left_of(node)), depth(left_of(node) + 1));
    }

private:
    bool is_leaf(u32 node) const { return left_of(node) == node; }

    const PackedForest& forest_;
    u32 root_;
    std::vector<u32> n_entries_;
};

// The number in [low .. high] that most powers of two divide.
u32 roundest(u32 low, u32 high) {
    u32 found = high;
    while ((found & (found - 1)) >= low) found &= found - 1;
    return found;
}

class StepPacker {
public:
    explicit StepPacker(PackedForest& forest) : forest_(forest) {}

    void pack_all() {
        for (i64 tree = 0; tree < forest_.n_trees(); ++tree) pack_tree(tree);
        close_group(forest_.n_trees());
    }

private:
    void pack_tree(i64 tree) {
        const u32 root = forest_.roots[tree];
        const u32 end = tree + 1 < forest_.n_trees() ? forest_.roots[tree + 1] : static_cast<u32>(forest_.nodes.size());
        const Top top(forest_, root, end);
        const int depth = std::min(top.depth(root), MAX_BITS);
        const std::vector<TestKey> all = tests_of(root, end);
        if (n_tests() + std::min<std::size_t>(all.size(), top.n_entries(root)) > GROUP_TESTS) close_group(tree);
        const bool is_table = static_cast<int>(all.size()) <= std::min(depth + 1, MAX_BITS);
        const int n_bits = is_table ? static_cast<int>(all.size()) : depth;
        forest_.stepped.push_back({static_cast<u32>(forest_.steps.size()), 0, static_cast<u32>(forest_.entries.size()),
                                   n_bits, {}, true});
        forest_.entries.resize(forest_.entries.size() + std::max(std::size_t{1} << n_bits, LEAST_ENTRIES), root);
        if (is_table) enter_outcomes(root, all);
        else enter_ranges(top, root, n_bits);
        finish_tree();
    }

    void finish_tree() {
        SteppedTree& tree = forest_.stepped.back();
        tree.n_steps = static_cast<u32>(forest_.steps.size()) - tree.first_step;
        for (std::size_t entry = tree.first_entry; entry < forest_.entries.size(); ++entry) {
            const u32 node = forest_.entries[entry];
            forest_.entry_values.push_back(forest_.values[node]);
            if (entry < tree.first_entry + (std::size_t{1} << tree.n_bits)) tree.ends &= is_leaf(node);
        }
        forest_.work_size = std::max(forest_.work_size, FIRST_TEST + static_cast<u32>(GROUP_TESTS) + n_taken_);
    }

    // ---- a table of all outcomes

    // Each combination of the tests' outcomes leads to some leaf, whatever their order along the ways.
    void enter_outcomes(u32 root, const std::vector<TestKey>& tests) {
        SteppedTree& tree = forest_.stepped.back();
        for (int bit = 0; bit < tree.n_bits; ++bit) tree.bits[bit] = word_of(index_of(tests[bit]));
        for (u32 outcome = 0; outcome < u32{1} << tree.n_bits; ++outcome) {
            u32 node = root;
            while (!is_leaf(node)) {
                const auto bit = std::find(tests.begin(), tests.end(), key_of(node)) - tests.begin();
                node = forest_.rank_nodes[node].left + (outcome >> (tree.n_bits - 1 - bit) & 1);
            }
            forest_.entries[tree.first_entry + outcome] = node;
        }
    }

    // ---- ranges of numbers

    void enter_ranges(const Top& top, u32 root, int n_bits) {
        free_.clear();
        n_taken_ = 0;
        const Bits found = number(top, root, 0, 1u << n_bits);
        SteppedTree& tree = forest_.stepped.back();
        for (int bit = 0; bit < n_bits; ++bit) {
            const u32 at = found[n_bits - 1 - bit];
            tree.bits[bit] = word_of(at == ANY ? ALL_ZERO : at);
        }
    }

    // The bits of the number of whatever entry below `node` a row comes to, from [low .. high).
    Bits number(const Top& top, u32 node, u32 low, u32 high) {
        if (top.is_entry(node)) return number_entry(node, low, high);
        const u32 left = top.left_of(node), right = left + 1;
        const u32 middle = roundest(low + top.n_entries(left), high - top.n_entries(right));
        const Bits zero = number(top, left, low, middle);
        const Bits one = number(top, right, middle, high);
        const Bits found = choose(index_of(key_of(node)), zero, one);
        for (const Bits& below : {zero, one}) {
            for (const u32 at : below) release_unless_in(found, at);
        }
        return found;
    }

    // Bits below the largest aligned block of the range that begins where it does may be any.
    Bits number_entry(u32 node, u32 low, u32 high) {
        std::fill_n(forest_.entries.begin() + forest_.stepped.back().first_entry + low, high - low, node);
        Bits bits;
        for (int k = 0; k < MAX_BITS; ++k) {
            const bool is_any = (low & ((2u << k) - 1)) == 0 && low + (2u << k) <= high;
            bits[k] = is_any ? ANY : low >> k & 1 ? ALL_ONE : ALL_ZERO;
        }
        return bits;
    }

    Bits choose(u32 test, const Bits& zero, const Bits& one) {
        std::map<std::pair<u32, u32>, u32> made{{{ALL_ZERO, ALL_ONE}, test}};
        Bits found;
        for (int k = 0; k < MAX_BITS; ++k) {
            if (one[k] == ANY || zero[k] == one[k]) found[k] = zero[k];
            else if (zero[k] == ANY) found[k] = one[k];
            else if (const auto at = made.find({zero[k], one[k]}); at != made.end()) found[k] = at->second;
            else {
                found[k] = made[{zero[k], one[k]}] = take();
                forest_.steps.push_back({word_of(found[k]), word_of(test), word_of(zero[k]), word_of(one[k])});
            }
        }
        return found;
    }

    // ---- where steps leave what they find: behind the tests

    u32 take() {
        if (!free_.empty()) {
            const u32 at = free_.back();
            free_.pop_back();
            return at;
        }
        return FIRST_TEST + static_cast<u32>(GROUP_TESTS) + n_taken_++;
    }

    void release_unless_in(const Bits& kept, u32 at) {
        if (at == ANY || at < FIRST_TEST + GROUP_TESTS) return;
        if (std::find(kept.begin(), kept.end(), at) == kept.end() &&
            std::find(free_.begin(), free_.end(), at) == free_.end())
            free_.push_back(at);
    }

    // ---- tests

    u32 index_of(const TestKey& test) {
        const auto [at, is_new] = indices_.try_emplace(test, FIRST_TEST + static_cast<u32>(n_tests()));
        if (is_new) forest_.tests.push_back({test.first, test.second});
        return at->second;
    }

    std::size_t n_tests() const { return forest_.tests.size() - group_first_; }

    void close_group(i64 end) {
        const i64 begin = forest_.groups.empty() ? 0 : forest_.groups.back().end;
        forest_.groups.push_back({begin, end, static_cast<u32>(group_first_), static_cast<u32>(n_tests())});
        group_first_ = forest_.tests.size();
        indices_.clear();
    }

    std::vector<TestKey> tests_of(u32 root, u32 end) const {
        std::vector<TestKey> found;
        for (u32 node = root; node < end; ++node) {
            if (!is_leaf(node)) found.push_back(key_of(node));
        }
        std::sort(found.begin(), found.end());
        found.erase(std::unique(found.begin(), found.end()), found.end());
        return found;
    }

    TestKey key_of(u32 node) const { return {forest_.rank_nodes[node].slot, forest_.rank_nodes[node].bound}; }
    bool is_leaf(u32 node) const { return forest_.rank_nodes[node].left == node; }

    PackedForest& forest_;
    std::size_t group_first_ = 0;
    std::map<TestKey, u32> indices_;
    std::vector<u32> free_;
    u32 n_taken_ = 0;
};

}  // namespace

void pack_steps(PackedForest& forest) { StepPacker(forest).pack_all(); }

}  // namespace dyno
