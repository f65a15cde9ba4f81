// What each binding file adds to the module; module.cpp calls them.
#pragma once

#include <nanobind/nanobind.h>

namespace dyno {

void bind_ingest(nanobind::module_& m);
void bind_predict(nanobind::module_& m);
void bind_fit(nanobind::module_& m);

}  // namespace dyno
