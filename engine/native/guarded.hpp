// Shared-out tasks that may throw (they allocate): the first exception is kept and rethrown on the caller's thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include "team.hpp"

namespace dyno {

// As many of n_threads as there are tasks for, at least one.
inline int worker_count(int n_threads, long long n_tasks) {
    return static_cast<int>(std::clamp<long long>(n_tasks, 1, std::max(n_threads, 1)));
}

// Team::run, except that `task` may throw; tasks not yet begun are then dropped.
template <class Task>
void run_guarded(Team& team, long long n_tasks, const Task& task) {
    std::exception_ptr failure;
    std::mutex mutex;
    std::atomic<bool> failed{false};
    team.run(n_tasks, [&](long long i, int worker) {
        if (failed.load(std::memory_order_relaxed)) return;
        try {
            task(i, worker);
        } catch (...) {
            std::lock_guard lock(mutex);
            if (!failed.exchange(true)) failure = std::current_exception();
        }
    });
    if (failure) std::rethrow_exception(failure);
}

}  // namespace dyno
