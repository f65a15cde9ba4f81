// The CUDA that the probes' kernels speak, in the words of the emulator's lanes; included before them, in place of the
// engine's kernels (tests/probes/emulated_cuda.py builds it).
#pragma once

#include "portable.cuh"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __syncthreads dyno::sync_block
#define atomicAdd dyno::atomic_add

namespace probes_on_emulator {

struct Index {
    dyno::u32 x;
};

struct float4 {
    float x, y, z, w;
};

}  // namespace probes_on_emulator

#define threadIdx (Index{dyno::thread()})
#define blockIdx (Index{dyno::block()})
#define blockDim (Index{dyno::block_size()})
#define gridDim (Index{dyno::grid_size()})
