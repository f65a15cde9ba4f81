// The nanobind module engine._native.
#include <nanobind/nanobind.h>

#include "semantics.cuh"

NB_MODULE(_native, m) {
    m.def("contract_exp", &dyno::contract_exp);
    m.def("contract_log", &dyno::contract_log);
}
