// The machine whose lanes are fibers of the calling thread: quick, and exactly repeatable for a seed.
#include <algorithm>
#include <deque>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "floating_point.hpp"
#include "resident.hpp"
#include "stacks.hpp"

namespace dyno::emulator {

constinit thread_local Running running;

// Picks who runs next. The methods below the line run on the fibers' own stacks.
class Scheduler {
public:
    Scheduler(u64 seed, u32 n_processors) : draws_(seed), n_processors_(n_processors) {}

    Tally run(const Order& order);

    // ----
    [[noreturn]] void run_lane(Fiber& fiber);
    void switch_away(Fiber& fiber);
    void spin(Fiber& fiber, Site site);
    void refuel() { running.fuel = 1 << (draws_.next() >> 61); }
    void meet_block(Fiber& fiber, Site site);
    u64 meet_warp(Fiber& fiber, Kind kind, u32 mask, u64 value, u32 argument, Site site);
    [[noreturn]] void fail(const std::string& message);
    [[noreturn]] void fail_at(const Fiber& fiber, Site site, const std::string& message);

private:
    // In 64ths, how readily a warp gives way: either it and the others keep about level, or one runs far ahead.
    static constexpr u32 kReadiness[] = {32, 32, 8, 1};
    static constexpr u64 kMostIdlePauses = 1'000'000;  // so many, and nothing has changed: those who spin do so forever

    // One pass over the lanes of a warp that can run, in an order of its own; now and then it is cut short.
    struct Visit {
        Resident* resident = nullptr;
        u32 warp = 0;
        u32 step = 0;
        u32 last_step = 0;
        u32 stride = 1;
        u32 offset = 0;
        u32 next_lane() { return (step++ * stride + offset) % 32; }
    };

    void set_up(const Order& order);
    void add_fiber();
    void start_block(Resident& resident);
    void finish_lane(Fiber& fiber);
    void finish_block(Resident& resident);
    void release_barrier(Resident& resident);
    void complete(Fiber& last, u32 mask);
    Fiber* next();
    bool begin_visit();
    Resident* some_ready_resident(u32 draw);

    Draws draws_;
    u32 n_processors_;
    Stacks stacks_;
    std::deque<Fiber> fibers_;  // suspended at the end of a block, between launches
    std::vector<Resident> residents_;
    std::vector<u32> waiting_blocks_;  // the next one last
    u32 n_open_ = 0;                   // residents that hold a block
    Order order_{};
    Visit visit_;
    u32 readiness_ = 0;  // of this launch
    Context* host_ = nullptr;
    std::string failure_;
};

// ---- a launch -------------------------------------------------------------------------------------------------------

Tally Scheduler::run(const Order& order) {
    const FloatingPointMode mode;
    set_up(order);
    running = {};
    refuel();
    readiness_ = kReadiness[draws_.below(4)];
    Context host;
    host_ = &host;
    Fiber* first = next();
    running.lane = first;
    Context::change(host, first->context);
    running.lane = nullptr;
    if (failure_.empty()) return running.tally;
    fibers_.clear();  // abandoned in the middle of the kernel
    throw std::runtime_error(std::exchange(failure_, {}));
}

void Scheduler::set_up(const Order& order) {
    order_ = order;
    visit_ = {};
    const u32 n_residents = std::min(order.grid, n_processors_);
    while (fibers_.size() < std::size_t{n_residents} * order.block) add_fiber();
    waiting_blocks_.resize(order.grid);
    std::iota(waiting_blocks_.begin(), waiting_blocks_.end(), 0u);
    for (u32 i = order.grid - 1; i > 0; --i) std::swap(waiting_blocks_[i], waiting_blocks_[draws_.below(i + 1)]);
    residents_.resize(n_residents);
    n_open_ = n_residents;
    for (u32 r = 0; r < n_residents; ++r) {
        Resident& resident = residents_[r];
        resident.lanes.resize(order.block);
        for (u32 i = 0; i < order.block; ++i) resident.lanes[i] = &fibers_[std::size_t{r} * order.block + i];
        resident.warps.assign((order.block + 31) / 32, Warp{});
        if (resident.shared == nullptr || resident.shared->size() != order.shared_bytes)
            resident.shared = std::make_unique<Guarded>(order.shared_bytes, "shared memory");
        start_block(resident);
    }
}

void Scheduler::add_fiber() {
    const std::size_t index = fibers_.size();
    std::byte* stack = stacks_.bottom(index);
    Fiber& fiber = fibers_.emplace_back();
    fiber.scheduler = this;
    const auto entry = [](void* of) {
        auto* self = static_cast<Fiber*>(of);
        self->scheduler->run_lane(*self);
    };
    fiber.context.prepare(stack, Stacks::size(index), entry, &fiber);
}

void Scheduler::start_block(Resident& resident) {
    const u32 block = waiting_blocks_.back();
    waiting_blocks_.pop_back();
    resident.n_at_barrier = resident.n_finished = 0;
    resident.shared->poison(draws_.next());
    u32 thread = 0;
    for (Fiber* fiber : resident.lanes) {
        static_cast<Lane&>(*fiber) = {thread++,
                                      block,
                                      order_.block,
                                      order_.grid,
                                      reinterpret_cast<unsigned char*>(resident.shared->data()),
                                      order_.shared_bytes};
        fiber->resident = &resident;
    }
    for (u32 warp = 0; warp < resident.warps.size(); ++warp) resident.wake(warp, resident.lanes_of(warp));
}

// ---- on the fibers --------------------------------------------------------------------------------------------------

void Scheduler::run_lane(Fiber& fiber) {
    for (;;) {
        order_.kernel->run(order_.state);
        finish_lane(fiber);
    }
}

// Not inlined: the next launch may resume it on another thread, whose thread-local variables lie elsewhere.
__attribute__((noinline)) void Scheduler::finish_lane(Fiber& fiber) {
    Resident& resident = *fiber.resident;
    running.idle_pauses = 0;
    if (resident.n_at_barrier != 0)
        fail_at(fiber, resident.barrier, "leaves the kernel while others of its block wait in sync_block there");
    resident.suspend(fiber, State::finished);
    resident.n_finished += 1;
    if (resident.n_finished == resident.lanes.size()) finish_block(resident);
    if (n_open_ != 0) return switch_away(fiber);
    running.lane = nullptr;
    Context::change(fiber.context, *host_);
}

void Scheduler::finish_block(Resident& resident) {
    try {
        resident.shared->check();
    } catch (const std::runtime_error& error) {
        fail(std::string("kernel ") + order_.kernel->name + ": " + error.what());
    }
    if (waiting_blocks_.empty()) n_open_ -= 1;
    else start_block(resident);
}

void Scheduler::spin(Fiber& fiber, Site site) {
    fiber.site = site;
    running.idle_pauses += 1;
    if (running.idle_pauses > kMostIdlePauses) fail(who_waits_where(*order_.kernel, residents_));
    switch_away(fiber);
}

void Scheduler::meet_block(Fiber& fiber, Site site) {
    Resident& resident = *fiber.resident;
    if (resident.n_finished != 0) fail_at(fiber, site, "sync_block, while others of the block have left the kernel");
    if (resident.n_at_barrier != 0 && resident.barrier != site)
        fail_at(fiber, site, "sync_block, while others wait at line " + std::to_string(resident.barrier.line));
    fiber.site = resident.barrier = site;
    resident.n_at_barrier += 1;
    if (resident.n_at_barrier == resident.lanes.size()) release_barrier(resident);
    else resident.suspend(fiber, State::at_barrier);
    switch_away(fiber);
}

void Scheduler::release_barrier(Resident& resident) {
    resident.n_at_barrier = 0;
    for (u32 warp = 0; warp < resident.warps.size(); ++warp) resident.wake(warp, resident.lanes_of(warp));
    running.tally.barriers += 1;
    running.idle_pauses = 0;
    visit_.step = visit_.last_step;  // who comes last is not to be first
}

u64 Scheduler::meet_warp(Fiber& fiber, Kind kind, u32 mask, u64 value, u32 argument, Site site) {
    Warp& warp = fiber.resident->warps[fiber.warp()];
    const u32 lane = fiber.index();
    if ((mask & fiber.bit()) == 0)
        fail_at(fiber, site, std::string(name_of(kind)) + " with a mask that leaves out lane " + std::to_string(lane));
    warp.kind[lane] = kind;
    warp.mask[lane] = mask;
    warp.site[lane] = fiber.site = site;
    warp.value[lane] = value;
    warp.argument[lane] = argument;
    warp.waiting |= fiber.bit();
    if ((warp.waiting & mask) == mask) {
        complete(fiber, mask);
    } else {
        fiber.resident->suspend(fiber, State::in_warp);
        switch_away(fiber);
    }
    return warp.result[lane];
}

void Scheduler::complete(Fiber& last, u32 mask) {
    Warp& warp = last.resident->warps[last.warp()];
    const u32 own = last.index();
    for_each_lane(mask, [&](u32 lane) {
        const bool agrees = warp.kind[lane] == warp.kind[own] && warp.mask[lane] == mask;
        if (agrees && (warp.site[lane] == warp.site[own] || warp.kind[own] == Kind::sync)) return;
        fail_at(last, warp.site[own],
                std::string(name_of(warp.kind[own])) + " names lane " + std::to_string(lane) + ", which is in " +
                    name_of(warp.kind[lane]) + " at line " + std::to_string(warp.site[lane].line));
    });
    resolve(warp.kind[own], mask, warp.value, warp.argument, draws_.next(), warp.result);
    warp.waiting &= ~mask;
    last.resident->wake(last.warp(), mask);
    running.tally.collectives += 1;
}

void Scheduler::fail(const std::string& message) {
    failure_ = message;
    Context abandoned;
    Context::change(abandoned, *host_);
    __builtin_unreachable();
}

void Scheduler::fail_at(const Fiber& fiber, Site site, const std::string& message) {
    fail(place_of(*order_.kernel, fiber, site) + ": " + message);
}

// ---- who is next ----------------------------------------------------------------------------------------------------

void Scheduler::switch_away(Fiber& fiber) {
    Fiber* to = next();
    if (to == nullptr) fail(who_waits_where(*order_.kernel, residents_));
    if (to == &fiber) return;
    running.lane = to;
    Context::change(fiber.context, to->context);
}

Fiber* Scheduler::next() {
    do {
        if (visit_.resident == nullptr) continue;
        const u32 ready = visit_.resident->warps[visit_.warp].ready;
        while (ready != 0 && visit_.step < visit_.last_step) {
            const u32 lane = visit_.next_lane();
            if (ready >> lane & 1) return visit_.resident->lanes[visit_.warp * 32 + lane];
        }
    } while (begin_visit());
    return nullptr;
}

bool Scheduler::begin_visit() {
    const u64 draw = draws_.next();
    const auto bits = [draw](int shift, u32 limit) { return static_cast<u32>(draw >> shift) % limit; };
    Resident* resident = visit_.resident;
    const bool leaves = resident == nullptr || resident->ready_warps == 0 || bits(50, 64) < readiness_ / 2;
    if (leaves) resident = some_ready_resident(bits(8, 256));
    if (resident == nullptr) return false;
    const bool stays = resident == visit_.resident && resident->warps[visit_.warp].ready != 0 && bits(56, 64) >= readiness_;
    const u32 turn = bits(16, 32);
    const u32 turned = resident->ready_warps >> turn | (turn == 0 ? 0 : resident->ready_warps << (32 - turn));
    const u32 warp = stays ? visit_.warp : (lowest_bit(turned) + turn) % 32;
    const u32 last_step = bits(4, 8) == 0 ? 1 + bits(24, 32) : 32;
    visit_ = {resident, warp, 0, last_step, bits(32, 32) | 1, bits(40, 32)};
    return true;
}

Resident* Scheduler::some_ready_resident(u32 draw) {
    for (std::size_t i = 0; i < residents_.size(); ++i) {
        Resident& resident = residents_[(draw + i) % residents_.size()];
        if (resident.ready_warps != 0) return &resident;
    }
    return nullptr;
}

// ---- what lane.hpp calls --------------------------------------------------------------------------------------------

namespace {

Fiber& running_fiber() { return *static_cast<Fiber*>(running.lane); }

}  // namespace

void change_hands() {
    Fiber& fiber = running_fiber();
    fiber.scheduler->refuel();
    fiber.scheduler->switch_away(fiber);
}

void give_way(Site site) { running_fiber().scheduler->spin(running_fiber(), site); }

void meet_block(Site site) { running_fiber().scheduler->meet_block(running_fiber(), site); }

u64 meet_warp(Kind kind, u32 mask, u64 value, u32 argument, Site site) {
    return running_fiber().scheduler->meet_warp(running_fiber(), kind, mask, value, argument, site);
}

void refuse(Site site, const char* message) { running_fiber().scheduler->fail_at(running_fiber(), site, message); }

struct Machine::Parts : Scheduler {
    using Scheduler::Scheduler;
};

Machine::Machine(u64 seed, u32 n_processors) : parts_(std::make_unique<Parts>(seed, n_processors)) {}
Machine::~Machine() = default;
Tally Machine::run(const Order& order) { return parts_->run(order); }

}  // namespace dyno::emulator
