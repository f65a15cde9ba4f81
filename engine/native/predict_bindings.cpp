// Python's view of prediction.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <stdexcept>

#include "bindings.hpp"
#include "numpy_out.hpp"
#include "predict.hpp"

namespace nb = nanobind;

namespace dyno {
namespace {

template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Holds on to the arrays of an engine.forest.Forest.
class BorrowedForest {
public:
    explicit BorrowedForest(nb::handle forest)
        : feature_(get<i32>(forest, "feature")),
          threshold_(get<double>(forest, "threshold")),
          missing_left_(get<unsigned char>(forest, "missing_left")),
          left_(get<i32>(forest, "left")),
          right_(get<i32>(forest, "right")),
          leaf_(get<unsigned char>(forest, "leaf")),
          value_(get<float>(forest, "value")),
          offsets_(get<i64>(forest, "offsets")) {}

    ForestArrays arrays() const {
        return {feature_.data(), threshold_.data(), missing_left_.data(), left_.data(), right_.data(),
                leaf_.data(), value_.data(), offsets_.data(), static_cast<i64>(offsets_.shape(0)) - 1};
    }

    void check_features(std::size_t n_features) const {
        const i32* end = feature_.data() + feature_.shape(0);
        if (std::any_of(feature_.data(), end, [&](i32 f) { return f >= static_cast<i64>(n_features); })) {
            throw std::invalid_argument("a tree splits on a feature that there is no column of");
        }
    }

private:
    template <class T>
    static Vector<T> get(nb::handle forest, const char* name) { return nb::cast<Vector<T>>(forest.attr(name)); }

    Vector<i32> feature_;
    Vector<double> threshold_;
    Vector<unsigned char> missing_left_;
    Vector<i32> left_, right_;
    Vector<unsigned char> leaf_;
    Vector<float> value_;
    Vector<i64> offsets_;
};

nb::object predict_margins_py(const nb::sequence& arrays, nb::handle forest, float base_margin, int n_threads) {
    const BorrowedColumns borrowed(arrays);
    const BorrowedForest trees(forest);
    trees.check_features(borrowed.columns().size());
    std::vector<float> margins(borrowed.n_rows());
    {
        nb::gil_scoped_release release;
        predict_margins(borrowed.columns(), borrowed.n_rows(), trees.arrays(), base_margin, margins.data(), n_threads);
    }
    return nb::cast(to_numpy(std::move(margins)));
}

nb::object predict_leaves_py(const nb::sequence& arrays, nb::handle forest, int n_threads) {
    const BorrowedColumns borrowed(arrays);
    const BorrowedForest trees(forest);
    trees.check_features(borrowed.columns().size());
    const std::size_t n_rows = borrowed.n_rows(), n_trees = trees.arrays().n_trees;
    std::vector<i32> leaves(n_rows * n_trees);
    {
        nb::gil_scoped_release release;
        predict_leaves(borrowed.columns(), borrowed.n_rows(), trees.arrays(), leaves.data(), n_threads);
    }
    return nb::cast(to_numpy(std::move(leaves), {n_rows, n_trees}));
}

}  // namespace

void bind_predict(nb::module_& m) {
    m.def("predict_margins", &predict_margins_py, nb::arg("columns"), nb::arg("forest"), nb::arg("base_margin"),
          nb::arg("n_threads"), "float32 margins, one a row; forest is an engine.forest.Forest.");
    m.def("predict_leaves", &predict_leaves_py, nb::arg("columns"), nb::arg("forest"), nb::arg("n_threads"),
          "int32 node index within the tree, (n_rows, n_trees).");
}

}  // namespace dyno
