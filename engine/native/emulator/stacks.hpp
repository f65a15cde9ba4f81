// Stacks for fibers, each above a page that may not be touched.
#pragma once

#include <cstddef>
#include <vector>

namespace dyno::emulator {

// The stacks of one machine. They come from a store of the whole process and go back there: a page that was touched
// once costs nothing more, and devices are opened and closed with every fit.
class Stacks {
public:
    Stacks() = default;
    ~Stacks();
    Stacks(const Stacks&) = delete;
    Stacks& operator=(const Stacks&) = delete;

    std::byte* bottom(std::size_t index);

    // Sizes differ, so that lanes, which call the same functions at the same depth, do not all meet in the same few
    // sets of the cache.
    static std::size_t size(std::size_t index) { return kBytes - index % 61 * 64; }

private:
    static constexpr std::size_t kBytes = 64 * 1024;

    std::vector<std::byte*> stacks_;
};

}  // namespace dyno::emulator
