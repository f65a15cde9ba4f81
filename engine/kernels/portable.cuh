// The seam between NVRTC and the emulator: everything a kernel may use that is not plain C++ (docs/device.md §2).
//
// On CUDA each function below is the builtin. In the emulator (engine/native/emulator/) each is a call that knows
// which lane is running, and each one that touches another thread is a point at which the schedule may change hands.
// Blocks are one-dimensional. Masks name exactly the lanes that make the call, with the same mask, at the same place.
#pragma once

#include "semantics.cuh"

namespace dyno {

constexpr u32 WARP_SIZE = 32;
constexpr u32 WHOLE_WARP = 0xffffffffu;

}  // namespace dyno

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

#define DYNO_DEVICE __device__ __forceinline__

// DYNO_KERNEL(name, State, threads) { ... uses State* state ... }: always launched in blocks of at most `threads`.
// One block a multiprocessor is asked for: left to itself the compiler spills to fit more than anyone wanted.
#define DYNO_KERNEL(name, State, threads) extern "C" __global__ void __launch_bounds__(threads, 1) name(State* state)

#define DYNO_UNROLL _Pragma("unroll")

namespace dyno {

extern __shared__ __align__(16) unsigned char shared_memory[];

// ---- who am I ------------------------------------------------------------------------------------------------------

DYNO_DEVICE u32 thread() { return threadIdx.x; }
DYNO_DEVICE u32 block() { return blockIdx.x; }
DYNO_DEVICE u32 block_size() { return blockDim.x; }
DYNO_DEVICE u32 grid_size() { return gridDim.x; }

// Shared memory is dynamic, carved by byte offset, and aligned to 16 bytes at offset 0.
template <class T>
DYNO_DEVICE T* shared(u32 offset) {
    return reinterpret_cast<T*>(shared_memory + offset);
}

// ---- meeting others --------------------------------------------------------------------------------------------------

DYNO_DEVICE void sync_block() { __syncthreads(); }
DYNO_DEVICE void sync_warp(u32 mask) { __syncwarp(mask); }

// T is a 32- or 64-bit integer, float or double.
template <class T>
DYNO_DEVICE T shuffle(u32 mask, T value, u32 source) {
    return __shfl_sync(mask, value, static_cast<int>(source));
}
template <class T>
DYNO_DEVICE T shuffle_up(u32 mask, T value, u32 delta) {  // own value where no lane is that far below
    return __shfl_up_sync(mask, value, delta);
}
template <class T>
DYNO_DEVICE T shuffle_down(u32 mask, T value, u32 delta) {  // own value where no lane is that far above
    return __shfl_down_sync(mask, value, delta);
}
template <class T>
DYNO_DEVICE T shuffle_xor(u32 mask, T value, u32 bits) {
    return __shfl_xor_sync(mask, value, static_cast<int>(bits));
}

DYNO_DEVICE u32 ballot(u32 mask, bool vote) { return __ballot_sync(mask, vote); }
DYNO_DEVICE bool any(u32 mask, bool vote) { return __any_sync(mask, vote) != 0; }
DYNO_DEVICE bool all(u32 mask, bool vote) { return __all_sync(mask, vote) != 0; }
DYNO_DEVICE u32 match(u32 mask, u32 value) { return __match_any_sync(mask, value); }  // lanes with the same value

// ---- atomics, relaxed; each returns the old value ----------------------------------------------------------------------

DYNO_DEVICE u32 atomic_add(u32* address, u32 value) { return atomicAdd(address, value); }
DYNO_DEVICE i32 atomic_add(i32* address, i32 value) { return atomicAdd(address, value); }
// 64 bits in global memory only: the compiler, not knowing, adds a loop of compare and swap in case they are shared.
DYNO_DEVICE u64 atomic_add(u64* address, u64 value) {
    __builtin_assume(__isGlobal(address));
    return atomicAdd(address, value);
}
DYNO_DEVICE i64 atomic_add(i64* address, i64 value) {
    __builtin_assume(__isGlobal(address));
    return static_cast<i64>(atomicAdd(reinterpret_cast<u64*>(address), static_cast<u64>(value)));
}
DYNO_DEVICE u32 atomic_max(u32* address, u32 value) { return atomicMax(address, value); }
DYNO_DEVICE u32 atomic_exchange(u32* address, u32 value) { return atomicExch(address, value); }

// ---- flags between blocks ------------------------------------------------------------------------------------------------

// For "who comes last": what others wrote before their ordered add is visible after it.
DYNO_DEVICE u32 atomic_add_ordered(u32* address, u32 value) {
    __threadfence();
    const u32 before = atomicAdd(address, value);
    __threadfence();
    return before;
}

// What another block wrote before its store_release is visible after the load_acquire that sees the value.
DYNO_DEVICE u32 load_acquire(const u32* address) {
    const u32 value = *const_cast<const volatile u32*>(address);
    __threadfence();
    return value;
}
DYNO_DEVICE u64 load_acquire(const u64* address) {
    const u64 value = *const_cast<const volatile u64*>(address);
    __threadfence();
    return value;
}
DYNO_DEVICE void store_release(u32* address, u32 value) {
    __threadfence();
    *const_cast<volatile u32*>(address) = value;
}
DYNO_DEVICE void store_release(u64* address, u64 value) {
    __threadfence();
    *const_cast<volatile u64*>(address) = value;
}

// The body of every spin loop: lets those whom we wait for run.
DYNO_DEVICE void pause() { __nanosleep(20); }

// ---- addresses ----------------------------------------------------------------------------------------------------------

// A field that holds an address in device memory. The compiler is told so: it would ask at run time what else the
// address might point to, and keep loads behind shared-memory atomics that cannot touch it.
template <class T>
struct Global {
    T* address;
    DYNO_FN operator T*() const {
        __builtin_assume(__isGlobal(address));
        return address;
    }
};

// ---- bits ----------------------------------------------------------------------------------------------------------------

DYNO_DEVICE u32 popcount(u32 bits) { return static_cast<u32>(__popc(static_cast<int>(bits))); }
DYNO_DEVICE u32 lowest_bit(u32 bits) { return static_cast<u32>(__ffs(static_cast<int>(bits)) - 1); }  // bits != 0

}  // namespace dyno

#else

#include "emulator/lane.hpp"

#endif

namespace dyno {

DYNO_DEVICE u32 lane() { return thread() % WARP_SIZE; }
DYNO_DEVICE u32 warp() { return thread() / WARP_SIZE; }
DYNO_DEVICE u32 lanes_below() { return (1u << lane()) - 1; }

}  // namespace dyno
