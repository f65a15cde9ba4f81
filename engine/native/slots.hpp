// Storage of whole histograms, reused from node to node and tree to tree, within a budget of bytes.
#pragma once

#include <array>
#include <vector>

#include "histogram.hpp"

namespace dyno {

class SlotPool {
public:
    SlotPool(i64 n_cells, i64 budget) : n_cells_(n_cells), budget_(budget) {}

    // -1 if the budget is spent, unless the slot must be.
    i32 acquire(int words, bool must = false) {
        auto& free = free_[words];
        if (!free.empty()) {
            const i32 slot = free.back();
            free.pop_back();
            n_in_use_ += 1;
            return slot;
        }
        const i64 bytes = this->bytes(words);
        if (used_ + bytes > budget_ && !must) return -1;
        free.reserve(slots_.size() + 1);  // so that release never throws
        slots_.push_back({AlignedBytes(static_cast<std::size_t>(bytes)), words});
        used_ += bytes;
        n_in_use_ += 1;
        return static_cast<i32>(slots_.size()) - 1;
    }

    void release(i32 slot) {
        free_[slots_[slot].words].push_back(slot);
        n_in_use_ -= 1;
    }

    i64 n_in_use() const { return n_in_use_; }

    i64 bytes(int words) const { return n_cells_ * words * static_cast<i64>(sizeof(i64)); }
    Strip strip(i32 slot) { return {reinterpret_cast<i64*>(slots_[slot].bytes.data()), 0, slots_[slot].words}; }

private:
    struct Slot {
        AlignedBytes bytes;
        int words;
    };

    i64 n_cells_;
    i64 budget_;
    i64 used_ = 0;
    i64 n_in_use_ = 0;
    std::vector<Slot> slots_;
    std::array<std::vector<i32>, 4> free_;  // by words
};

}  // namespace dyno
