// What a warp's collectives give, once every lane of the mask has brought its value.
#pragma once

#include <array>

#include "lane.hpp"

namespace dyno::emulator {

inline const char* name_of(Kind kind) {
    constexpr const char* names[] = {"sync_warp", "shuffle", "shuffle_up", "shuffle_down", "shuffle_xor",
                                     "ballot",    "any",     "all",        "match"};
    return names[static_cast<u32>(kind)];
}

using PerLane = std::array<u64, 32>;

template <class Visit>
void for_each_lane(u32 mask, Visit&& visit) {
    for (u32 rest = mask; rest != 0; rest &= rest - 1) visit(static_cast<u32>(__builtin_ctz(rest)));
}

// The lane that a shuffle reads; a lane that is none of the warp's gives the reader's own value.
inline u32 source_of(Kind kind, u32 lane, u32 argument) {
    if (kind == Kind::shuffle) return argument % 32;
    if (kind == Kind::shuffle_xor) return (lane ^ argument) % 32;
    const u32 source = kind == Kind::shuffle_up ? lane - argument : lane + argument;
    return source < 32 ? source : lane;
}

inline u32 lanes_that_vote(u32 mask, const PerLane& value) {
    u32 votes = 0;
    for_each_lane(mask, [&](u32 lane) { votes |= static_cast<u32>(value[lane] != 0) << lane; });
    return votes;
}

inline u32 lanes_that_equal(u32 mask, const PerLane& value, u64 wanted) {
    u32 equal = 0;
    for_each_lane(mask, [&](u32 lane) { equal |= static_cast<u32>(value[lane] == wanted) << lane; });
    return equal;
}

// `poison` is what a shuffle from a lane outside the mask reads.
inline void resolve(Kind kind, u32 mask, const PerLane& value, const std::array<u32, 32>& argument, u64 poison,
                    PerLane& result) {
    if (kind == Kind::sync) return;
    if (kind == Kind::match) {
        for_each_lane(mask, [&](u32 lane) { result[lane] = lanes_that_equal(mask, value, value[lane]); });
    } else if (kind == Kind::ballot || kind == Kind::any || kind == Kind::all) {
        const u32 votes = lanes_that_vote(mask, value);
        const u64 common = kind == Kind::ballot ? votes : kind == Kind::any ? votes != 0 : votes == mask;
        for_each_lane(mask, [&](u32 lane) { result[lane] = common; });
    } else {
        for_each_lane(mask, [&](u32 lane) {
            const u32 source = source_of(kind, lane, argument[lane]);
            result[lane] = mask >> source & 1 ? value[source] : poison;
        });
    }
}

}  // namespace dyno::emulator
