// What a kernel sees where there is no CUDA compiler: the other half of portable.cuh, which includes this.
//
// Every function that touches another lane is a scheduling point. Waiting is done by the machine (fibers.cpp, or
// threads.cpp where each lane is a thread of the operating system); `Site` is where in the source a lane waits.
#pragma once

#include "registry.hpp"
#include "semantics.cuh"
#include "site.hpp"

#if defined(DYNO_LANES_ARE_THREADS)
#include "thread_memory.hpp"
#else
#include "fiber_memory.hpp"
#endif

#define DYNO_DEVICE inline
#define DYNO_UNROLL

#ifndef DYNO_KERNEL_LIST
#define DYNO_KERNEL_LIST product_kernels
#endif

// The macro of portable.cuh: defines the kernel and enters it in the list.
#define DYNO_KERNEL(name, State, threads)                                                         \
    static void name(State* state);                                                               \
    [[maybe_unused]] static const bool name##_is_listed = ::dyno::emulator::enter(                                 \
        ::dyno::emulator::DYNO_KERNEL_LIST(),                                                     \
        {#name, threads, [](void* state) { name(static_cast<State*>(state)); }});                 \
    static void name([[maybe_unused]] State* state)

namespace dyno::emulator {

enum class Kind : u32 { sync, shuffle, shuffle_up, shuffle_down, shuffle_xor, ballot, any, all, match };

void meet_block(Site site);
u64 meet_warp(Kind kind, u32 mask, u64 value, u32 argument, Site site);
void give_way(Site site);
[[noreturn]] void refuse(Site site, const char* message);

template <class T>
T exchange(Kind kind, u32 mask, T value, u32 argument, Site site) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 32 or 64 bits");
    u64 bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    bits = meet_warp(kind, mask, bits, argument, site);
    __builtin_memcpy(&value, &bits, sizeof(T));
    return value;
}

}  // namespace dyno::emulator

namespace dyno {

inline u32 thread() { return emulator::running.lane->thread; }
inline u32 block() { return emulator::running.lane->block; }
inline u32 block_size() { return emulator::running.lane->block_size; }
inline u32 grid_size() { return emulator::running.lane->grid_size; }

template <class T>
T* shared(u32 offset, emulator::Site site = emulator::Site::caller()) {
    if (offset % alignof(T) != 0) emulator::refuse(site, "shared memory at an offset that its type is not aligned to");
    return reinterpret_cast<T*>(emulator::running.lane->shared + offset);
}

inline void sync_block(emulator::Site site = emulator::Site::caller()) { emulator::meet_block(site); }
inline void sync_warp(u32 mask, emulator::Site site = emulator::Site::caller()) {
    emulator::meet_warp(emulator::Kind::sync, mask, 0, 0, site);
}

template <class T>
T shuffle(u32 mask, T value, u32 source, emulator::Site site = emulator::Site::caller()) {
    return emulator::exchange(emulator::Kind::shuffle, mask, value, source, site);
}
template <class T>
T shuffle_up(u32 mask, T value, u32 delta, emulator::Site site = emulator::Site::caller()) {
    return emulator::exchange(emulator::Kind::shuffle_up, mask, value, delta, site);
}
template <class T>
T shuffle_down(u32 mask, T value, u32 delta, emulator::Site site = emulator::Site::caller()) {
    return emulator::exchange(emulator::Kind::shuffle_down, mask, value, delta, site);
}
template <class T>
T shuffle_xor(u32 mask, T value, u32 bits, emulator::Site site = emulator::Site::caller()) {
    return emulator::exchange(emulator::Kind::shuffle_xor, mask, value, bits, site);
}

inline u32 ballot(u32 mask, bool vote, emulator::Site site = emulator::Site::caller()) {
    return static_cast<u32>(emulator::meet_warp(emulator::Kind::ballot, mask, vote, 0, site));
}
inline bool any(u32 mask, bool vote, emulator::Site site = emulator::Site::caller()) {
    return emulator::meet_warp(emulator::Kind::any, mask, vote, 0, site) != 0;
}
inline bool all(u32 mask, bool vote, emulator::Site site = emulator::Site::caller()) {
    return emulator::meet_warp(emulator::Kind::all, mask, vote, 0, site) != 0;
}
inline u32 match(u32 mask, u32 value, emulator::Site site = emulator::Site::caller()) {
    return static_cast<u32>(emulator::meet_warp(emulator::Kind::match, mask, value, 0, site));
}

inline u32 atomic_add(u32* address, u32 value) {
    return emulator::change(address, [&](u32 before) { return before + value; });
}
inline i32 atomic_add(i32* address, i32 value) {
    return static_cast<i32>(atomic_add(reinterpret_cast<u32*>(address), static_cast<u32>(value)));
}
inline u64 atomic_add(u64* address, u64 value, emulator::Site site = emulator::Site::caller()) {
    if (emulator::is_shared(address)) emulator::refuse(site, "a 64-bit atomic on shared memory");
    return emulator::change(address, [&](u64 before) { return before + value; });
}
inline i64 atomic_add(i64* address, i64 value, emulator::Site site = emulator::Site::caller()) {
    return static_cast<i64>(atomic_add(reinterpret_cast<u64*>(address), static_cast<u64>(value), site));
}
inline u32 atomic_max(u32* address, u32 value) {
    return emulator::change(address, [&](u32 before) { return before < value ? value : before; });
}
inline u32 atomic_exchange(u32* address, u32 value) {
    return emulator::change(address, [&](u32) { return value; });
}
inline u32 atomic_add_ordered(u32* address, u32 value) { return emulator::add_ordered(address, value); }

inline u32 load_acquire(const u32* address) { return emulator::load_acquire(address); }
inline u64 load_acquire(const u64* address) { return emulator::load_acquire(address); }
inline void store_release(u32* address, u32 value) { emulator::store_release(address, value); }
inline void store_release(u64* address, u64 value) { emulator::store_release(address, value); }

inline void pause(emulator::Site site = emulator::Site::caller()) { emulator::give_way(site); }

template <class T>
struct Global {
    T* address;
    operator T*() const { return address; }
};

inline u32 popcount(u32 bits) { return static_cast<u32>(__builtin_popcount(bits)); }
inline u32 lowest_bit(u32 bits) { return static_cast<u32>(__builtin_ctz(bits)); }

}  // namespace dyno
