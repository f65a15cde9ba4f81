// The schedule's chance: a counter hash of (seed, how many were drawn), so a seed replays a run exactly.
#pragma once

#include "semantics.cuh"

namespace dyno::emulator {

class Draws {
public:
    explicit Draws(u64 seed) : seed_(seed) {}

    u64 next() { return counter_hash(seed_, step_++, 0); }
    u32 below(u32 limit) { return static_cast<u32>((next() >> 32) * limit >> 32); }

private:
    u64 seed_;
    u64 step_ = 0;
};

}  // namespace dyno::emulator
