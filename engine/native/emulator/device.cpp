// The emulated device as engine/device/emulated.py calls it through ctypes. Every function that can fail returns false
// or null, and emulator_error() then says why.
#include <cstring>
#include <map>
#include <new>
#include <stdexcept>
#include <string>

#include "machine.hpp"
#include "memory.hpp"

namespace dyno::emulator {
namespace {

struct EmulatedDevice {
    EmulatedDevice(u64 seed, u32 n_processors) : memory(mix(seed + 1)), machine(seed, n_processors) {}

    Memory memory;
    Machine machine;
    std::map<std::string, Tally> tallies;
    std::string error;
};

template <class Work>
bool attempt(EmulatedDevice& device, Work&& work) {
    try {
        work();
        return true;
    } catch (const std::bad_alloc&) {
        device.error = "the host has no memory left";
    } catch (const std::exception& error) {
        device.error = error.what();
    }
    return false;
}

void check_size(const Order& order) {
    const u32 most = order.kernel->most_threads;
    if (order.grid < 1 || order.block < 1 || order.block > most)
        throw std::runtime_error(std::string("kernel ") + order.kernel->name + " takes at least one block of 1 to " +
                                 std::to_string(most) + " threads, got " + std::to_string(order.grid) + " of " +
                                 std::to_string(order.block));
}

void launch(EmulatedDevice& device, const Order& order) {
    check_size(order);
    const Tally tally = device.machine.run(order);
    Tally& sum = device.tallies[order.kernel->name];
    sum.shared_atomics += tally.shared_atomics;
    sum.global_atomics += tally.global_atomics;
    sum.barriers += tally.barriers;
    sum.collectives += tally.collectives;
    try {
        device.memory.check();
    } catch (const std::runtime_error& error) {
        throw std::runtime_error(std::string("kernel ") + order.kernel->name + ": " + error.what());
    }
}

}  // namespace
}  // namespace dyno::emulator

using namespace dyno;
using namespace dyno::emulator;

extern "C" {

void* emulator_open(u64 seed, u32 n_processors) { return new EmulatedDevice(seed, n_processors); }

void emulator_close(void* device) { delete static_cast<EmulatedDevice*>(device); }

const char* emulator_error(void* device) { return static_cast<EmulatedDevice*>(device)->error.c_str(); }

void* emulator_allocate(void* handle, u64 size, const char* what) {
    auto& device = *static_cast<EmulatedDevice*>(handle);
    void* address = nullptr;
    attempt(device, [&] { address = device.memory.allocate(size, what); });
    return address;
}

bool emulator_release(void* handle, void* address) {
    auto& device = *static_cast<EmulatedDevice*>(handle);
    return attempt(device, [&] { device.memory.release(address); });
}

bool emulator_check(void* handle) {
    auto& device = *static_cast<EmulatedDevice*>(handle);
    return attempt(device, [&] { device.memory.check(); });
}

bool emulator_launch(void* handle, const char* kernel, u32 grid, u32 block, u32 shared_bytes, void* state) {
    auto& device = *static_cast<EmulatedDevice*>(handle);
    return attempt(device, [&] { launch(device, {&find_kernel(kernel), grid, block, shared_bytes, state}); });
}

// The sums over all launches of a kernel so far: shared atomics, global atomics, barriers, collectives.
void emulator_tally(void* handle, const char* kernel, u64* sums) {
    const auto& tallies = static_cast<EmulatedDevice*>(handle)->tallies;
    const auto found = tallies.find(kernel);
    const Tally tally = found == tallies.end() ? Tally{} : found->second;
    std::memcpy(sums, &tally, sizeof(tally));
}

// The name of a kernel of the product, or null past the last one.
const char* emulator_kernel(u32 index) {
    return index < product_kernels().size() ? product_kernels()[index].name : nullptr;
}

}  // extern "C"
