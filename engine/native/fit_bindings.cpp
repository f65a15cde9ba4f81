// Python's view of a plane and of a fit.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "plane.hpp"

namespace nb = nanobind;

namespace dyno {
namespace {

using BinMatrix = nb::ndarray<const std::uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Bin>
void copy_bins(const BinMatrix& matrix, Plane& plane) {
    for (i64 i = 0; i < plane.n_rows; ++i) {
        for (i32 f = 0; f < plane.n_features; ++f) {
            const std::uint16_t bin = matrix(i, f);
            if (bin > plane.value_bins[f])
                throw std::invalid_argument("bin " + std::to_string(bin) + " of row " + std::to_string(i) + ", feature " +
                                            std::to_string(f) + " is beyond its missing bin " +
                                            std::to_string(plane.value_bins[f]));
            plane.row<Bin>(i)[f] = plane.column<Bin>(f)[i] = static_cast<Bin>(bin);
        }
    }
}

std::shared_ptr<Plane> plane_from_bins(const BinMatrix& matrix, std::vector<i32> value_bins) {
    if (matrix.shape(1) != value_bins.size()) throw std::invalid_argument("value_bins must hold one number a column of the bins");
    bool wide = false;
    for (const i32 bins : value_bins) {
        if (bins < 0 || bins > 65535) throw std::invalid_argument("a feature has between 0 and 65535 value bins");
        wide |= bins > 255;
    }
    auto plane = std::make_shared<Plane>(Plane::allocate(static_cast<i64>(matrix.shape(0)), std::move(value_bins), wide));
    wide ? copy_bins<std::uint16_t>(matrix, *plane) : copy_bins<std::uint8_t>(matrix, *plane);
    return plane;
}

}  // namespace

void bind_fit(nb::module_& m) {
    nb::class_<Plane>(m, "Plane", "A data set's bins as the native backend keeps them.")
        .def_static("from_bins", &plane_from_bins, nb::arg("bins"), nb::arg("value_bins"),
                    "A plane from a C-contiguous uint16 matrix of bins; feature f's missing bin is value_bins[f].")
        .def_ro("n_rows", &Plane::n_rows)
        .def_ro("n_features", &Plane::n_features)
        .def_ro("wide", &Plane::wide)
        .def_ro("value_bins", &Plane::value_bins);
}

}  // namespace dyno
