// What each binding file adds to the module, for module.cpp to call, and what they share.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

#include "semantics.cuh"

namespace dyno {

void bind_ingest(nanobind::module_& m);
void bind_predict(nanobind::module_& m);
void bind_fit(nanobind::module_& m);

inline Objective objective_named(const std::string& name) {
    if (name == "squared_error") return Objective::squared_error;
    if (name == "logistic") return Objective::logistic;
    if (name == "poisson") return Objective::poisson;
    throw std::invalid_argument("objective '" + name + "' is unknown; choose squared_error, logistic or poisson");
}

}  // namespace dyno
