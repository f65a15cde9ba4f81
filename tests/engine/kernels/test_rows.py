"""Gradients, quantising and routing on the device against the NumPy oracle, bit by bit, under several schedules."""

import numpy as np
import pytest

from engine.backends.device_plane import BLOCK
from engine.backends.reference import gradients, quantise, repetitions
from engine.backends.resident_state import EVAL_PLANE, FIT_STATE, LEAF_PIECE_ROWS
from engine.device import Launch
from engine.device.emulated import EmulatedDevice

PAIR = np.dtype([("g", np.int32), ("h", np.int32)])
LEAF_PIECE = np.dtype([("begin", np.uint32), ("end", np.uint32), ("buffer", np.uint32), ("value", np.float32)])
SUMS = ("gain", "left_g", "left_h", "g", "h", "own_score")
LINKS = ("feature", "bin", "missing_left", "left", "right", "parent", "depth", "slot", "is_split")
ROWS = ("begin", "end", "n_left", "first_item")
NODE = np.dtype([(name, "i8") for name in SUMS] + [(name, "i4") for name in (*LINKS, *ROWS)] + [("value", "f4")])
LARGEST = np.finfo(np.float32).max
OBJECTIVES = ["squared_error", "logistic", "poisson"]
SIZES = [1, 31, 32, 33, 1000]


class Fit:
    """A fit's state on an emulated device, with nothing in it but what the row kernels use."""

    def __init__(self, label, weight=None, *, objective="squared_error", base_margin=0.0, schedule_seed=0):
        self.device = EmulatedDevice(schedule_seed)
        self.objective, self.n_rows = objective, len(label)
        self._fields = np.zeros(1, FIT_STATE)
        self._buffers = {}
        plain = weight is None or (weight == 1).all()
        for name, nbytes in (("margin", 4), ("gradient", 8), ("rows", (4, 4)), ("pairs", (8, 8))):
            self.hold(name, np.multiply(nbytes, self.n_rows))
        self.hold("leaves", 16 * (self.n_rows // LEAF_PIECE_ROWS + 16))
        self.set(label=label.astype(np.float32), n_rows=self.n_rows, base_margin=base_margin)
        if not plain:
            self.set(weight=weight.astype(np.float32), frequencies=repetitions(weight, self.n_rows)[1] is None)
        self.set(constant_hessian=objective == "squared_error" and plain)

    def hold(self, name, nbytes):
        """Memory for a buffer, or for the several of one field."""
        for index, size in enumerate(np.atleast_1d(nbytes)):
            self._buffers[name, index] = self.device.alloc(int(size), name)
        addresses = [self._buffers[name, index].address for index in range(np.size(nbytes))]
        self._fields[name] = addresses if len(addresses) > 1 else addresses[0]

    def set(self, **values):
        """Numbers as they are; arrays by their address."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                self.hold(name, value.nbytes)
                self.device.upload(self._buffers[name, 0], value)
            else:
                self._fields[name] = value

    def write(self, name, array, index=0):
        self.device.upload(self._buffers[name, index], array)

    def read(self, name, dtype, index=0):
        return self.device.download(self._buffers[name, index], dtype, (self.n_rows,))

    def run(self, *kernels, grid=3):
        state = self.device.alloc(FIT_STATE.itemsize, "state")
        self.device.upload(state, self._fields)
        for kernel in kernels:
            self.device.launch(Launch(kernel, grid, BLOCK, 64), state)
        self._fields = self.device.download(state, FIT_STATE, (1,))
        self.device.free(state)

    def __getitem__(self, name):
        return self._fields[name][0]


def expected(fit_objective, margin, label, weight):
    """Float32 gradients, integers and scales by the oracle."""
    repeats, factor = repetitions(weight, len(margin))
    plain = weight is None or (weight == 1).all()
    g, h = gradients(fit_objective, margin, label, factor)
    q_g, exponent_g = quantise(g)
    q_h, exponent_h = quantise(h)
    q_h = np.maximum(1, q_h)
    if fit_objective == "squared_error" and plain:
        q_h, exponent_h = np.ones_like(q_h), 0
    return g, h, q_g * repeats, q_h * repeats, 2.0**-exponent_g, 2.0**-exponent_h


def assert_begun(fit, margin, label, weight):
    """The state after differentiate and quantise, given the margins there should be."""
    g, h, q_g, q_h, scale_g, scale_h = expected(fit.objective, margin, label, weight)
    assert fit.read("margin", np.float32).tobytes() == margin.tobytes()
    found = fit.read("gradient", np.dtype([("g", np.float32), ("h", np.float32)]))
    assert found["g"].tobytes() == g.tobytes()
    assert found["h"].tobytes() == h.tobytes()
    pairs = fit.read("pairs", PAIR)
    np.testing.assert_array_equal(pairs["g"], q_g)
    np.testing.assert_array_equal(pairs["h"], q_h)
    np.testing.assert_array_equal(fit.read("rows", np.uint32), np.arange(fit.n_rows))
    assert (fit["root_g"], fit["root_h"], fit["scale_g"], fit["scale_h"]) == (q_g.sum(), q_h.sum(), scale_g, scale_h)


def labels(n_rows, seed=0):
    return np.random.default_rng(seed).integers(0, 2, n_rows).astype(np.float32)


def weights(kind, n_rows):
    random = np.random.default_rng(n_rows)
    return {
        "none": None,
        "ones": np.ones(n_rows, np.float32),
        "frequencies": random.integers(1, 8, n_rows).astype(np.float32),
        "fractions": np.append(random.uniform(1e-3, 5.0, n_rows - 1), 0.3).astype(np.float32),
    }[kind]


@pytest.mark.parametrize("weighting", ["none", "ones", "frequencies", "fractions"])
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_rows", SIZES)
def test_the_first_tree(n_rows, objective, weighting):
    label, weight = labels(n_rows), weights(weighting, n_rows)
    for seed in range(2):
        fit = Fit(label, weight, objective=objective, base_margin=0.3, schedule_seed=seed)
        fit.run("start_rows", f"differentiate_{objective}", "quantise_rows")
        assert_begun(fit, np.full(n_rows, 0.3, np.float32), label, weight)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("n_rows", SIZES)
def test_leaf_values_reach_their_rows(n_rows, objective):
    """Leaves lie in either buffer, as pieces of any size."""
    random = np.random.default_rng(n_rows)
    label = labels(n_rows)
    margin = random.normal(size=n_rows).astype(np.float32)
    order = random.permutation(n_rows).astype(np.uint32)
    ends = np.unique(np.append(random.integers(1, n_rows + 1, 9), n_rows))
    pieces = np.zeros(len(ends), LEAF_PIECE)
    pieces["begin"], pieces["end"] = np.append(0, ends[:-1]), ends
    pieces["buffer"], pieces["value"] = random.integers(0, 2, len(ends)), random.normal(size=len(ends))
    for seed in range(2):
        fit = Fit(label, objective=objective, schedule_seed=seed)
        fit.write("margin", margin)
        fit.write("leaves", pieces)
        fit.set(n_leaves=len(pieces))
        after = margin.copy()
        for buffer in (0, 1):
            held = np.full(n_rows, 2**32 - 1, np.uint32)
            for piece in pieces[pieces["buffer"] == buffer]:
                own = slice(piece["begin"], piece["end"])
                held[own] = order[own]
                after[order[own]] += piece["value"]
            fit.write("rows", held, buffer)
        fit.run(f"differentiate_{objective}", "quantise_rows")
        assert_begun(fit, after, label, None)


def test_the_largest_and_the_smallest():
    """Gradients saturate, however large the margin; hessians stay positive; a scale comes from a denormal."""
    margin = np.array([0.0, -0.0, LARGEST, -LARGEST, np.inf, -np.inf, 60.0, -60.0, 1e-45], np.float32)
    weight = np.array([1e-45, 1e-30, 1.0, LARGEST, 2.5, 1.0, 1.0, 1.0, 3.0], np.float32)
    label = np.full(len(margin), 0.5, np.float32)
    for objective in OBJECTIVES:
        for given in (weight, None):
            fit = Fit(label, given, objective=objective)
            fit.write("margin", margin)
            fit.write("rows", np.arange(len(margin), dtype=np.uint32))
            fit.write("leaves", np.array([(0, len(margin), 0, -0.0)], LEAF_PIECE))
            fit.set(n_leaves=1)
            fit.run(f"differentiate_{objective}", "quantise_rows")
            assert_begun(fit, margin, label, given)


def test_no_gradient_at_all():
    label = np.zeros(5, np.float32)
    fit = Fit(label)
    fit.run("start_rows", "differentiate_squared_error", "quantise_rows")
    assert_begun(fit, label, label, None)
    assert fit["scale_g"] == 1.0


def test_more_rows_than_a_piece():
    n_rows = 2 * LEAF_PIECE_ROWS + 1
    label = labels(n_rows)
    fit = Fit(label, objective="logistic")
    fit.run("start_rows", "differentiate_logistic", "quantise_rows")
    assert fit["n_leaves"] == 3
    assert_begun(fit, np.zeros(n_rows, np.float32), label, None)


# ---- routing ---------------------------------------------------------------------------------------------------------

TREE = [  # feature, bin, missing_left, left, right, value
    (0, 1, 1, 1, 2, 0.0),
    (1, 0, 0, 3, 4, 0.0),
    (1, 2, 1, 5, 6, 0.0),
    *[(-1, -1, 0, -1, -1, value) for value in (0.1, -3.0, 1e-3, 7.5)],
]
VALUE_BINS = np.array([3, 4], np.int32)


def routed(bins, margins):
    """Down the tree one row at a time; bin == value bins is the missing one."""
    result = margins.copy()
    for row, own in enumerate(bins):
        at = TREE[0]
        while at[3] >= 0:
            feature, cut, missing_left, left, right, _ = at
            goes_left = missing_left if own[feature] == VALUE_BINS[feature] else own[feature] <= cut
            at = TREE[left if goes_left else right]
        result[row] += np.float32(at[5])
    return result


@pytest.mark.parametrize(("suffix", "dtype"), [("u8", np.uint8), ("u16", np.uint16)])
def test_eval_rows_find_their_leaves(suffix, dtype):
    random = np.random.default_rng(0)
    nodes = np.zeros(len(TREE), NODE)
    nodes[["feature", "bin", "missing_left", "left", "right", "value"]] = TREE
    for seed in range(3):
        fit = Fit(labels(1), schedule_seed=seed)
        bins = [random.integers(0, VALUE_BINS + 1, (n_rows, 2)).astype(dtype) for n_rows in SIZES]
        margins = [random.normal(size=n_rows).astype(np.float32) for n_rows in SIZES]
        evals = np.zeros(len(SIZES), EVAL_PLANE)
        held = []
        for plane, own, margin in zip(evals, bins, margins, strict=True):
            columns, margin_buffer = fit.device.alloc(own.nbytes, "columns"), fit.device.alloc(margin.nbytes, "margins")
            fit.device.upload(columns, np.ascontiguousarray(own.T))
            fit.device.upload(margin_buffer, margin)
            plane["columns"], plane["margins"], plane["n_rows"] = columns.address, margin_buffer.address, len(own)
            held.append(margin_buffer)
        fit.set(nodes=nodes, value_bins=VALUE_BINS, evals=evals, n_evals=len(SIZES))
        fit.run(f"route_{suffix}")
        for own, margin, buffer in zip(bins, margins, held, strict=True):
            found = fit.device.download(buffer, np.float32, (len(own),))
            assert found.tobytes() == routed(own, margin).tobytes()


def test_every_margin_starts_at_the_base():
    fit = Fit(labels(3), base_margin=-1.5)
    buffer = fit.device.alloc(4 * 700, "margins")
    fit.set(evals=np.array([(0, buffer.address, 700)], EVAL_PLANE), n_evals=1)
    fit.run("start_rows")
    assert (fit.device.download(buffer, np.float32, (700,)) == -1.5).all()
    assert (fit.read("margin", np.float32) == -1.5).all()
