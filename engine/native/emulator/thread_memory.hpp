// Memory that lanes share where each is a thread of the operating system: real atomics, with exactly the ordering that
// portable.cuh promises, so that ThreadSanitizer sees what a kernel relies on without having said so.
#pragma once

#include "site.hpp"

namespace dyno::emulator {

template <class T, class Change>
T change(T* address, Change change, int order = __ATOMIC_RELAXED) {
    T before = __atomic_load_n(address, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(address, &before, change(before), true, order, __ATOMIC_RELAXED)) {
    }
    return before;
}

inline u32 add_ordered(u32* address, u32 value) {
    return change(address, [&](u32 now) { return now + value; }, __ATOMIC_ACQ_REL);
}

template <class T>
T load_acquire(const T* address) {
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

template <class T>
void store_release(T* address, T value) {
    __atomic_store_n(address, value, __ATOMIC_RELEASE);
}

}  // namespace dyno::emulator
