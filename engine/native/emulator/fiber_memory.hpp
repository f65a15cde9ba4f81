// Memory that lanes share where they are fibers of one thread: plain accesses, and between them the schedule may
// change hands.
#pragma once

#include "site.hpp"

namespace dyno::emulator {

void change_hands();

inline void scheduling_point(i32 weight) {
    running.fuel -= weight;
    if (running.fuel < 0) change_hands();
}

constexpr i32 ATOMIC_WEIGHT = 1;
constexpr i32 FLAG_WEIGHT = 16;  // flags are few, and their order is what goes wrong

inline void note_atomic(const void* address, bool changed) {
    (is_shared(address) ? running.tally.shared_atomics : running.tally.global_atomics) += 1;
    if (changed) running.idle_pauses = 0;
}

template <class T, class Change>
T change(T* address, Change change) {
    scheduling_point(ATOMIC_WEIGHT);
    const T before = *address;
    *address = change(before);
    note_atomic(address, *address != before);
    scheduling_point(ATOMIC_WEIGHT);
    return before;
}

inline u32 add_ordered(u32* address, u32 value) {
    scheduling_point(FLAG_WEIGHT);
    const u32 before = change(address, [&](u32 now) { return now + value; });
    scheduling_point(FLAG_WEIGHT);
    return before;
}

template <class T>
T load_acquire(const T* address) {
    scheduling_point(FLAG_WEIGHT);
    return *const_cast<const volatile T*>(address);
}

template <class T>
void store_release(T* address, T value) {
    scheduling_point(FLAG_WEIGHT);
    *const_cast<volatile T*>(address) = value;
    running.idle_pauses = 0;
    scheduling_point(FLAG_WEIGHT);
}

}  // namespace dyno::emulator
