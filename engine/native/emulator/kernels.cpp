// The kernels of the product, compiled by the C++ compiler.
#include "all.cuh"
