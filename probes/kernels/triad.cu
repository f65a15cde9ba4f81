// a = b + s * c, over arrays of n times four floats: what the card's memory carries when nothing else is asked of it.
//
// Grid and block: 16 a multiprocessor x 256; each thread takes one vector of 16 bytes, then the one a grid further on.
// Bytes: read 32 n, written 16 n
// Atomics: none

typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(256) triad(float4* a, const float4* b, const float4* c, float s, u64 n) {
    const u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
    for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) {
        const float4 left = b[i], right = c[i];
        float4 sum;
        sum.x = left.x + s * right.x;
        sum.y = left.y + s * right.y;
        sum.z = left.z + s * right.z;
        sum.w = left.w + s * right.w;
        a[i] = sum;
    }
}
