// Sorting and counting keys: LSD radix sort by 11-bit digits, and a set that gives up once it holds too many.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "semantics.cuh"

namespace dyno {

template <class Key>
struct WeightedKey {
    Key key;
    u32 weight;
};

inline u32 key_of(u32 item) { return item; }
inline u64 key_of(u64 item) { return item; }
template <class Key>
Key key_of(const WeightedKey<Key>& item) { return item.key; }

// Sorts by key, using `spare` of the same size; returns whichever of the two holds the result.
template <class Item>
Item* radix_sort(Item* items, Item* spare, std::size_t count) {
    constexpr int DIGIT = 11, BUCKETS = 1 << DIGIT;
    constexpr int BITS = 8 * sizeof(key_of(Item{})), PASSES = (BITS + DIGIT - 1) / DIGIT;
    std::array<std::array<u32, BUCKETS>, PASSES> counts{};
    for (std::size_t i = 0; i < count; ++i) {
        const auto key = key_of(items[i]);
        for (int pass = 0; pass < PASSES; ++pass) ++counts[pass][(key >> (pass * DIGIT)) & (BUCKETS - 1)];
    }
    for (int pass = 0; pass < PASSES && count > 0; ++pass) {
        auto& starts = counts[pass];
        const int shift = pass * DIGIT;
        if (starts[(key_of(items[0]) >> shift) & (BUCKETS - 1)] == count) continue;  // one digit only: nothing moves
        u32 sum = 0;
        for (u32& start : starts) sum += std::exchange(start, sum);
        for (std::size_t i = 0; i < count; ++i) spare[starts[(key_of(items[i]) >> shift) & (BUCKETS - 1)]++] = items[i];
        std::swap(items, spare);
    }
    return items;
}

// The distinct keys seen, up to a limit. Open addressing in buckets of two, at most a quarter full: a known key is nearly
// always in its own bucket, where one comparison without a branch finds it. The all-ones key must not be added.
template <class Key>
class DistinctKeys {
public:
    explicit DistinctKeys(std::size_t limit) : limit_(limit), table_(std::size_t{1} << log_size_, EMPTY) {}

    // Adds keys, skipping `ignored`; false as soon as there are more than the limit.
    bool add(const Key* keys, std::size_t count, Key ignored) {
        for (std::size_t i = 0; i < count; ++i) {
            const Key key = keys[i];
            const Key* bucket = table_.data() + bucket_of(key);
            if ((bucket[0] == key) | (bucket[1] == key) | (key == ignored)) continue;
            if (!insert(key)) return false;
        }
        return true;
    }

    std::vector<Key> keys() const {
        std::vector<Key> found;
        found.reserve(size_);
        for (const Key key : table_) {
            if (key != EMPTY) found.push_back(key);
        }
        return found;
    }

private:
    static constexpr Key EMPTY = static_cast<Key>(-1);

    std::size_t bucket_of(Key key) const {
        return (static_cast<u64>(key) * 0x9E3779B97F4A7C15ull) >> (64 - log_size_) & ~std::size_t{1};
    }

    std::size_t slot_of(Key key) const {
        std::size_t slot = bucket_of(key);
        while (table_[slot] != key && table_[slot] != EMPTY) slot = (slot + 1) & (table_.size() - 1);
        return slot;
    }

    bool insert(Key key) {
        const std::size_t slot = slot_of(key);
        if (table_[slot] == key) return true;
        if (size_ == limit_) return false;
        table_[slot] = key;
        if (++size_ * 4 > table_.size()) grow();
        return true;
    }

    void grow() {
        const std::vector<Key> held = keys();
        ++log_size_;
        table_.assign(std::size_t{1} << log_size_, EMPTY);
        for (const Key key : held) table_[slot_of(key)] = key;
    }

    std::size_t limit_;
    std::size_t size_ = 0;
    int log_size_ = 9;
    std::vector<Key> table_;
};

}  // namespace dyno
