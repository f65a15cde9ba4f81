#include "memory.hpp"

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace dyno::emulator {
namespace {

constexpr unsigned char kGuardByte = 0xa5;

// The offset of the first byte that is no longer a guard's, or `size`.
[[maybe_unused]] std::size_t first_written(const std::byte* guard, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i)
        if (guard[i] != std::byte{kGuardByte}) return i;
    return size;
}

}  // namespace

Guarded::Guarded(std::size_t size, std::string what) : size_(size), what_(std::move(what)) {
    void* whole = nullptr;
    if (posix_memalign(&whole, kGuard, size + 2 * kGuard) != 0) throw std::bad_alloc();
    whole_ = static_cast<std::byte*>(whole);
    std::memset(whole_, kGuardByte, kGuard);
    std::memset(data() + size, kGuardByte, kGuard);
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(whole_, kGuard);
    __asan_poison_memory_region(data() + size, kGuard);
#endif
}

Guarded::~Guarded() {
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(whole_, size_ + 2 * kGuard);
#endif
    std::free(whole_);
}

void Guarded::poison(u64 pattern) {
    std::size_t i = 0;
    for (; i + sizeof(pattern) <= size_; i += sizeof(pattern)) std::memcpy(data() + i, &pattern, sizeof(pattern));
    std::memcpy(data() + i, &pattern, size_ - i);
}

void Guarded::check() const {
#if !defined(__SANITIZE_ADDRESS__)
    static const std::vector<std::byte> guard(kGuard, std::byte{kGuardByte});
    const auto is_whole = [&](const std::byte* from) { return std::memcmp(from, guard.data(), kGuard) == 0; };
    if (is_whole(whole_) && is_whole(data() + size_)) return;
    const std::size_t after = first_written(data() + size_, kGuard);
    const std::size_t before = first_written(whole_, kGuard);
    const std::string where = after != kGuard ? std::to_string(after) + " bytes past the end of '"
                                              : std::to_string(kGuard - before) + " bytes before '";
    throw std::runtime_error("a write " + where + what_ + "', which has " + std::to_string(size_) +
                             " bytes; an emulator built with -fsanitize=address stops at the line");
#endif
}

void* Memory::allocate(std::size_t size, const std::string& what) {
    auto made = std::make_unique<Guarded>(size, what);
    made->poison(draws_.next());
    void* address = made->data();
    buffers_.emplace(address, std::move(made));
    return address;
}

void Memory::release(void* address) {
    const auto found = buffers_.find(address);
    if (found == buffers_.end()) throw std::runtime_error("this address is no buffer's, or was freed before");
    const auto buffer = std::move(found->second);
    buffers_.erase(found);
    buffer->check();
}

void Memory::check() const {
    for (const auto& [address, buffer] : buffers_) buffer->check();
}

}  // namespace dyno::emulator
