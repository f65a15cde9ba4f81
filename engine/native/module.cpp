// The nanobind module engine._native.
#include "bindings.hpp"
#include "semantics.cuh"

NB_MODULE(_native, m) {
    m.def("contract_exp", &dyno::contract_exp);
    m.def("contract_log", &dyno::contract_log);
    dyno::bind_fit(m);
    dyno::bind_ingest(m);
    dyno::bind_predict(m);
}
