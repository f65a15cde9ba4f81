// The kernels by name. DYNO_KERNEL enters each one before main() or dlopen() returns.
#pragma once

#include <deque>
#include <string_view>

#include "semantics.cuh"

namespace dyno::emulator {

struct Kernel {
    const char* name;
    u32 most_threads;
    void (*run)(void* state);
};

using KernelList = std::deque<Kernel>;

KernelList& product_kernels();    // all.cuh
KernelList& self_test_kernels();  // self_test.cpp: not part of the product, but can be launched

bool enter(KernelList& list, const Kernel& kernel);
const Kernel& find_kernel(std::string_view name);  // throws std::runtime_error

}  // namespace dyno::emulator
