// A team of worker threads that share out numbered tasks; the caller is worker 0.
//
// Workers spin briefly between runs (the transactions of one tree follow each other in microseconds), then sleep.
// Every worker sets the default rounding and denormal modes: some other library in the process may have changed them.
#pragma once

#include <xmmintrin.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
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
    using Task = std::function<void(long long task, int worker)>;

    explicit Team(int n_threads) {
        for (int worker = 1; worker < n_threads; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
    }

    ~Team() {
        {
            std::lock_guard lock(mutex_);
            stopping_ = true;
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        for (auto& thread : threads_) thread.join();
    }

    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    int size() const { return static_cast<int>(threads_.size()) + 1; }

    // Calls task(i, worker) once for every i in [0 .. n_tasks), in any order, and returns when all are done.
    // Tasks must not throw.
    void run(long long n_tasks, const Task& task) {
        FloatingPointMode mode;
        if (threads_.empty() || n_tasks <= 1) {
            for (long long i = 0; i < n_tasks; ++i) task(i, 0);
            return;
        }
        task_ = &task;
        n_tasks_ = n_tasks;
        next_.store(0, std::memory_order_relaxed);
        busy_.store(static_cast<int>(threads_.size()), std::memory_order_relaxed);
        {
            std::lock_guard lock(mutex_);
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        work(0);
        for (int spin = 0; busy_.load(std::memory_order_acquire) != 0; ++spin) {
            if (spin < kSpins) _mm_pause();
            else std::this_thread::yield();
        }
    }

private:
    static constexpr int kSpins = 2000;

    void work(int worker) {
        for (;;) {
            const long long i = next_.fetch_add(1, std::memory_order_relaxed);
            if (i >= n_tasks_) return;
            (*task_)(i, worker);
        }
    }

    void serve(int worker) {
        FloatingPointMode mode;
        unsigned seen = 0;
        for (;;) {
            await(seen);
            seen = generation_.load(std::memory_order_acquire);
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
    bool stopping_ = false;
    const Task* task_ = nullptr;
    long long n_tasks_ = 0;
};

}  // namespace dyno
