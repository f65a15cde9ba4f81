// A team of worker threads that share out numbered tasks; the caller is worker 0.
//
// Workers spin between runs (the transactions of one tree follow each other in microseconds), then sleep; where spinning
// would take time from others or from a quota they sleep at once. In a forked child, where threads are not, the caller
// does all tasks itself.
// Every worker sets the default rounding and denormal modes: some other library in the process may have changed them.
#pragma once

#include <pthread.h>
#include <xmmintrin.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace dyno {

// Default rounding, denormals kept, for the current thread, while it lives; restores what was there.
class FloatingPointMode {
public:
    FloatingPointMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
    ~FloatingPointMode() { _mm_setcsr(saved_); }
    FloatingPointMode(const FloatingPointMode&) = delete;
    FloatingPointMode& operator=(const FloatingPointMode&) = delete;

private:
    unsigned saved_;
};

// Teams of at most so many threads may spin: the cores that this process has for itself, 0 under a CPU quota, where a
// spinning thread uses up what the others need. A fact of the process; engine/cores.py finds it out.
inline std::atomic<int> most_spinning_threads{1};

// How many times this process's ancestors and it have forked, so that a team can tell that its threads are elsewhere.
inline std::atomic<unsigned> fork_generation = [] {
    pthread_atfork(nullptr, nullptr, [] { fork_generation.fetch_add(1, std::memory_order_relaxed); });
    return 0u;
}();

class Team {
public:
    // Throws std::system_error if the system gives fewer threads than asked.
    explicit Team(int n_threads)
        : spins_(n_threads <= most_spinning_threads.load() ? kSpins : 0), state_(std::make_unique<State>()) {
        try {
            for (int worker = 1; worker < n_threads; ++worker) state_->threads.emplace_back([this, worker] { serve(worker); });
        } catch (...) {
            stop();
            throw;
        }
    }

    ~Team() {
        if (has_threads()) stop();
        else static_cast<void>(state_.release());  // threads that are elsewhere can be neither joined nor given up
    }

    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    static constexpr double kWorthMeeting = 20'000;

    int size() const { return static_cast<int>(state_->threads.size()) + 1; }

    // Calls task(i, worker) once for every i in [0 .. n_tasks), in any order, and returns when all are done.
    // Tasks must not throw. `nanoseconds` is a guess of all tasks together: little work is not worth a meeting.
    template <class Task>
    void run(long long n_tasks, Task&& task, double nanoseconds = kWorthMeeting) {
        FloatingPointMode mode;
        if (state_->threads.empty() || n_tasks <= 1 || nanoseconds < kWorthMeeting || !has_threads()) {
            for (long long i = 0; i < n_tasks; ++i) task(i, 0);
            return;
        }
        task_ = const_cast<void*>(static_cast<const void*>(&task));
        call_ = [](void* of, long long i, int worker) {
            (*static_cast<std::remove_reference_t<Task>*>(of))(i, worker);
        };
        n_tasks_ = n_tasks;
        next_.store(0, std::memory_order_relaxed);
        open_gate();
        work(0);
        gate_.fetch_and(~kOpen);
        for (int spin = 0; (gate_.load(std::memory_order_acquire) & kInside) != 0; ++spin) {
            if (spin < spins_) _mm_pause();
            else std::this_thread::yield();
        }
    }

private:
    static constexpr int kSpins = 2000;

    bool has_threads() const { return generation_ == fork_generation.load(std::memory_order_relaxed); }

    // The gate: which run this is, whether workers may still enter it, and how many are inside. A worker that the
    // system does not schedule in time finds it closed and is waited for by nobody.
    static constexpr std::uint64_t kInside = 0xffffffff;
    static constexpr std::uint64_t kOpen = std::uint64_t{1} << 32;
    static constexpr std::uint64_t kRun = std::uint64_t{1} << 33;

    void open_gate() {
        gate_.store(((gate_.load() / kRun + 1) * kRun) | kOpen);
        if (sleepers_.load() == 0) return;
        { std::lock_guard lock(state_->mutex); }
        state_->wake.notify_all();
    }

    void stop() {
        {
            std::lock_guard lock(state_->mutex);
            stopping_.store(true);
        }
        state_->wake.notify_all();
        for (auto& thread : state_->threads) thread.join();
    }

    void work(int worker) {
        for (;;) {
            const long long i = next_.fetch_add(1, std::memory_order_relaxed);
            if (i >= n_tasks_) return;
            call_(task_, i, worker);
        }
    }

    void serve(int worker) {
        FloatingPointMode mode;
        std::uint64_t last_run = 0;
        while (await(last_run)) {
            std::uint64_t gate = gate_.load();
            while ((gate & kOpen) != 0 && !gate_.compare_exchange_weak(gate, gate + 1)) {}
            last_run = gate / kRun;
            if ((gate & kOpen) == 0) continue;
            work(worker);
            gate_.fetch_sub(1, std::memory_order_release);
        }
    }

    bool is_open_beyond(std::uint64_t last_run) const {
        const std::uint64_t gate = gate_.load();
        return (gate & kOpen) != 0 && gate / kRun != last_run;
    }

    // Until a run opens that is not `last_run`; false when the team ends.
    bool await(std::uint64_t last_run) {
        for (int spin = 0; spin < spins_; ++spin) {
            if (is_open_beyond(last_run)) return true;
            _mm_pause();
        }
        std::unique_lock lock(state_->mutex);
        sleepers_.fetch_add(1);
        state_->wake.wait(lock, [&] { return stopping_.load() || is_open_beyond(last_run); });
        sleepers_.fetch_sub(1);
        return !stopping_.load();
    }

    struct State {
        std::mutex mutex;
        std::condition_variable wake;
        std::vector<std::thread> threads;
    };

    const int spins_;
    const unsigned generation_ = fork_generation.load();
    std::unique_ptr<State> state_;
    alignas(64) std::atomic<std::uint64_t> gate_{0};
    alignas(64) std::atomic<long long> next_{0};
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<bool> stopping_{false};
    void* task_ = nullptr;
    void (*call_)(void*, long long, int) = nullptr;
    long long n_tasks_ = 0;
};

}  // namespace dyno
