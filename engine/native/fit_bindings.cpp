// Python's view of a plane and of a fit.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "fit.hpp"
#include "numpy_out.hpp"
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
                throw std::invalid_argument("bin " + std::to_string(bin) + " of row " + std::to_string(i) +
                                            ", feature " + std::to_string(f) + " is beyond its missing bin " +
                                            std::to_string(plane.value_bins[f]));
            plane.row<Bin>(i)[f] = plane.column<Bin>(f)[i] = static_cast<Bin>(bin);
        }
    }
}

std::shared_ptr<Plane> plane_from_bins(const BinMatrix& matrix, std::vector<i32> value_bins) {
    if (matrix.shape(1) != value_bins.size())
        throw std::invalid_argument("value_bins must hold one number a column of the bins");
    bool wide = false;
    for (const i32 bins : value_bins) {
        if (bins < 0 || bins > 65535) throw std::invalid_argument("a feature has between 0 and 65535 value bins");
        wide |= bins > 255;
    }
    auto plane =
        std::make_shared<Plane>(Plane::allocate(static_cast<i64>(matrix.shape(0)), std::move(value_bins), wide));
    wide ? copy_bins<std::uint16_t>(matrix, *plane) : copy_bins<std::uint8_t>(matrix, *plane);
    return plane;
}

using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Choice choice_named(const char* name) {
    switch (name[0]) {
        case 'e': return Choice::every;
        case 'b': return Choice::best;
        case 'c': return Choice::common;
    }
    throw std::invalid_argument(std::string("choice '") + name + "' is unknown; choose every, best or common");
}

// One per row of the plane, or null for none.
const float* rows_of(const nb::object& array, const Plane& plane, const char* name, Floats& held) {
    if (array.is_none()) return nullptr;
    if (!nb::try_cast(array, held, false))
        throw std::invalid_argument(std::string(name) + " must be one-dimensional contiguous float32");
    if (static_cast<i64>(held.shape(0)) != plane.n_rows)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(held.shape(0)) + " values for " +
                                    std::to_string(plane.n_rows) + " rows");
    return held.data();
}

// A fit with what it borrows.
class HeldFit {
public:
    HeldFit(std::shared_ptr<Plane> plane, const nb::object& label, const nb::object& weight,
            std::vector<std::shared_ptr<Plane>> eval_planes, const std::string& objective, double learning_rate,
            i64 n_estimators, i64 max_depth, i64 max_leaves, i64 min_samples_leaf, double min_child_weight, double reg_lambda,
            double reg_alpha, double gamma, float base_margin, int n_threads, i64 histogram_bytes,
            const std::string& instruction_set)
        : plane_(std::move(plane)), eval_planes_(std::move(eval_planes)) {
        const float* labels = rows_of(label, *plane_, "label", label_);
        const float* weights = rows_of(weight, *plane_, "weight", weight_);
        if (labels == nullptr) throw std::invalid_argument("label must not be None");
        if (n_threads < 1) throw std::invalid_argument("n_threads must be at least 1");
        const FitSettings settings{objective_named(objective),
                                   learning_rate,
                                   n_estimators,
                                   max_depth,
                                   max_leaves,
                                   {reg_lambda, reg_alpha, gamma, min_child_weight, min_samples_leaf},
                                   base_margin,
                                   n_threads,
                                   histogram_bytes,
                                   instruction_set_named(instruction_set)};
        std::vector<const Plane*> evals;
        for (const auto& eval : eval_planes_) evals.push_back(eval.get());
        nb::gil_scoped_release release;
        fit_ = std::make_unique<Fit>(*plane_, labels, weights, settings, std::move(evals));
    }

    void begin_tree() { fit_->begin_tree(); }
    void build_histograms() { fit_->build_histograms(); }
    void find_splits(const char* choice) { fit_->find_splits(choice_named(choice)); }
    i64 plan(const char* choice) { return fit_->plan(choice_named(choice)); }
    void partition() { fit_->partition(); }
    void end_tree() { fit_->end_tree(); }

    // Seconds by phase of engine.profile. Signals are looked at between rounds: Ctrl-C ends a long tree.
    nb::dict grow(const char* choice) {
        const Choice chosen = choice_named(choice);
        RoundSeconds seconds;
        {
            nb::gil_scoped_release release;
            seconds = fit_->grow(chosen, [] {
                nb::gil_scoped_acquire acquire;
                if (PyErr_CheckSignals() != 0) throw nb::python_error();
            });
        }
        nb::dict phases;
        phases["histogram"] = seconds.histogram;
        phases["find"] = seconds.find;
        phases["plan"] = seconds.plan;
        phases["partition"] = seconds.partition;
        return phases;
    }

    auto eval_margins(std::size_t index) const { return to_numpy(std::vector<float>(fit_->eval_margins(index))); }

    // The arrays own what the fit held: a copy beside it would be the peak of a small fit's memory.
    nb::dict take_trees() {
        FinishedTrees trees = fit_->take_trees();
        nb::dict arrays;
        const auto put = [&](const char* name, auto& values) { arrays[name] = to_numpy(std::move(values)); };
        put("offsets", trees.offsets);
        put("feature", trees.feature);
        put("bin", trees.bin);
        put("missing_left", trees.missing_left);
        put("left", trees.left);
        put("right", trees.right);
        put("leaf", trees.leaf);
        put("value", trees.value);
        put("gain", trees.gain);
        put("cover", trees.cover);
        put("count", trees.count);
        return arrays;
    }

private:
    std::shared_ptr<Plane> plane_;
    std::vector<std::shared_ptr<Plane>> eval_planes_;
    Floats label_;
    Floats weight_;
    std::unique_ptr<Fit> fit_;
};

void bind_transactions(nb::module_& m) {
    using nb::arg;
    const auto no_gil = nb::call_guard<nb::gil_scoped_release>();
    nb::class_<HeldFit>(m, "Fit", "One fit's state: the transactions of engine.backends.Backend.")
        .def(nb::init<std::shared_ptr<Plane>, const nb::object&, const nb::object&, std::vector<std::shared_ptr<Plane>>,
                      const std::string&, double, i64, i64, i64, i64, double, double, double, double, float, int, i64,
                      const std::string&>(),
             arg("plane"), arg("label"), arg("weight").none(), arg("eval_planes"), nb::kw_only(), arg("objective"),
             arg("learning_rate"), arg("n_estimators"), arg("max_depth"), arg("max_leaves"), arg("min_samples_leaf"),
             arg("min_child_weight"), arg("reg_lambda"), arg("reg_alpha"), arg("gamma"), arg("base_margin"),
             arg("n_threads"), arg("histogram_bytes"), arg("instruction_set") = "")
        .def("begin_tree", &HeldFit::begin_tree, no_gil)
        .def("build_histograms", &HeldFit::build_histograms, no_gil)
        .def("find_splits", &HeldFit::find_splits, no_gil)
        .def("plan", &HeldFit::plan, no_gil)
        .def("partition", &HeldFit::partition, no_gil)
        .def("end_tree", &HeldFit::end_tree, no_gil)
        .def("grow", &HeldFit::grow, arg("choice"),
             "All rounds of a tree, as engine.growers.rounds makes them; returns the seconds of each phase.")
        .def("eval_margins", &HeldFit::eval_margins)
        .def("take_trees", &HeldFit::take_trees,
             "Node arrays of all trees, one after the other, and their offsets; the fit keeps none.");
}

}  // namespace

void bind_fit(nb::module_& m) {
    m.def(
        "limit_spinning", [](int n_threads) { most_spinning_threads.store(n_threads); }, nb::arg("n_threads"),
        "Worker threads of larger teams sleep between tasks instead of spinning.");
    bind_transactions(m);
    nb::class_<Plane>(m, "Plane", "A data set's bins as the native backend keeps them.")
        .def_static("from_bins", &plane_from_bins, nb::arg("bins"), nb::arg("value_bins"),
                    "A plane from a C-contiguous uint16 matrix of bins; feature f's missing bin is value_bins[f].")
        .def_ro("n_rows", &Plane::n_rows)
        .def_ro("n_features", &Plane::n_features)
        .def_ro("wide", &Plane::wide)
        .def_ro("value_bins", &Plane::value_bins);
}

}  // namespace dyno
