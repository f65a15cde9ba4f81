#include "resident.hpp"

#include <cstdio>
#include <string_view>

namespace dyno::emulator {
namespace {

std::string in_source(Site site) {
    const std::string_view path(site.file);
    return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(site.line);
}

std::string in_hexadecimal(u32 mask) {
    char text[16];
    std::snprintf(text, sizeof(text), "0x%08x", mask);
    return text;
}

std::string what_it_waits_for(const Fiber& fiber) {
    if (fiber.state == State::finished) return "have left the kernel";
    if (fiber.state == State::ready) return "spin at " + in_source(fiber.site);
    if (fiber.state == State::at_barrier) return "wait in sync_block at " + in_source(fiber.site);
    const Warp& warp = fiber.resident->warps[fiber.warp()];
    const u32 lane = fiber.index();
    return std::string("wait in ") + name_of(warp.kind[lane]) + "(" + in_hexadecimal(warp.mask[lane]) + ") at " +
           in_source(fiber.site);
}

std::string threads(u32 first, u32 last) {
    if (first == last) return "thread " + std::to_string(first);
    return "threads " + std::to_string(first) + "-" + std::to_string(last);
}

// One line for each stretch of threads that do the same.
void describe(const Resident& resident, std::string& text) {
    u32 first = 0;
    const auto n_lanes = static_cast<u32>(resident.lanes.size());
    for (u32 thread = 0; thread < n_lanes; ++thread) {
        const std::string waits = what_it_waits_for(*resident.lanes[thread]);
        if (thread + 1 < n_lanes && what_it_waits_for(*resident.lanes[thread + 1]) == waits) continue;
        const std::string block = std::to_string(resident.lanes[thread]->block);
        text += "\n  block " + block + ", " + threads(first, thread) + " " + waits;
        first = thread + 1;
    }
}

}  // namespace

std::string place_of(const Kernel& kernel, const Fiber& fiber, Site site) {
    return std::string("kernel ") + kernel.name + ", block " + std::to_string(fiber.block) + ", thread " +
           std::to_string(fiber.thread) + ", " + in_source(site);
}

std::string who_waits_where(const Kernel& kernel, const std::vector<Resident>& residents) {
    constexpr std::size_t kLongest = 4000;
    std::string text = std::string("kernel ") + kernel.name + " is stuck:";
    for (const Resident& resident : residents)
        if (resident.n_finished < resident.lanes.size() && text.size() < kLongest) describe(resident, text);
    return text;
}

}  // namespace dyno::emulator
