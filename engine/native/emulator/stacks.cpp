#include "stacks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <new>

namespace dyno::emulator {
namespace {

struct Store {
    std::mutex mutex;
    std::vector<std::byte*> idle;
};

Store& store() {
    static Store* const whole = new Store;  // outlives every device, also those that are closed as the process ends
    return *whole;
}

std::byte* map_stack(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* mapped = mmap(nullptr, page + bytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mprotect(mapped, page, PROT_NONE);
    return static_cast<std::byte*>(mapped) + page;
}

}  // namespace

std::byte* Stacks::bottom(std::size_t index) {
    std::lock_guard lock(store().mutex);
    std::vector<std::byte*>& idle = store().idle;
    while (stacks_.size() <= index) {
        if (idle.empty()) idle.push_back(map_stack(kBytes));
        stacks_.push_back(idle.back());
        idle.pop_back();
    }
    return stacks_[index];
}

Stacks::~Stacks() {
    std::lock_guard lock(store().mutex);
    store().idle.insert(store().idle.end(), stacks_.rbegin(), stacks_.rend());
}

}  // namespace dyno::emulator
