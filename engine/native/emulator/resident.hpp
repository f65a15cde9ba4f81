// A block that is on a processor: its lanes, who of them can run, and what the others wait for.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "context.hpp"
#include "machine.hpp"
#include "memory.hpp"
#include "warp.hpp"

namespace dyno::emulator {

enum class State { ready, at_barrier, in_warp, finished };

struct Resident;
class Scheduler;

struct Fiber : Lane {
    Context context;
    Scheduler* scheduler = nullptr;
    Resident* resident = nullptr;
    State state = State::finished;
    Site site;  // where it waits

    u32 warp() const { return thread / 32; }
    u32 index() const { return thread % 32; }  // in its warp
    u32 bit() const { return 1u << thread % 32; }
};

// The collectives that lanes of one warp wait in; lanes with different masks may wait in different ones.
struct Warp {
    u32 ready = 0;
    u32 waiting = 0;
    std::array<Kind, 32> kind{};
    std::array<u32, 32> mask{};
    std::array<Site, 32> site{};
    std::array<u32, 32> argument{};
    PerLane value{};
    PerLane result{};
};

struct Resident {
    std::vector<Fiber*> lanes;
    std::vector<Warp> warps;
    u32 ready_warps = 0;
    u32 n_at_barrier = 0;
    u32 n_finished = 0;
    Site barrier;  // where those wait who are at the barrier
    std::unique_ptr<Guarded> shared;

    // Makes lanes of one warp able to run.
    void wake(u32 warp, u32 mask) {
        for_each_lane(mask, [&](u32 lane) { lanes[warp * 32 + lane]->state = State::ready; });
        warps[warp].ready |= mask;
        ready_warps |= 1u << warp;
    }

    u32 lanes_of(u32 warp) const {
        const auto left = static_cast<u32>(lanes.size()) - warp * 32;
        return left >= 32 ? 0xffffffffu : (1u << left) - 1;
    }

    void suspend(Fiber& fiber, State state) {
        fiber.state = state;
        Warp& warp = warps[fiber.warp()];
        warp.ready &= ~fiber.bit();
        if (warp.ready == 0) ready_warps &= ~(1u << fiber.warp());
    }
};

std::string place_of(const Kernel& kernel, const Fiber& fiber, Site site);  // "kernel k, block 3, thread 7, k.cuh:12"
std::string who_waits_where(const Kernel& kernel, const std::vector<Resident>& residents);

}  // namespace dyno::emulator
