// Python's view of ingest. Columns are sequences of one-dimensional float32 or float64 arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>
#include <stdexcept>

#include "bindings.hpp"
#include "ingest.hpp"
#include "numpy_out.hpp"

namespace nb = nanobind;

namespace dyno {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::object find_infinity_py(const nb::sequence& arrays, int n_threads) {
    const BorrowedColumns borrowed(arrays);
    Cell cell;
    {
        nb::gil_scoped_release release;
        cell = find_infinity(borrowed.columns(), borrowed.n_rows(), n_threads);
    }
    if (cell.feature < 0) return nb::none();
    return nb::make_tuple(cell.feature, cell.row);
}

nb::tuple find_cuts_py(const nb::sequence& arrays, const nb::object& weight, i64 max_bin, int n_threads) {
    const BorrowedColumns borrowed(arrays);
    if (borrowed.n_rows() == 0) throw std::invalid_argument("there must be at least one row");
    if (max_bin < 2 || max_bin > 65535) throw std::invalid_argument("max_bin must lie in [2, 65535]");
    const float* weights = nullptr;
    Vector<float> weight_array;
    if (!weight.is_none()) {
        weight_array = nb::cast<Vector<float>>(weight);
        if (static_cast<i64>(weight_array.shape(0)) != borrowed.n_rows()) throw std::invalid_argument("one weight a row");
        weights = weight_array.data();
    }
    Cuts cuts;
    {
        nb::gil_scoped_release release;
        cuts = find_cuts(borrowed.columns(), borrowed.n_rows(), weights, max_bin, n_threads);
    }
    return nb::make_tuple(to_numpy(std::move(cuts.values)), to_numpy(std::move(cuts.offsets)),
                          to_numpy(std::move(cuts.value_bins)));
}

void check_cuts(i64 n_features, const Vector<double>& cuts, const Vector<i64>& offsets, const Vector<i32>& value_bins) {
    bool sound = static_cast<i64>(offsets.shape(0)) == n_features + 1 &&
                 static_cast<i64>(value_bins.shape(0)) == n_features && offsets(0) == 0 &&
                 offsets(n_features) == static_cast<i64>(cuts.shape(0));
    for (i64 f = 0; sound && f < n_features; ++f) {
        const i64 n_cuts = offsets(f + 1) - offsets(f);
        const bool none = value_bins(f) == 0 && n_cuts == 0;
        sound = none || (n_cuts >= 0 && n_cuts < 65535 && value_bins(f) == n_cuts + 1);
    }
    if (!sound) throw std::invalid_argument("cuts, offsets and value_bins do not fit each other and the columns");
}

std::shared_ptr<Plane> make_plane_py(const nb::sequence& arrays, const Vector<double>& cuts, const Vector<i64>& offsets,
                                     const Vector<i32>& value_bins, int n_threads) {
    const BorrowedColumns borrowed(arrays);
    check_cuts(static_cast<i64>(borrowed.columns().size()), cuts, offsets, value_bins);
    nb::gil_scoped_release release;
    return std::make_shared<Plane>(make_plane(borrowed.columns(), borrowed.n_rows(), cuts.data(), offsets.data(),
                                              value_bins.data(), n_threads));
}

template <class Bin, bool row_major>
std::vector<std::uint16_t> copy_bins(const Plane& plane) {
    std::vector<std::uint16_t> bins(static_cast<std::size_t>(plane.n_rows) * plane.n_features);
    for (i64 i = 0; i < plane.n_rows; ++i) {
        for (i32 f = 0; f < plane.n_features; ++f) {
            bins[i * plane.n_features + f] = row_major ? plane.row<Bin>(i)[f] : plane.column<Bin>(f)[i];
        }
    }
    return bins;
}

template <bool row_major>
auto bins_of(const Plane& plane) {
    auto bins = plane.wide ? copy_bins<std::uint16_t, row_major>(plane) : copy_bins<std::uint8_t, row_major>(plane);
    return to_numpy(std::move(bins), {static_cast<std::size_t>(plane.n_rows), static_cast<std::size_t>(plane.n_features)});
}

}  // namespace

void bind_ingest(nb::module_& m) {
    m.def("find_infinity", &find_infinity_py, nb::arg("columns"), nb::arg("n_threads"),
          "(feature, row) of the first infinity by feature, then row; None if there is none.");
    m.def("find_cuts", &find_cuts_py, nb::arg("columns"), nb::arg("weight").none(), nb::arg("max_bin"),
          nb::arg("n_threads"), "(values, offsets, value_bins) by contract §3; weight is positive float32 or None.");
    m.def("make_plane", &make_plane_py, nb::arg("columns"), nb::arg("cuts"), nb::arg("offsets"), nb::arg("value_bins"),
          nb::arg("n_threads"), "The Plane of all columns' bins.");
    m.def("row_bins", &bins_of<true>, nb::arg("plane"), "Bins as uint16 (n_rows, n_features), from the row-major copy.");
    m.def("column_bins", &bins_of<false>, nb::arg("plane"), "The same from the column-major copy.");
}

}  // namespace dyno
