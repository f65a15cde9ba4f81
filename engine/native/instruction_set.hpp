// Which vector instructions this machine has: the same C++ is compiled for each, and chosen at run time.
//
// A kernel is written once as an always-inline body and wrapped by DYNO_CLONES in one function per instruction set.
// The bits do not depend on the choice: nothing is contracted, and only exact sums are ever reordered.
#pragma once

#include <stdexcept>
#include <string>

namespace dyno {

enum class InstructionSet { baseline, avx2, avx512 };

#define DYNO_AVX2 __attribute__((target("avx2")))
#define DYNO_AVX512 __attribute__((target("avx2,avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")))

inline InstructionSet best_instruction_set() {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
        return InstructionSet::avx512;
    return __builtin_cpu_supports("avx2") ? InstructionSet::avx2 : InstructionSet::baseline;
}

// "" is the best this machine has; a name asks for that one, so that tests can compare their bits.
inline InstructionSet instruction_set_named(const std::string& name) {
    const InstructionSet best = best_instruction_set();
    if (name.empty()) return best;
    const InstructionSet asked =
        name == "avx512" ? InstructionSet::avx512
        : name == "avx2" ? InstructionSet::avx2
        : name == "baseline"
            ? InstructionSet::baseline
            : throw std::invalid_argument("instruction set '" + name + "' is unknown; choose baseline, avx2 or avx512");
    if (asked > best) throw std::invalid_argument("this machine has no " + name);
    return asked;
}

}  // namespace dyno
