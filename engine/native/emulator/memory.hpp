// Device memory: each buffer an allocation of its own between guard bytes, full of poison until it is written.
//
// Under AddressSanitizer the guards may not be touched at all, so that the very access is reported; otherwise they are
// looked at after every launch, and the report names the kernel.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "draws.hpp"

namespace dyno::emulator {

// Memory between two guards; `what` names it in errors.
class Guarded {
public:
    Guarded(std::size_t size, std::string what);
    ~Guarded();
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;

    std::byte* data() const { return whole_ + kGuard; }
    std::size_t size() const { return size_; }
    void poison(u64 pattern);
    void check() const;  // throws std::runtime_error if a guard was written to

private:
    static constexpr std::size_t kGuard = 256;  // also the alignment that CUDA gives

    std::byte* whole_;
    std::size_t size_;
    std::string what_;
};

class Memory {
public:
    explicit Memory(u64 seed) : draws_(seed) {}

    void* allocate(std::size_t size, const std::string& what);
    void release(void* address);  // throws if it is no buffer's address or a guard was written to
    void check() const;

private:
    Draws draws_;
    std::map<void*, std::unique_ptr<Guarded>> buffers_;
};

}  // namespace dyno::emulator
