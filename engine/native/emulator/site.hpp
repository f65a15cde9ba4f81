// A lane as kernels know it, and the place in the source where it calls from.
#pragma once

#include "semantics.cuh"

namespace dyno::emulator {

struct Site {
    const char* file = "";
    int line = 0;

    // As a default argument: where the function that has it is called.
    static constexpr Site caller(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }

    bool operator==(const Site& other) const { return line == other.line && file == other.file; }
};

struct Lane {
    u32 thread = 0;
    u32 block = 0;
    u32 block_size = 0;
    u32 grid_size = 0;
    unsigned char* shared = nullptr;
    u32 shared_bytes = 0;
};

// What a launch did, for the formulas in the kernels' headers.
struct Tally {
    u64 shared_atomics = 0;
    u64 global_atomics = 0;
    u64 barriers = 0;     // of whole blocks
    u64 collectives = 0;  // of warps
};

// The lane that this thread of the operating system runs now.
struct Running {
    Lane* lane = nullptr;
    i32 fuel = 0;          // scheduling points until the schedule changes hands
    u64 idle_pauses = 0;   // since anything changed that a spinning lane could wait for
    Tally tally;
};

extern constinit thread_local Running running __attribute__((tls_model("initial-exec")));

inline bool is_shared(const void* address) {
    const Lane& lane = *running.lane;
    return static_cast<u64>(static_cast<const unsigned char*>(address) - lane.shared) < lane.shared_bytes;
}

}  // namespace dyno::emulator
