// The machine whose lanes are threads of the operating system, for ThreadSanitizer on tiny inputs.
//
// It must not know more than the kernel said: each meeting orders exactly the memory that CUDA's would. sync_block and
// sync_warp do; shuffles and votes pass values by relaxed atomics and order nothing; waiting is a bare futex, which the
// sanitizer does not look into. A mistake that a fiber machine explains ends the process here.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "floating_point.hpp"
#include "machine.hpp"
#include "memory.hpp"
#include "warp.hpp"

namespace dyno::emulator {

constinit thread_local Running running;

namespace {

constexpr u32 kMasks = 32;  // different ones that the lanes of one warp may meet under

void sleep_while(const std::atomic<u32>& word, u32 value) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_all(const std::atomic<u32>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

[[noreturn]] void die(Site site, const char* message) {
    std::fprintf(stderr, "block %u, thread %u, %s:%d: %s\n", running.lane->block, running.lane->thread, site.file,
                 site.line, message);
    std::abort();
}

// Where n lanes wait for each other, again and again. Who comes last calls `last` before the others go on.
class Meeting {
public:
    template <bool orders_memory, class Last>
    u32 attend(u32 n, Last&& last) {
        constexpr auto arrive = orders_memory ? std::memory_order_acq_rel : std::memory_order_relaxed;
        constexpr auto look = orders_memory ? std::memory_order_acquire : std::memory_order_relaxed;
        constexpr auto open = orders_memory ? std::memory_order_release : std::memory_order_relaxed;
        const u32 round = round_.load(std::memory_order_relaxed);
        if (arrived_.fetch_add(1, arrive) + 1 == n) {
            last(round);
            arrived_.store(0, std::memory_order_relaxed);
            round_.store(round + 1, open);
            wake_all(round_);
        } else {
            while (round_.load(look) == round) sleep_while(round_, round);
        }
        return round;
    }

    u32 round() const { return round_.load(std::memory_order_relaxed); }

private:
    std::atomic<u32> round_{0};
    std::atomic<u32> arrived_{0};
};

// The collectives of one warp under one mask. Values of two rounds are kept: who is late still reads the one before.
struct MaskedMeeting {
    std::atomic<u32> mask{0};
    Meeting meeting;
    std::atomic<u32> kind[2][32];
    std::atomic<u32> argument[2][32];
    std::atomic<u64> value[2][32];
    std::atomic<u64> result[2][32];

    void resolve_round(u32 turn, Kind own, Site site) {
        PerLane values{}, results{};
        std::array<u32, 32> arguments{};
        for_each_lane(mask.load(std::memory_order_relaxed), [&](u32 lane) {
            if (static_cast<Kind>(kind[turn][lane].load(std::memory_order_relaxed)) != own)
                die(site, "lanes meet in different collectives");
            values[lane] = value[turn][lane].load(std::memory_order_relaxed);
            arguments[lane] = argument[turn][lane].load(std::memory_order_relaxed);
        });
        const u32 lanes = mask.load(std::memory_order_relaxed);
        resolve(own, lanes, values, arguments, 0x7ff7a5a5a5a5a5a5ull, results);
        for_each_lane(lanes, [&](u32 lane) { result[turn][lane].store(results[lane], std::memory_order_relaxed); });
    }
};

struct Warp {
    MaskedMeeting meetings[kMasks];

    MaskedMeeting& under(u32 mask, Site site) {
        for (MaskedMeeting& meeting : meetings) {
            u32 found = 0;
            if (meeting.mask.compare_exchange_strong(found, mask, std::memory_order_relaxed) || found == mask)
                return meeting;
        }
        die(site, "more different masks than this machine keeps: run it on fibers");
    }
};

struct Resident {
    explicit Resident(const Order& order)
        : n_lanes(order.block), warps((order.block + 31) / 32), shared(order.shared_bytes, "shared memory") {}

    bool fits(const Order& order) const { return n_lanes == order.block && shared.size() == order.shared_bytes; }

    u32 n_lanes;
    Meeting barrier;
    std::vector<Warp> warps;
    Guarded shared;
};

struct ThreadLane : Lane {
    Resident* resident = nullptr;
};

ThreadLane& running_lane() { return *static_cast<ThreadLane*>(running.lane); }

void nobody(u32) {}

}  // namespace

// ---- what lane.hpp calls --------------------------------------------------------------------------------------------

void meet_block(Site) {
    Resident& resident = *running_lane().resident;
    resident.barrier.attend<true>(resident.n_lanes, nobody);
}

u64 meet_warp(Kind kind, u32 mask, u64 value, u32 argument, Site site) {
    ThreadLane& own = running_lane();
    const u32 lane = own.thread % 32;
    if ((mask >> lane & 1) == 0) die(site, "a mask that leaves out its own lane");
    MaskedMeeting& with = own.resident->warps[own.thread / 32].under(mask, site);
    const u32 n = static_cast<u32>(__builtin_popcount(mask));
    const u32 turn = with.meeting.round() % 2;
    with.kind[turn][lane].store(static_cast<u32>(kind), std::memory_order_relaxed);
    with.argument[turn][lane].store(argument, std::memory_order_relaxed);
    with.value[turn][lane].store(value, std::memory_order_relaxed);
    const auto last = [&](u32) { with.resolve_round(turn, kind, site); };
    if (kind == Kind::sync) with.meeting.attend<true>(n, last);
    else with.meeting.attend<false>(n, last);
    return with.result[turn][lane].load(std::memory_order_relaxed);
}

void give_way(Site) { sched_yield(); }

void refuse(Site site, const char* message) { die(site, message); }

// ---- a launch -------------------------------------------------------------------------------------------------------

// The threads wait from launch to launch: under the sanitizer one takes a millisecond to make.
struct Machine::Parts {
    Draws draws;
    u32 n_processors;
    std::vector<std::thread> threads;
    std::vector<std::unique_ptr<Resident>> residents;
    std::atomic<u32> launches{0};
    std::atomic<u32> n_busy{0};
    // What the threads read once `launches` has risen:
    Order order{};
    u64 poison = 0;
    bool is_over = false;

    Parts(u64 seed, u32 n_processors) : draws(seed), n_processors(n_processors) {}

    ~Parts() {
        is_over = true;
        begin_launch();
        for (std::thread& thread : threads) thread.join();
    }

    void begin_launch() {
        n_busy.store(static_cast<u32>(threads.size()), std::memory_order_relaxed);
        launches.fetch_add(1, std::memory_order_release);
        wake_all(launches);
    }

    void set_up();
    void live(u32 number, u32 launches_before);
    void serve(u32 number);
};

void Machine::Parts::set_up() {
    const u32 n_residents = std::min(order.grid, n_processors);
    if (!residents.empty() && !residents[0]->fits(order)) residents.clear();
    while (residents.size() < n_residents) residents.push_back(std::make_unique<Resident>(order));
    residents.resize(n_residents);
    const u32 before = launches.load(std::memory_order_relaxed);
    for (auto number = static_cast<u32>(threads.size()); number < n_residents * order.block; ++number)
        threads.emplace_back([this, number, before] { live(number, before); });
}

void Machine::Parts::live(u32 number, u32 launches_before) {
    const FloatingPointMode mode;
    for (u32 seen = launches_before;; ++seen) {
        while (launches.load(std::memory_order_acquire) == seen) sleep_while(launches, seen);
        if (is_over) return;
        if (number < residents.size() * order.block) serve(number);
        if (n_busy.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_all(n_busy);
    }
}

// Lane `number` of all residents, in every block that its resident is dealt. Dealt rather than fetched, so that
// neighbouring blocks are on different threads even if one resident is done before the other begins.
void Machine::Parts::serve(u32 number) {
    const u32 first_block = number / order.block;
    Resident& resident = *residents[first_block];
    ThreadLane lane;
    lane.thread = number % order.block;
    lane.block_size = order.block;
    lane.grid_size = order.grid;
    lane.shared = reinterpret_cast<unsigned char*>(resident.shared.data());
    lane.shared_bytes = order.shared_bytes;
    lane.resident = &resident;
    running.lane = &lane;
    for (lane.block = first_block; lane.block < order.grid; lane.block += static_cast<u32>(residents.size())) {
        if (lane.thread == 0) resident.shared.poison(poison);
        resident.barrier.attend<true>(order.block, nobody);
        order.kernel->run(order.state);
        resident.barrier.attend<true>(order.block, nobody);
    }
}

Machine::Machine(u64 seed, u32 n_processors) : parts_(std::make_unique<Parts>(seed, n_processors)) {}
Machine::~Machine() = default;

Tally Machine::run(const Order& order) {
    parts_->order = order;
    parts_->poison = parts_->draws.next();
    parts_->set_up();
    parts_->begin_launch();
    for (;;) {
        const u32 n_busy = parts_->n_busy.load(std::memory_order_acquire);
        if (n_busy == 0) break;
        sleep_while(parts_->n_busy, n_busy);
    }
    for (auto& resident : parts_->residents) resident->shared.check();
    return {};
}

}  // namespace dyno::emulator
