// Storage of the native backend's large arrays, in huge pages where the system gives them.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

namespace dyno {

// 64-byte aligned, uninitialised storage.
//
// What is not small is mapped by itself, and so goes back to the system when it is freed, which a heap's need not.
// What is large begins on a boundary of huge pages: rows are looked up all over it, and with small pages nearly every
// look-up is a walk of the page tables. Its end beyond a whole number of huge pages lies in small ones, so that no
// memory is taken for alignment's sake.
class AlignedBytes {
public:
    AlignedBytes() = default;
    explicit AlignedBytes(std::size_t size, std::size_t mapped_from = kMapped) : size_(size) {
        if (size > std::numeric_limits<std::size_t>::max() - 2 * kHugePage) throw std::bad_alloc();
        const std::size_t padded = (size + 127) / 64 * 64;  // 64 bytes of slack: vector loads may run over
        if (padded >= mapped_from) {
            data_ = map(padded);
            return;
        }
        data_ = {static_cast<std::byte*>(std::aligned_alloc(64, padded)), Release{0}};
        if (data_ == nullptr) throw std::bad_alloc();
    }
    std::byte* data() { return data_.get(); }
    const std::byte* data() const { return data_.get(); }
    std::size_t size() const { return size_; }

private:
    static constexpr std::size_t kPage = 4096;
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;
    static constexpr std::size_t kMapped = std::size_t{256} << 10;

    struct Release {
        std::size_t n_mapped;  // 0: it came from the heap
        void operator()(std::byte* p) const { n_mapped == 0 ? std::free(p) : static_cast<void>(munmap(p, n_mapped)); }
    };
    using Held = std::unique_ptr<std::byte, Release>;

    static Held map(std::size_t size) {
        const std::size_t used = (size + kPage - 1) / kPage * kPage, reserved = used + kHugePage;
        void* raw = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (raw == MAP_FAILED) throw std::bad_alloc();
        auto* begin = static_cast<std::byte*>(raw);
        const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(raw) % kHugePage) % kHugePage;
        const std::size_t after = kHugePage - before;
        if (before > 0) munmap(begin, before);
        if (after > 0) munmap(begin + before + used, after);
        madvise(begin + before, used, MADV_HUGEPAGE);  // a wish: without it everything works, only slower
        return {begin + before, Release{used}};
    }

    Held data_{nullptr, Release{0}};
    std::size_t size_ = 0;
};

}  // namespace dyno
