"""What is the native backend's own: row chunks, packed cells, budgets, threads, and how it fails.

That it grows the oracle's trees on data of every kind is proven in tests/engine/test_identity.py; here the sizes are
chosen so that each of its short cuts is taken.
"""

import ctypes
import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

import engine
from engine import _native
from engine.backends.native import NativeBackend
from engine.backends.reference import MISSING, ReferenceBackend, ReferencePlane
from engine.errors import SessionError
from engine.growers import GROWERS
from engine.params import parse_params
from tests.engine.growing import grow_on, instruction_sets

GROWN = {"max_depth": 4, "n_estimators": 2, "learning_rate": 0.5}


class Binned:
    """One matrix of bins as both backends keep it: no cuts, no raw values."""

    def __init__(self, bins, value_bins):
        self.bins, self.value_bins = np.ascontiguousarray(bins, np.uint16), list(value_bins)
        self.native = _native.Plane.from_bins(self.bins, self.value_bins)

    def reference(self):
        missing = self.bins == self.value_bins
        cuts = tuple(np.arange(max(bins - 1, 0), dtype=float) for bins in self.value_bins)
        return ReferencePlane(np.where(missing, MISSING, self.bins.astype(np.int32)).T.copy(), cuts)


def binned(n_rows, value_bins, seed=0):
    """Random bins; every other feature has missing values."""
    rng = np.random.default_rng(seed)
    highs = [bins + (f % 2 or bins == 0) for f, bins in enumerate(value_bins)]
    return Binned(np.column_stack([rng.integers(0, high, n_rows) for high in highs]), value_bins)


def labels_of(data, seed=0):
    noise = np.random.default_rng(seed).normal(size=len(data.bins))
    return (data.bins[:, 0] / (1 + data.value_bins[0]) + data.bins[:, -1] % 3 + 0.2 * noise).astype(np.float32)


def grow(backend, plane, label, weight=None, eval_planes=(), **params):
    params = parse_params({**GROWN, **params})
    with closing(backend):
        trees = grow_on(backend, plane, label, weight, params, np.float32(0.25), eval_planes)
        return trees, [backend.eval_margins(i) for i in range(len(eval_planes))]


def bytes_of(trees):
    return [{name: array.tobytes() for name, array in tree.arrays().items()} for tree in trees]


def assert_like_the_oracle(data, label, weight=None, *, n_threads=2, eval_data=None, backend=None, **params):
    native = backend or NativeBackend(n_threads)
    evals = [eval_data] if eval_data else []
    trees, margins = grow(native, data.native, label, weight, [e.native for e in evals], **params)
    expected, expected_margins = grow(
        ReferenceBackend(), data.reference(), label, weight, [e.reference() for e in evals], **params
    )
    assert bytes_of(trees) == bytes_of(expected)
    assert [m.tobytes() for m in margins] == [m.tobytes() for m in expected_margins]
    assert max(map(len, trees)) >= 3
    return trees


# ---- sizes at which another way is taken ---------------------------------------------------------------------------


@pytest.mark.parametrize("grower", GROWERS)
def test_rows_in_several_chunks(grower):
    data = binned(40_000, [7, 3, 1, 12])
    assert_like_the_oracle(data, labels_of(data), n_threads=3, grower=grower)


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_where_a_count_no_longer_fits_its_packed_cell(grower, offset):
    data = binned(2**17 + offset, [5, 2])
    assert_like_the_oracle(data, labels_of(data), grower=grower, max_depth=2, n_estimators=1)


def test_packed_sums_at_their_limit():
    """One feature, one heavy bin: all gradients of one sign and of the largest magnitude meet in one cell."""
    n_rows = 2**17 - 1
    bins = np.zeros((n_rows, 1), np.uint16)
    bins[:3] = 1
    label = np.full(n_rows, np.nextafter(np.float32(-3.75), np.float32(0)))  # with the base margin, just below 4
    label[:3] = 3.0
    assert_like_the_oracle(Binned(bins, [2]), label, max_depth=1, n_estimators=1)


def test_large_and_small_siblings_in_cells_of_different_width():
    data = binned(2**17 + 5_000, [3, 2])
    label = labels_of(data)
    label[data.bins[:, 0] == 0] += 50  # parts a third from two thirds, both with cells narrower than the root's
    assert_like_the_oracle(data, label, max_depth=3, n_estimators=1)


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("value_bins", [[255, 255, 3], [256, 2, 0], [40_000, 9]])
def test_widths_of_bins(grower, value_bins):
    data = binned(3_000, value_bins)
    assert data.native.wide == (max(value_bins) > 255)
    assert_like_the_oracle(data, labels_of(data), grower=grower)


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("n_features", [1, 4, 5, 8, 9, 16, 17, 33, 129, 300])
def test_numbers_of_features(grower, n_features):
    data = binned(600, [3 + f % 5 for f in range(n_features)])
    assert_like_the_oracle(data, labels_of(data), grower=grower)


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "poisson"])
@pytest.mark.parametrize("min_samples_leaf", [1, 7])
def test_cells_of_two_and_three_words_in_chunks(objective, min_samples_leaf):
    data = binned(20_000, [6, 4, 9])
    weight = np.random.default_rng(1).uniform(0.1, 3.0, 20_000).astype(np.float32)
    label = (labels_of(data) > 1).astype(np.float32)
    eval_data = binned(700, [6, 4, 9], seed=5)
    assert_like_the_oracle(
        data, label, weight, objective=objective, min_samples_leaf=min_samples_leaf, eval_data=eval_data
    )


@pytest.mark.parametrize("grower", GROWERS)
@pytest.mark.parametrize("histogram_bytes", [0, 3_000, 50_000])
@pytest.mark.parametrize("max_depth", [0, 3])
def test_a_budget_of_histograms_changes_no_bit(grower, histogram_bytes, max_depth):
    data = binned(1_500, [15, 30, 2, 8])
    backend = NativeBackend(2, histogram_bytes=histogram_bytes)
    assert_like_the_oracle(
        data, labels_of(data), backend=backend, grower=grower, max_depth=max_depth, max_leaves=40, gamma=0.01
    )


def test_one_row():
    trees, _ = grow(NativeBackend(2), binned(1, [1, 0]).native, np.float32([3.0]))
    assert [len(tree) for tree in trees] == [1, 1]


# ---- the same bits whatever the process does -------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "poisson"])
@pytest.mark.parametrize("value_bins", [[200, 31, 8], [300, 31, 8]])
def test_every_instruction_set_gives_the_same_bits(objective, value_bins):
    data = binned(5_000, value_bins)
    label = np.abs(labels_of(data)) / 4
    models = [
        bytes_of(grow(NativeBackend(2, instruction_set=name), data.native, label, objective=objective)[0])
        for name in instruction_sets()
    ]
    assert all(model == models[0] for model in models)


@pytest.mark.parametrize("mode", [0x400, 0x800, 0xC00], ids=["downward", "upward", "towards zero"])
def test_the_caller_s_rounding_mode_does_not_matter_and_is_left_as_it_was(mode):
    data = binned(20_000, [50, 9])
    label = labels_of(data)
    plain, _ = grow(NativeBackend(2), data.native, label)
    libm = ctypes.CDLL("libm.so.6")
    assert libm.fesetround(mode) == 0
    try:
        trees, _ = grow(NativeBackend(2), data.native, label)
        kept = libm.fegetround()
    finally:
        libm.fesetround(0)
    assert kept == mode
    assert bytes_of(trees) == bytes_of(plain)


def run_script(script):
    header = "import numpy as np, os, resource, sys, warnings\nfrom tests.engine.backends.test_native import *\n"
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", header + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_a_forked_child_trains_after_its_parent_did():
    out = run_script(
        """
        data = binned(20_000, [50, 9])
        before = bytes_of(grow(NativeBackend(2), data.native, labels_of(data))[0])
        child = os.fork()
        if child == 0:
            same = bytes_of(grow(NativeBackend(2), data.native, labels_of(data))[0]) == before
            os._exit(0 if same else 3)
        print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert out == "child 0\n"


def test_fits_at_the_same_time_do_not_meet():
    sets = [binned(20_000, [50, 9 + i], seed=i) for i in range(4)]

    def fit(data):
        return bytes_of(grow(NativeBackend(3), data.native, labels_of(data))[0])

    alone = [fit(data) for data in sets]
    with ThreadPoolExecutor(len(sets)) as pool:
        assert list(pool.map(fit, sets * 3)) == alone * 3


@pytest.mark.parametrize("grower", GROWERS)
def test_many_more_threads_than_cores(grower):
    data = binned(20_000, [50, 9, 3])
    assert_like_the_oracle(data, labels_of(data), n_threads=64, grower=grower)


def test_a_child_forked_during_a_fit_can_go_on_with_it_or_close_it():
    """Its copy of the fit has no worker threads: nobody may wait for them."""
    out = run_script(
        """
        data = binned(20_000, [50, 9])
        before = bytes_of(grow(NativeBackend(3), data.native, labels_of(data))[0])

        def fork(then):
            child = os.fork()
            if child == 0:
                os._exit(0 if then() else 3)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        def close_and_train():
            backend.close()
            return bytes_of(grow(NativeBackend(3), data.native, labels_of(data))[0]) == before

        def go_on():
            GROWERS["depthwise"](backend)
            backend.end_tree()
            backend.begin_tree(1)
            GROWERS["depthwise"](backend)
            backend.end_tree()
            same = bytes_of(backend.end_fit()) == before
            backend.close()
            return same

        backend = NativeBackend(3)
        backend.begin_fit(data.native, labels_of(data), None, parse_params(GROWN), np.float32(0.25))
        backend.begin_tree(0)
        print(fork(close_and_train), fork(go_on), go_on())
        """
    )
    assert out == "0 0 True\n"


@pytest.mark.parametrize("limit", [0, 1])
def test_threads_that_may_not_spin_give_the_same_bits(limit):
    data = binned(30_000, [50, 9, 200])
    expected = bytes_of(grow(NativeBackend(1), data.native, labels_of(data))[0])
    backend = NativeBackend(3)
    _native.limit_spinning(limit)
    assert bytes_of(grow(backend, data.native, labels_of(data))[0]) == expected


# ---- all rounds of a tree in one call --------------------------------------------------------------------------------

CHOICES = {"depthwise": "every", "leafwise": "best", "levelwise": "common"}


@pytest.mark.parametrize("grower", GROWERS)
def test_rounds_made_one_by_one_give_the_tree_that_one_call_grows(grower):
    data = binned(5_000, [40, 9, 200])
    label = labels_of(data)
    params = parse_params({**GROWN, "grower": grower, "max_leaves": 13})
    backend = NativeBackend(2)
    backend.begin_fit(data.native, label, None, params, np.float32(0.25))
    for index in range(params.n_estimators):
        backend.begin_tree(index)
        for _ in backend.rounds(CHOICES[grower]):
            backend.build_histograms()
            backend.find_splits(CHOICES[grower])
            if backend.plan(CHOICES[grower]) == 0:
                break
            backend.partition()
        backend.end_tree()
    assert bytes_of(backend.end_fit()) == bytes_of(
        grow(NativeBackend(2), data.native, label, grower=grower, max_leaves=13)[0]
    )
    backend.close()


@pytest.mark.parametrize("grower", GROWERS)
def test_a_tree_costs_three_native_calls(grower, monkeypatch):
    calls = []
    begun = NativeBackend._begun

    def counted(backend):
        calls.append(backend)
        return begun(backend)

    monkeypatch.setattr(NativeBackend, "_begun", counted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    model = engine.train({"grower": grower, "n_estimators": 10, "max_leaves": 20}, engine.Dataset(X, X[:, 0] * X[:, 1]))
    assert len(model.forest) == 10
    assert len(calls) == 3 * 10 + 1  # begin_tree, grow, end_tree; end_fit


def test_ctrl_c_ends_a_long_tree_between_two_rounds():
    out = run_script(
        """
        import signal
        data = binned(300_000, [250, 240, 230, 220])
        label = np.random.default_rng(0).normal(size=300_000).astype(np.float32)
        params = parse_params({"grower": "leafwise", "max_depth": 0, "max_leaves": 0, "min_child_weight": 0.0})

        def nodes(interrupted):
            backend = NativeBackend(2)
            backend.begin_fit(data.native, label, None, params, np.float32(0.25))
            backend.begin_tree(0)
            try:
                if interrupted:
                    signal.signal(signal.SIGALRM, signal.default_int_handler)
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                backend.grow("best")
            except KeyboardInterrupt:
                print("KeyboardInterrupt")
            backend.end_tree()
            count = len(backend.end_fit()[0])
            backend.close()
            return count

        print(nodes(True) < nodes(False))
        """
    )
    assert out == "KeyboardInterrupt\nTrue\n"


def test_a_tree_is_grown_by_one_choice():
    data = binned(50, [5])
    backend = NativeBackend(1)
    backend.begin_fit(data.native, labels_of(data), None, parse_params(GROWN), np.float32(0))
    backend.begin_tree(0)
    backend.build_histograms()
    backend.find_splits("best")
    with pytest.raises(RuntimeError, match="grown by one choice"):
        backend.plan("common")
    backend.close()


def test_threads_divide_leaves_ahead_of_their_turn_and_the_tree_is_the_same():
    data = binned(5_000, [40, 30, 20])
    params = parse_params({"grower": "leafwise", "max_depth": 0, "max_leaves": 64})

    def grown(n_threads):
        """The tree's bytes, and how many leaves each round divided."""
        with closing(NativeBackend(n_threads)) as backend:
            backend.begin_fit(data.native, labels_of(data), None, params, np.float32(0))
            backend.begin_tree(0)
            divided = []
            while True:
                backend.build_histograms()
                backend.find_splits("best")
                divided.append(backend.plan("best"))
                if not divided[-1]:
                    break
                backend.partition()
            backend.end_tree()
            return bytes_of(backend.end_fit()), divided

    alone, one_by_one = grown(1)
    together, ahead = grown(2)
    assert together == alone
    assert one_by_one == [1] * 63 + [0]
    assert max(ahead) == 4
    assert len(ahead) < 32
    assert 63 <= sum(ahead) <= 66, "hardly a leaf is divided for nothing"


# ---- failures --------------------------------------------------------------------------------------------------------


def test_memory_that_runs_out_is_a_memory_error_and_the_backend_still_closes():
    out = run_script(
        """
        data = binned(3_000_000, [3])
        label = np.zeros(3_000_000, np.float32)
        used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + 2**24, -1))
        backend = NativeBackend(1)
        try:
            backend.begin_fit(data.native, label, None, parse_params(GROWN), np.float32(0))
        except MemoryError:
            print("MemoryError")
        backend.close()
        """
    )
    assert out == "MemoryError\n"


@pytest.mark.parametrize("n_threads", [1, 3])
def test_wherever_memory_runs_out_the_next_fit_is_right(n_threads):
    """The limit rises by 32 KiB a try, so that it is met by one allocation of a fit after the other."""
    out = run_script(
        f"""
        libc = ctypes.CDLL("libc.so.6")
        for option, value in ((-1, 4096), (-2, 4096), (-3, 4096), (-8, 1)):
            libc.mallopt(option, value)  # malloc keeps nothing back, and has no reserve for threads
        data = binned(40_000, [200] * 8)
        label = labels_of(data)
        fit = lambda: bytes_of(grow(NativeBackend({n_threads}), data.native, label)[0])
        right = fit()
        short = 0
        for room in range(0, 2**22, 2**15):
            used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
            resource.setrlimit(resource.RLIMIT_AS, (used + room, -1))
            try:
                assert fit() == right
            except MemoryError:
                short += 1
            finally:
                resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        assert fit() == right
        print(short)
        """
    )
    assert int(out) >= 10


def test_transactions_out_of_order_are_refused_by_name():
    data = binned(50, [5])
    backend = NativeBackend(1)
    with pytest.raises(SessionError, match="begin_fit comes first"):
        backend.begin_tree(0)
    backend.begin_fit(data.native, labels_of(data), None, parse_params(GROWN), np.float32(0))
    with pytest.raises(SessionError, match="open another one"):
        backend.begin_fit(data.native, labels_of(data), None, parse_params(GROWN), np.float32(0))
    for call in (backend.build_histograms, backend.partition, backend.end_tree):
        with pytest.raises(RuntimeError, match="comes after begin_tree"):
            call()
    backend.begin_tree(0)
    with pytest.raises(RuntimeError, match="begin_tree comes between trees"):
        backend.begin_tree(1)
    with pytest.raises(ValueError, match="'several' is unknown"):
        backend.plan("several")
    backend.close()
    backend.close()
    with pytest.raises(SessionError, match="close last"):
        backend.end_fit()


def test_begin_fit_refuses_what_does_not_fit_the_plane():
    data = binned(50, [5, 4])
    params = parse_params(GROWN)
    good = labels_of(data)
    for label, weight, message in (
        (good[:-1], None, "label has 49 values for 50 rows"),
        (good, good[:3], "weight has 3 values for 50 rows"),
        (good.reshape(5, 10), None, "label must be one-dimensional"),
    ):
        with pytest.raises(ValueError, match=message):
            NativeBackend(1).begin_fit(data.native, label, weight, params, np.float32(0))
    with pytest.raises(ValueError, match="cuts_from"):
        NativeBackend(1).begin_fit(data.native, good, None, params, np.float32(0), [binned(9, [5, 3]).native])
    with pytest.raises(ValueError, match="between 1 and 2147483647 rows, got 0"):
        NativeBackend(1).begin_fit(binned(0, [5]).native, good[:0], None, params, np.float32(0))
    with pytest.raises(ValueError, match="choose baseline, avx2 or avx512"):
        NativeBackend(1, instruction_set="neon").begin_fit(data.native, good, None, params, np.float32(0))


def test_planes_refuse_bins_beyond_the_missing_one():
    with pytest.raises(ValueError, match=r"bin 4 of row 2, feature 1 is beyond its missing bin 3"):
        _native.Plane.from_bins(np.array([[0, 0], [1, 3], [0, 4]], np.uint16), [1, 3])
    with pytest.raises(ValueError, match="one number a column"):
        _native.Plane.from_bins(np.zeros((2, 2), np.uint16), [1])
    with pytest.raises(ValueError, match="between 0 and 65535"):
        _native.Plane.from_bins(np.zeros((2, 1), np.uint16), [65536])


def test_eval_margins_of_a_plane_that_is_not_there():
    data = binned(50, [5])
    backend = NativeBackend(1)
    backend.begin_fit(data.native, labels_of(data), None, parse_params(GROWN), np.float32(0))
    with pytest.raises(IndexError):
        backend.eval_margins(0)
    backend.close()
