// Python's view of prediction.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "predict.hpp"

namespace nb = nanobind;

namespace dyno {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
Vector<T> get(nb::handle forest, const char* name) {
    return nb::cast<Vector<T>>(forest.attr(name));
}

std::shared_ptr<PackedForest> pack(nb::handle forest) {
    const auto feature = get<i32>(forest, "feature");
    const auto threshold = get<double>(forest, "threshold");
    const auto missing_left = get<unsigned char>(forest, "missing_left");
    const auto left = get<i32>(forest, "left"), right = get<i32>(forest, "right");
    const auto leaf = get<unsigned char>(forest, "leaf");
    const auto value = get<float>(forest, "value");
    const auto offsets = get<i64>(forest, "offsets");
    const ForestArrays arrays{feature.data(), threshold.data(), missing_left.data(), left.data(), right.data(),
                              leaf.data(), value.data(), offsets.data(), static_cast<i64>(offsets.shape(0)) - 1};
    nb::gil_scoped_release release;
    return std::make_shared<PackedForest>(arrays);
}

// A float32 or float64 matrix of any strides, by the buffer protocol. Made and destroyed with the GIL.
class BorrowedMatrix {
public:
    explicit BorrowedMatrix(nb::handle matrix) {
        if (PyObject_GetBuffer(matrix.ptr(), &view_, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) throw nb::python_error();
        if (view_.ndim != 2 || (std::strcmp(view_.format, "f") != 0 && std::strcmp(view_.format, "d") != 0)) {
            PyBuffer_Release(&view_);
            throw std::invalid_argument("rows must be a two-dimensional float32 or float64 array, or a tuple of columns");
        }
    }
    ~BorrowedMatrix() { PyBuffer_Release(&view_); }
    BorrowedMatrix(const BorrowedMatrix&) = delete;
    BorrowedMatrix& operator=(const BorrowedMatrix&) = delete;

    i64 n_rows() const { return view_.shape[0]; }
    std::vector<Column> columns() const {
        std::vector<Column> columns(view_.shape[1]);
        for (std::size_t f = 0; f < columns.size(); ++f) {
            const std::byte* data = static_cast<const std::byte*>(view_.buf) + static_cast<i64>(f) * view_.strides[1];
            columns[f] = {data, view_.strides[0], view_.format[0] == 'd'};
        }
        return columns;
    }

private:
    Py_buffer view_;
};

// Columns that somebody has checked for infinities, or a matrix that nobody has.
class BorrowedRows {
public:
    BorrowedRows(nb::handle rows, const PackedForest& forest) {
        if (nb::isinstance<nb::tuple>(rows)) {
            columns_.emplace(nb::borrow<nb::sequence>(rows));
            rows_ = {columns_->columns(), columns_->n_rows(), false};
        } else {
            matrix_.emplace(rows);
            rows_ = {matrix_->columns(), matrix_->n_rows(), true};
        }
        if (static_cast<i64>(rows_.columns.size()) < std::max(forest.n_features(), 1)) {
            throw std::invalid_argument("a tree splits on a feature that there is no column of");
        }
    }

    const RawRows& rows() const { return rows_; }

private:
    std::optional<BorrowedColumns> columns_;
    std::optional<BorrowedMatrix> matrix_;
    RawRows rows_;
};

// Ctrl-C ends a long prediction.
void heed_signals() {
    nb::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

PredictRun run_of(int n_threads, const std::string& instruction_set) {
    return {n_threads, instruction_set_named(instruction_set), heed_signals};
}

// An uninitialised array of NumPy's, filled by `fill(pointer)` without the GIL; None if that is false.
template <class T, class Fill>
nb::object filled(std::initializer_list<std::size_t> shape, const Fill& fill) {
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    T* values = new T[std::max<std::size_t>(size, 1)];
    nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    bool is_filled;
    {
        nb::gil_scoped_release release;
        is_filled = fill(values);
    }
    return is_filled ? nb::cast(nb::ndarray<nb::numpy, T>(values, shape, owner)) : nb::none();
}

nb::object margins_of(const PackedForest& forest, nb::handle rows, float base_margin, int n_threads,
                      const std::string& instruction_set, const std::string& objective) {
    const BorrowedRows borrowed(rows, forest);
    const PredictRun run = run_of(n_threads, instruction_set);
    const std::size_t n_rows = borrowed.rows().n_rows;
    if (objective.empty()) {
        return filled<float>(
            {n_rows}, [&](float* out) { return predict_margins(forest, borrowed.rows(), base_margin, out, run); });
    }
    return filled<double>({n_rows}, [&, asked = objective_named(objective)](double* out) {
        return predict_responses(forest, borrowed.rows(), base_margin, asked, out, run);
    });
}

nb::object respond_to(const Vector<float>& margins, const std::string& objective, int n_threads,
                      const std::string& instruction_set) {
    const PredictRun run = run_of(n_threads, instruction_set);
    return filled<double>({margins.shape(0)}, [&, asked = objective_named(objective)](double* out) {
        respond(asked, margins.data(), static_cast<i64>(margins.shape(0)), out, run);
        return true;
    });
}

nb::object leaves_of(const PackedForest& forest, nb::handle rows, int n_threads, const std::string& instruction_set) {
    const BorrowedRows borrowed(rows, forest);
    const PredictRun run = run_of(n_threads, instruction_set);
    const std::size_t n_rows = borrowed.rows().n_rows, n_trees = forest.n_trees();
    return filled<i32>({n_rows, n_trees},
                       [&](i32* out) { return predict_leaves(forest, borrowed.rows(), out, run); });
}

// Null where bins do not decide as this forest's thresholds do, or it has no ranks.
std::unique_ptr<BinRanks> ranks_of(const PackedForest& forest, const Plane& plane, const Vector<double>& cuts,
                                   const Vector<i64>& offsets) {
    const bool sound = static_cast<i64>(offsets.shape(0)) == plane.n_features + 1 &&
                       offsets(plane.n_features) == static_cast<i64>(cuts.shape(0));
    if (!sound) throw std::invalid_argument("cuts and offsets do not fit the plane");
    if (!forest.has_ranks || forest.n_features() > plane.n_features) return nullptr;
    auto ranks = std::make_unique<BinRanks>(forest, plane, cuts.data(), offsets.data());
    return ranks->fit() ? std::move(ranks) : nullptr;
}

nb::object bin_margins(const PackedForest& forest, const Plane& plane, const Vector<double>& cuts,
                       const Vector<i64>& offsets, float base_margin, int n_threads, const std::string& instruction_set,
                       const std::string& objective) {
    const auto ranks = ranks_of(forest, plane, cuts, offsets);
    if (ranks == nullptr) return nb::none();
    const PredictRun run = run_of(n_threads, instruction_set);
    const std::size_t n_rows = plane.n_rows;
    if (objective.empty()) {
        return filled<float>({n_rows}, [&](float* out) {
            predict_margins(forest, *ranks, plane.n_rows, base_margin, out, run);
            return true;
        });
    }
    return filled<double>({n_rows}, [&, asked = objective_named(objective)](double* out) {
        predict_responses(forest, *ranks, plane.n_rows, base_margin, asked, out, run);
        return true;
    });
}

nb::object bin_leaves(const PackedForest& forest, const Plane& plane, const Vector<double>& cuts,
                      const Vector<i64>& offsets, int n_threads, const std::string& instruction_set) {
    const auto ranks = ranks_of(forest, plane, cuts, offsets);
    if (ranks == nullptr) return nb::none();
    const PredictRun run = run_of(n_threads, instruction_set);
    return filled<i32>({static_cast<std::size_t>(plane.n_rows), static_cast<std::size_t>(forest.n_trees())},
                       [&](i32* out) {
                           predict_leaves(forest, *ranks, plane.n_rows, out, run);
                           return true;
                       });
}

}  // namespace

void bind_predict(nb::module_& m) {
    using nb::arg;
    nb::class_<PackedForest>(m, "PackedForest",
                             "A forest as prediction reads it; immutable. `rows` are a tuple of one-dimensional float32 or "
                             "float64 arrays, or a matrix of one of these types, for which the answer is None if it "
                             "holds an infinity.")
        .def("useful_threads", &useful_threads, arg("n_rows"), "How many threads so many rows are worth starting.")
        .def("margins", &margins_of, arg("rows"), arg("base_margin"), arg("n_threads"), arg("instruction_set") = "",
             arg("objective") = "", "float32 margins, one a row; of an objective, float64 responses.")
        .def("leaves", &leaves_of, arg("rows"), arg("n_threads"), arg("instruction_set") = "",
             "int32 node index within the tree, (n_rows, n_trees).")
        .def("bin_margins", &bin_margins, arg("plane"), arg("cuts"), arg("offsets"), arg("base_margin"),
             arg("n_threads"), arg("instruction_set") = "", arg("objective") = "",
             "The same of a plane's rows; None if not every threshold is one of the cuts, or ranks are no bytes.")
        .def("bin_leaves", &bin_leaves, arg("plane"), arg("cuts"), arg("offsets"), arg("n_threads"),
             arg("instruction_set") = "");
    m.def("respond", &respond_to, arg("margins"), arg("objective"), arg("n_threads"), arg("instruction_set") = "",
          "The objective's float64 responses to float32 margins.");
    m.def("pack_forest", &pack, arg("forest"), "The PackedForest of an engine.forest.Forest.");
}

}  // namespace dyno
