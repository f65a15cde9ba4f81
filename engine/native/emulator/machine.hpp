// Runs launches: every thread of the resident blocks is a lane, and the order of lanes is drawn from a seed.
//
// A processor holds one block at a time, so as many blocks run side by side as there are processors; the others start,
// in drawn order, as these end. fibers.cpp and threads.cpp are the two machines; a build has one of them.
#pragma once

#include <memory>

#include "registry.hpp"
#include "site.hpp"

namespace dyno::emulator {

struct Order {
    const Kernel* kernel;
    u32 grid;
    u32 block;
    u32 shared_bytes;
    void* state;
};

class Machine {
public:
    Machine(u64 seed, u32 n_processors);
    ~Machine();

    Tally run(const Order& order);  // throws std::runtime_error: what went wrong, in which block and thread, where

private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace dyno::emulator
