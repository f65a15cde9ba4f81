// Stacks for fibers, each below a page that may not be touched. Addresses are staggered: lanes call the same functions
// at the same depth, and would otherwise all meet in the same few sets of the cache.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <vector>

namespace dyno::emulator {

class Stacks {
public:
    Stacks() = default;
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    ~Stacks() {
        for (std::byte* stack : stacks_) munmap(stack, stride());
    }

    std::byte* bottom(std::size_t index) {
        while (stacks_.size() <= index) add();
        return stacks_[index] + page();
    }

    static std::size_t size(std::size_t index) { return kBytes - index % 61 * 64; }

private:
    static constexpr std::size_t kBytes = 64 * 1024;

    static std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
    static std::size_t stride() { return page() + kBytes; }

    void add() {
        constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
        void* mapped = mmap(nullptr, stride(), PROT_READ | PROT_WRITE, kFlags, -1, 0);
        if (mapped == MAP_FAILED) throw std::bad_alloc();
        stacks_.push_back(static_cast<std::byte*>(mapped));
        mprotect(mapped, page(), PROT_NONE);
    }

    std::vector<std::byte*> stacks_;
};

}  // namespace dyno::emulator
