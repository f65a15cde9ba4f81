// The inner loop of the engine's histogram, to see how many shared-memory atomics a multiprocessor makes in a clock.
//
// Faithful to engine/kernels/build.cuh (add_wide, add_cell<pair>, flush_tile): 48 KB of cells in four planes, so that
// bin b lies on bank b mod 32; a row's bins are bytes of registers; for each of 12 features the pair (g, h) is added to
// a low word whose old value tells the carry, and to a high word only where there is something to add. A low word of g
// starts at 2^31. At the end the tile is added to global memory, 64 bits a cell.
// Unlike it, rows are made up and not read: bins come from a generator, masked by the caller, so that every pattern
// runs the same instructions; and values are so small and alternate so that no high word is ever touched (in a fit
// about 1 add in 16 touches one), which makes the number of atomics exact.
//
// Grid and block: 4 a multiprocessor x 512; each thread takes n_rows rows, an even number of at most 1,024.
// Bytes: 48 KB added to global memory a block; nothing read
// Atomics: 24 a row and thread on shared memory (and 6,144 a block on global memory)

typedef unsigned int u32;
typedef unsigned long long u64;

constexpr u32 FEATURES = 12, BINS = 256, CELLS = FEATURES * BINS;
constexpr u32 LOW_START = 0x80000000u;
constexpr u32 GRADIENT = 1u << 20;  // 512 threads of them are less than 2^31

__device__ __forceinline__ void add_wide(u32* low, u32* high, u32 bits) {
    const u32 before = atomicAdd(low, bits);
    const u32 carry = before + bits < before ? 1u : 0u;
    const u32 more = (static_cast<int>(bits) < 0 ? 0xffffffffu : 0u) + carry;
    if (more != 0) atomicAdd(high, more);
}

// A different start for each thread of the grid, and never 0, which xorshift would not leave.
__device__ __forceinline__ u32 seed_of(u32 thread) {
    u32 z = (thread + 1) * 0x9e3779b9u;
    z = (z ^ (z >> 16)) * 0x85ebca6bu;
    z = (z ^ (z >> 13)) * 0xc2b2ae35u;
    return (z ^ (z >> 16)) | 1u;
}

__device__ __forceinline__ u32 next_of(u32 random) {  // xorshift32 (Marsaglia 2003)
    random ^= random << 13;
    random ^= random >> 17;
    return random ^ (random << 5);
}

// Four bins are the bytes of `(random & random_mask) | (lane & lane_mask)`:
//   conflict-free  random 0xe0e0e0e0, lane 0xffffffff: each lane of a warp on a bank of its own
//   random         random 0xffffffff, lane 0
//   one bin        both 0
extern "C" __global__ void __launch_bounds__(512, 1)
    atomics(u32 random_mask, u32 lane_mask, u32 n_rows, u64* sums) {
    __shared__ u32 cells[4 * CELLS];
    for (u32 i = threadIdx.x; i < 4 * CELLS; i += blockDim.x) cells[i] = i < CELLS ? LOW_START : 0;
    __syncthreads();

    const u32 lane_bins = (threadIdx.x % 32 * 0x01010101u) & lane_mask;
    u32 random = seed_of(blockIdx.x * blockDim.x + threadIdx.x);
#pragma unroll 1
    for (u32 row = 0; row < n_rows; ++row) {
        const u32 g = row % 2 == 0 ? GRADIENT : 0u - GRADIENT;
        const u32 h = row + 1;
#pragma unroll
        for (u32 word = 0; word < FEATURES / 4; ++word) {
            random = next_of(random);
            const u32 bins = (random & random_mask) | lane_bins;
#pragma unroll
            for (u32 byte = 0; byte < 4; ++byte) {
                u32* cell = cells + (4 * word + byte) * BINS + ((bins >> (8 * byte)) & 0xffu);
                add_wide(cell, cell + CELLS, g);
                add_wide(cell + 2 * CELLS, cell + 3 * CELLS, h);
            }
        }
    }

    __syncthreads();
    for (u32 i = threadIdx.x; i < CELLS; i += blockDim.x) {
        const u64 g = static_cast<u64>(cells[CELLS + i]) << 32 | cells[i];
        const u64 h = static_cast<u64>(cells[3 * CELLS + i]) << 32 | cells[2 * CELLS + i];
        atomicAdd(sums + i, g - LOW_START);
        atomicAdd(sums + CELLS + i, h);
    }
}
