// A team of worker threads that share out numbered tasks; the caller is worker 0.
//
// Workers spin briefly between runs (the transactions of one tree follow each other in microseconds), then sleep.
// Every worker sets the default rounding and denormal modes: some other library in the process may have changed them.
#pragma once

#include <xmmintrin.h>

#include <atomic>
#include <condition_variable>
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

class Team {
public:
    // Throws std::system_error if the system gives fewer threads than asked.
    explicit Team(int n_threads) {
        try {
            for (int worker = 1; worker < n_threads; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
        } catch (...) {
            stop();
            throw;
        }
    }

    ~Team() { stop(); }

    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const { return static_cast<int>(threads_.size()) + 1; }

    // Calls task(i, worker) once for every i in [0 .. n_tasks), in any order, and returns when all are done.
    // Tasks must not throw.
    template <class Task>
    void run(long long n_tasks, Task&& task) {
        FloatingPointMode mode;
        if (threads_.empty() || n_tasks <= 1) {
            for (long long i = 0; i < n_tasks; ++i) task(i, 0);
            return;
        }
        task_ = const_cast<void*>(static_cast<const void*>(&task));
        call_ = [](void* of, long long i, int worker) { (*static_cast<std::remove_reference_t<Task>*>(of))(i, worker); };
        n_tasks_ = n_tasks;
        next_.store(0, std::memory_order_relaxed);
        busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
        start_generation();
        work(0);
        for (int spin = 0; busy_.load(std::memory_order_acquire) != 0; ++spin) {
            if (spin < kSpins) _mm_pause();
            else std::this_thread::yield();
        }
    }

private:
    static constexpr int kSpins = 2000;

    void start_generation() {
        {
            std::lock_guard lock(mutex_);
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
    }

    void stop() {
        stopping_ = true;
        start_generation();
        for (auto& thread : threads_) thread.join();
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
        for (unsigned seen = 0;; ++seen) {
            await(seen);
            if (stopping_) return;
            work(worker);
            busy_.fetch_sub(1, std::memory_order_release);
        }
    }

    void await(unsigned seen) {
        for (int spin = 0; spin < kSpins; ++spin) {
            if (generation_.load(std::memory_order_acquire) != seen) return;
            _mm_pause();
        }
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
    }

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::atomic<unsigned> generation_{0};
    std::atomic<long long> next_{0};
    std::atomic<int> busy_{0};
    std::atomic<bool> stopping_{false};
    void* task_ = nullptr;
    void (*call_)(void*, long long, int) = nullptr;
    long long n_tasks_ = 0;
};

}  // namespace dyno
