"""The whole trainer in plain NumPy, in the order of docs/contract.md: the oracle. May import numerics and below.

Written for reading, and shares no code with the native side. It leaves out every trick that cannot be seen in the
model: each histogram is built from its rows, each candidate of a node is scored at once as one array, and sums that
the contract calls exact are NumPy int64 sums.

Two conventions carry most of the code:

- A node's rows are summed as *totals*: three int64, the quantised gradient, the quantised hessian and the row count.
- Candidates are arrays of shape (feature, bin, side), where side 0 sends missing left and side 1 right. Such an array
  read in C order *is* the tie order of the contract, so ``argmax``, which returns the first of equals, settles ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from engine.backends import Choice
from engine.errors import SessionError
from engine.numerics import counter_hash, exp, floor_log2, saturate, sigmoid
from engine.params import Params
from engine.tree import NODE_DTYPES, Tree

if TYPE_CHECKING:
    from engine.dataset import Dataset

SAMPLE_ROWS = 2**18
SAMPLE_SEED = 0x63757473
LARGEST_FREQUENCY = 7
MISSING = -1
"""Stands for the contract's missing bin: as an index it is the last column of a histogram."""


@dataclass(frozen=True)
class ReferencePlane:
    """Bins of a data set.

    Attributes
    ----------
    bins : ndarray of int32, shape (n_features, n_rows)
        Value bin, or `MISSING`.
    cuts : tuple of ndarray of float64
        Ascending cuts of each feature.
    """

    bins: np.ndarray
    cuts: tuple[np.ndarray, ...]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.bins)

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return self.bins.shape[1]

    @property
    def n_bins(self) -> int:
        """Value bins of the feature that has most; at least 1."""
        return max(len(cuts) for cuts in self.cuts) + 1


class Split(NamedTuple):
    """How a node parts its rows, and the gain of doing so."""

    feature: int
    bin: int
    missing_left: bool
    gain: float


@dataclass(eq=False)
class Node:
    """A node while its tree grows."""

    rows: np.ndarray
    totals: np.ndarray
    depth: int
    histogram: np.ndarray | None = None
    best: Split | None = None
    children: tuple[Node, ...] = ()
    value: np.float32 = field(default=np.float32(0))


class Candidates(NamedTuple):
    """Every way to split one node: arrays of shape (n_features, n_bins, 2)."""

    feasible: np.ndarray
    score_children: np.ndarray
    score_own: float

    def gain(self, gamma: float) -> np.ndarray:
        """Gain of each candidate (contract §7)."""
        return 0.5 * (self.score_children - self.score_own) - gamma


class ReferenceBackend:
    """The transactions of `engine.backends.Backend`, one node and one feature at a time."""

    ledger = None

    def __init__(self, n_threads: int = 0) -> None:
        self.close()

    def ingest(self, dataset: Dataset) -> ReferencePlane:
        """Find cuts, unless the data set was built on another's, and bin every value (contract §3)."""
        arrays = dataset.columns.arrays
        if dataset.owns_cuts:
            sample = quantile_sample(dataset.n_rows)
            weight = quantile_weights(dataset.weight, dataset.n_rows)
            cuts = tuple(find_cuts(values, weight, sample, dataset.max_bin) for values in arrays)
        else:
            cuts = tuple(dataset.cuts.of(feature) for feature in range(len(arrays)))
        bins = np.stack([bin_values(values, own) for values, own in zip(arrays, cuts, strict=True)])
        return ReferencePlane(bins, cuts)

    def begin_fit(
        self,
        plane: ReferencePlane,
        label: np.ndarray,
        weight: np.ndarray | None,
        params: Params,
        base_margin: np.float32,
        eval_planes: Sequence[ReferencePlane] = (),
    ) -> None:
        """Every margin starts at `base_margin`."""
        if self._plane is not None:
            raise SessionError("this backend has a fit already: open another one")
        self._plane, self._eval_planes = plane, tuple(eval_planes)
        self._label, self._weight, self._params = label, weight, params
        self._margin = np.full(plane.n_rows, base_margin, np.float32)
        self._eval_margins = [np.full(other.n_rows, base_margin, np.float32) for other in eval_planes]

    def tune(self) -> None:
        """Nothing to measure."""

    def rounds(self, choice: Choice) -> Iterable[None]:
        """As many as `plan` finds something to split in."""
        return repeat(None)

    def grow(self, choice: Choice) -> None:
        """Nothing: rounds are the caller's."""

    def begin_tree(self, index: int) -> None:
        """Gradients, quantised once (contract §5, §6); the root is the only open node."""
        repeats, weight = repetitions(self._weight, self._plane.n_rows)
        g, h = gradients(self._params.objective, self._margin, self._label, weight)
        quantised_g, exponent_g = quantise(g)
        quantised_h, exponent_h = quantise(h)
        self._scorer = Scorer(self._params, exponent_g, exponent_h)
        ones = np.ones(len(g), np.int64)
        self._totals_of_row = np.stack([quantised_g * repeats, np.maximum(1, quantised_h) * repeats, ones], axis=1)
        self._root = self._new_node(np.arange(len(g)), depth=0)
        self._open = self._new = [self._root]
        self._leaves, self._levels = 1, 0

    def build_histograms(self) -> None:
        """Totals of the new nodes' rows, for each feature and bin."""
        for node in self._new:
            node.histogram = build_histogram(self._plane, self._totals_of_row, node.rows)

    def find_splits(self, choice: Choice) -> None:
        """Contract §8 for each new node, or the levelwise rule of §9 for the whole frontier."""
        if choice == "common":
            find_common_split(self._open, self._scorer)
        else:
            for node in self._new:
                node.best = find_best_split(node, self._scorer)

    def plan(self, choice: Choice) -> int:
        """Choose what splits now, within max_depth and max_leaves (contract §9)."""
        max_depth, max_leaves = self._params.max_depth, self._params.max_leaves
        room = max_leaves - self._leaves if max_leaves else len(self._open)
        shallow = [node for node in self._open if not max_depth or node.depth < max_depth]
        splittable = [node for node in shallow if node.best is not None]
        by_gain = sorted(splittable, key=lambda node: -node.best.gain)  # stable: equal gains keep the open order
        if choice == "every":
            self._planned = by_gain[:room]
        elif choice == "best":
            self._planned = by_gain[: min(room, 1)]
        else:
            another_level = (not max_depth or self._levels < max_depth) and len(splittable) <= room
            self._planned = splittable if another_level else []
        self._choice = choice
        return len(self._planned)

    def partition(self) -> None:
        """Give the planned nodes children, and open these: see `still_open`."""
        for node in self._planned:
            left = goes_left(self._plane, node.rows, node.best)
            node.children = tuple(self._new_node(node.rows[side], node.depth + 1) for side in (left, ~left))
        self._open = still_open(self._open, self._choice)
        self._new = [node for node in self._open if node.histogram is None]
        self._leaves += len(self._planned)
        self._levels += 1

    def end_tree(self) -> None:
        """Give the leaves their values, add them to every margin (contract §10), keep the tree (§11)."""
        nodes = breadth_first(self._root)
        for node in nodes:
            if not node.children:
                node.value = self._scorer.leaf_value(node)
        add_leaf_values(self._margin, self._plane, self._root)
        for margin, plane in zip(self._eval_margins, self._eval_planes, strict=True):
            add_leaf_values(margin, plane, self._root)
        self._trees.append(flatten(nodes, self._scorer))
        self._root, self._open, self._new, self._planned = None, [], [], []

    def eval_margins(self, index: int) -> np.ndarray:
        """Current float32 margins of one eval plane."""
        return self._eval_margins[index].copy()

    def end_fit(self) -> list[Tree]:
        """All trees; thresholds are the session's."""
        return self._trees

    def close(self) -> None:
        """Forget everything."""
        self._plane = self._label = self._weight = self._params = None
        self._scorer = self._totals_of_row = self._margin = self._root = None
        self._eval_planes, self._eval_margins, self._trees = (), [], []
        self._open, self._new, self._planned = [], [], []

    def _new_node(self, rows: np.ndarray, depth: int) -> Node:
        return Node(rows, self._totals_of_row[rows].sum(axis=0), depth)


# ---- cuts and bins (contract §3) -------------------------------------------------------------------------------------


def quantile_sample(n_rows: int) -> np.ndarray:
    """Row numbers from which quantiles are taken: all of them, or one at random from each of 2^18 strata."""
    if n_rows <= SAMPLE_ROWS:
        return np.arange(n_rows)
    strata = np.arange(SAMPLE_ROWS + 1, dtype=np.int64) * n_rows // SAMPLE_ROWS
    low, size = strata[:-1], np.diff(strata)
    offset = counter_hash(SAMPLE_SEED, np.arange(SAMPLE_ROWS), 0) % size.astype(np.uint64)
    return low + offset.astype(np.int64)


def quantile_weights(weight: np.ndarray | None, n_rows: int) -> np.ndarray:
    """Weights of all rows as int64."""
    if weight is None:
        return np.ones(n_rows, np.int64)
    return np.maximum(1, quantise(weight)[0])


def find_cuts(values: np.ndarray, weight: np.ndarray, sample: np.ndarray, max_bin: int) -> np.ndarray:
    """Ascending cuts of one feature.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (n_rows,)
        NaN is missing.
    weight : ndarray of int64, shape (n_rows,)
        From `quantile_weights`.
    sample : ndarray of int64
        From `quantile_sample`.
    max_bin : int

    Returns
    -------
    ndarray of float64
    """
    values = values.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) <= max_bin:
        return midpoints(distinct, np.arange(len(distinct) - 1))
    sample = sample[~np.isnan(values[sample])]
    distinct, position = np.unique(values[sample], return_inverse=True)
    if len(distinct) <= max_bin:
        return midpoints(distinct, np.arange(len(distinct) - 1))
    cumulative = np.zeros(len(distinct), np.int64)
    np.add.at(cumulative, position, weight[sample])
    return midpoints(distinct, last_values_of_bins(cumulative.cumsum(), max_bin))


def last_values_of_bins(cumulative: np.ndarray, max_bin: int) -> list[int]:
    """Positions i such that a cut lies between distinct values i and i + 1.

    Each bin takes the share nearest to an even split of what is left. Python integers: nothing overflows.
    """
    positions, start, base, total = [], 0, 0, int(cumulative[-1])
    for bins_left in range(max_bin, 1, -1):
        remaining = total - base
        # The first i with (C[i] - base) * bins_left >= remaining.
        i = int(np.searchsorted(cumulative, base - (-remaining // bins_left)))
        if i > start:
            over = (int(cumulative[i]) - base) * bins_left - remaining
            under = remaining - (int(cumulative[i - 1]) - base) * bins_left
            i -= over > under
        if i == len(cumulative) - 1:
            break
        positions.append(i)
        base, start = int(cumulative[i]), i + 1
    return positions


def midpoints(distinct: np.ndarray, positions: Sequence[int]) -> np.ndarray:
    """Cuts between the distinct values at each position and the next; the upper one where no double lies between."""
    positions = np.asarray(positions, np.int64)
    if not positions.size:
        return np.empty(0, np.float64)
    low, high = distinct[positions], distinct[positions + 1]
    middle = 0.5 * low + 0.5 * high
    return np.where((low < middle) & (middle <= high), middle, high)


def bin_values(values: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """Number of cuts ``<= x`` for each value x, or `MISSING`."""
    values = values.astype(np.float64)
    return np.where(np.isnan(values), MISSING, np.searchsorted(cuts, values, side="right")).astype(np.int32)


# ---- gradients and quantising (contract §5, §6) ----------------------------------------------------------------------


def gradients(
    objective: str, margin: np.ndarray, label: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative of each row's loss in its margin, in double, cast to float32 saturating."""
    m, y = margin.astype(np.float64), label.astype(np.float64)
    if objective == "squared_error":
        g, h = m - y, np.ones_like(m)
    elif objective == "logistic":
        p = sigmoid(m)
        g, h = p - y, np.maximum(p * (1.0 - p), 1e-16)
    elif objective == "poisson":
        mu = exp(np.clip(m, -80.0, 80.0))
        g, h = mu - y, mu
    if weight is not None:
        w = weight.astype(np.float64)
        g, h = g * w, h * w
    return saturate(g), saturate(h)


def repetitions(weight: np.ndarray | None, n_rows: int) -> tuple[np.ndarray, np.ndarray | None]:
    """How often each row counts, as int64, and the weights that are left to multiply its gradients.

    Weights that are all whole numbers up to 7 are repetitions; otherwise every row counts once.
    """
    if weight is not None and (weight <= LARGEST_FREQUENCY).all() and (weight == np.rint(weight)).all():
        return weight.astype(np.int64), None
    return np.ones(n_rows, np.int64), weight


def quantise(values: np.ndarray) -> tuple[np.ndarray, int]:
    """float32 values as integers of at most 28 bits, and the exponent e in ``q = rint(value * 2**e)``."""
    largest = np.abs(values).max()
    exponent = 27 - floor_log2(largest) if largest > 0 else 0
    return np.rint(np.ldexp(values.astype(np.float64), exponent)).astype(np.int64), exponent


# ---- scores and the best split (contract §7, §8) ---------------------------------------------------------------------


class Scorer:
    """Scores of one tree: the parameters, and the exponents by which its sums were quantised."""

    def __init__(self, params: Params, exponent_g: int, exponent_h: int) -> None:
        self._params, self._exponent_g, self._exponent_h = params, exponent_g, exponent_h
        self.gamma = params.gamma

    def gradient(self, totals: np.ndarray) -> np.ndarray:
        """G as a double; `totals` of any shape (..., 3)."""
        return np.ldexp(totals[..., 0].astype(np.float64), -self._exponent_g)

    def hessian(self, totals: np.ndarray) -> np.ndarray:
        """H as a double."""
        return np.ldexp(totals[..., 1].astype(np.float64), -self._exponent_h)

    def score(self, totals: np.ndarray) -> np.ndarray:
        """What a node with these totals takes off the loss, doubled."""
        soft = self._soft(self.gradient(totals))
        with np.errstate(divide="ignore", invalid="ignore"):  # H + lambda is 0 only where nothing is feasible
            return (soft * soft) / (self.hessian(totals) + self._params.reg_lambda)

    def leaf_value(self, node: Node) -> np.float32:
        """What the node adds to the margin of its rows, as a leaf."""
        weight = -self._soft(self.gradient(node.totals)) / (self.hessian(node.totals) + self._params.reg_lambda)
        return np.float32(saturate(self._params.learning_rate * weight))

    def candidates(self, node: Node) -> Candidates:
        """Score every candidate of a node.

        Bins past a feature's last one are empty: a split there repeats the last bin's, and loses the tie to it.
        """
        present, missing = node.histogram[:, :-1].cumsum(axis=1), node.histogram[:, -1:]
        left = np.stack([present + missing, present], axis=2)
        right = node.totals - left
        feasible = self._feasible(left) & self._feasible(right)
        return Candidates(feasible, self.score(left) + self.score(right), float(self.score(node.totals)))

    def _feasible(self, totals: np.ndarray) -> np.ndarray:
        enough_rows = totals[..., 2] >= self._params.min_samples_leaf
        return (totals[..., 1] > 0) & enough_rows & (self.hessian(totals) >= self._params.min_child_weight)

    def _soft(self, g: np.ndarray) -> np.ndarray:
        alpha = self._params.reg_alpha
        return np.where(g > alpha, g - alpha, np.where(g < -alpha, g + alpha, 0.0))


def build_histogram(plane: ReferencePlane, totals_of_row: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Totals of a node's rows by feature and bin: int64 of shape (n_features, n_bins + 1, 3), missing last."""
    histogram = np.zeros((plane.n_features, plane.n_bins + 1, 3), np.int64)
    for feature in range(plane.n_features):
        np.add.at(histogram[feature], plane.bins[feature, rows], totals_of_row[rows])
    return histogram


def find_best_split(node: Node, scorer: Scorer) -> Split | None:
    """The valid candidate of largest gain, or None."""
    candidates = scorer.candidates(node)
    split = first_of_largest(candidates.gain(scorer.gamma), candidates.feasible)
    return None if split is None else with_unseen_missing(split, [node], [node])


def with_unseen_missing(split: Split, nodes: Sequence[Node], divided: Sequence[Node]) -> Split:
    """If no row of the nodes is missing there, missing met later goes to the heavier side of the divided ones."""
    if any(node.histogram[split.feature, MISSING, 2] for node in nodes):
        return split
    left = sum(node.histogram[split.feature, : split.bin + 1, 1].sum() for node in divided)
    own = sum(node.totals[1] for node in divided)
    return split._replace(missing_left=bool(left >= own - left))


def first_of_largest(gain: np.ndarray, feasible: np.ndarray) -> Split | None:
    """The split of largest finite positive gain among the feasible: the first one of equals, or None."""
    valid = feasible & np.isfinite(gain) & (gain > 0.0)
    if not valid.any():
        return None
    feature, bin_, side = np.unravel_index(np.argmax(np.where(valid, gain, -np.inf)), gain.shape)
    return Split(int(feature), int(bin_), bool(side == 0), float(gain[feature, bin_, side]))


# ---- growth (contract §9) --------------------------------------------------------------------------------------------


def find_common_split(frontier: Sequence[Node], scorer: Scorer) -> None:
    """Set `best` of each node in the frontier to the level's one cut, or to None where that cut cannot split it."""
    gamma = scorer.gamma
    of_node = [scorer.candidates(node) for node in frontier]
    split, whole, feasible_nodes = 0.0, 0.0, 0
    for own in of_node:  # in node order: these are float sums
        split = split + np.where(own.feasible, own.score_children, own.score_own)
        whole = whole + own.score_own
        feasible_nodes = feasible_nodes + own.feasible
    common = first_of_largest(0.5 * (split - whole) - gamma * feasible_nodes, feasible_nodes >= 1)
    for node in frontier:
        node.best = None
    if common is not None:
        at = (common.feature, common.bin, 0 if common.missing_left else 1)
        divided = [(node, own) for node, own in zip(frontier, of_node, strict=True) if own.feasible[at]]
        common = with_unseen_missing(common, frontier, [node for node, _ in divided])
        for node, own in divided:
            node.best = common._replace(gain=float(own.gain(gamma)[at]))


def still_open(nodes: Sequence[Node], choice: Choice) -> list[Node]:
    """The open nodes after a partition, in the order that settles ties.

    - every: the children, left to right; who was passed over is a leaf for good.
    - best: the older leaves, then the two children: the order of creation.
    - common: the frontier from left to right, with children in their parent's place.
    """
    children = [child for node in nodes for child in node.children]
    if choice == "every":
        return children
    if choice == "best":
        return [node for node in nodes if not node.children] + children
    return [member for node in nodes for member in (node.children or (node,))]


# ---- partition, margins, the finished tree (contract §10, §11) -------------------------------------------------------


def goes_left(plane: ReferencePlane, rows: np.ndarray, split: Split) -> np.ndarray:
    """Which of the rows go to the left child."""
    bins = plane.bins[split.feature, rows]
    return np.where(bins == MISSING, split.missing_left, bins <= split.bin)


def add_leaf_values(margin: np.ndarray, plane: ReferencePlane, root: Node) -> None:
    """Route the plane's rows through a tree and add the value of the leaf that each one reaches."""
    arriving = [(root, np.arange(plane.n_rows))]
    for node, rows in arriving:
        if node.children:
            left = goes_left(plane, rows, node.best)
            arriving += [(node.children[0], rows[left]), (node.children[1], rows[~left])]
        else:
            with np.errstate(over="ignore"):  # a margin past float32 is infinite, and its gradient saturates
                margin[rows] += node.value


def breadth_first(root: Node) -> list[Node]:
    """Nodes level by level, left to right."""
    nodes = [root]
    for node in nodes:
        nodes += node.children
    return nodes


def flatten(nodes: Sequence[Node], scorer: Scorer) -> Tree:
    """The finished tree's arrays from its nodes, breadth first; a leaf's split fields hold -1 or 0."""
    number = {node: index for index, node in enumerate(nodes)}
    leaf_split = Split(feature=-1, bin=-1, missing_left=False, gain=0.0)
    splits = [node.best if node.children else leaf_split for node in nodes]
    children = [[number[child] for child in node.children] or [-1, -1] for node in nodes]
    arrays = {
        "feature": [split.feature for split in splits],
        "bin": [split.bin for split in splits],
        "threshold": [0.0 for _ in nodes],
        "missing_left": [split.missing_left for split in splits],
        "left": [left for left, _ in children],
        "right": [right for _, right in children],
        "leaf": [not node.children for node in nodes],
        "value": [node.value for node in nodes],
        "gain": [split.gain for split in splits],
        "cover": [scorer.hessian(node.totals) for node in nodes],
        "count": [node.totals[2] for node in nodes],
    }
    return Tree(**{name: np.array(arrays[name], dtype) for name, dtype in NODE_DTYPES.items()})
