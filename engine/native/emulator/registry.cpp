#include "registry.hpp"

#include <stdexcept>
#include <string>

namespace dyno::emulator {

KernelList& product_kernels() {
    static KernelList list;
    return list;
}

KernelList& self_test_kernels() {
    static KernelList list;
    return list;
}

bool enter(KernelList& list, const Kernel& kernel) {
    list.push_back(kernel);
    return true;
}

const Kernel& find_kernel(std::string_view name) {
    for (const KernelList* list : {&product_kernels(), &self_test_kernels()})
        for (const Kernel& kernel : *list)
            if (kernel.name == name) return kernel;
    throw std::runtime_error("no kernel is named '" + std::string(name) + "': does all.cuh include its file?");
}

}  // namespace dyno::emulator
