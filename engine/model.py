"""A fitted model: predicts, explains its trees, goes to a file and back. May import dataset, predictor and below.

The file holds what the model is, nothing of where or how fast it was trained: `history` and `profile` stay in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from engine import modelfile
from engine.columns import Columns
from engine.dataset import Dataset
from engine.errors import DataError, ModelError, ParamError
from engine.forest import Forest
from engine.params import Params, parse_params
from engine.predictor import Predictor, is_matrix
from engine.tree import NODE_DTYPES

if TYPE_CHECKING:
    import pandas as pd

    from engine.backends import Plane

_HEADER_KEYS = {"base_margin", "feature_names", "params"}


@dataclass(eq=False)
class Model:
    """Trees and all that is needed to use them.

    Attributes
    ----------
    forest : Forest
    params : Params
        As trained with; a loaded model has the default `device` and `n_threads`, which its file does not hold.
    base_margin : float32
        What every row's margin starts from.
    feature_names : tuple of str
    history : dict of str to list of float
        Metrics of every round; empty without an eval set or when loaded.
    profile : dict
        What each phase of the fit cost (`engine.profile`); empty when loaded.
    """

    forest: Forest
    params: Params
    base_margin: np.float32
    feature_names: tuple[str, ...]
    history: dict[str, list[float]] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self.base_margin = np.float32(self.base_margin)
        self.feature_names = tuple(self.feature_names)
        if not np.isfinite(self.base_margin):
            raise ModelError(f"base margin {self.base_margin} is not finite")
        if not self.feature_names or not all(isinstance(name, str) for name in self.feature_names):
            raise ModelError("a model needs the names of its features, as str")
        used = self.forest.feature.max(initial=-1)
        if used >= self.n_features:
            raise ModelError(f"a tree splits on feature {used}, but the model has {self.n_features} features")
        self._predictor = Predictor(self.forest)

    def __repr__(self) -> str:
        return f"Model({self.params.objective}, {len(self.forest)} trees, {self.n_features} features)"

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def best_iteration(self) -> int:
        """Index of the last tree, which early stopping makes the best round's."""
        return len(self.forest) - 1

    def predict(
        self,
        X: Any,
        output: Literal["response", "margin"] = "response",
        n_threads: int = 0,
        device: Literal["cpu", "cuda", "emulated"] = "cpu",
    ) -> np.ndarray:
        """Predict rows.

        Parameters
        ----------
        X : array, DataFrame, Table or Dataset, shape (n_rows, n_features)
            What `engine.Dataset` takes; NaN is missing. If it carries column names, they must be the model's.
            A `Dataset` answers for its rows of positive weight, and faster if the model was trained on its cuts and
            the CPU's bins are there already; its own columns stay as they are.
        output : {"response", "margin"}
            The objective's own scale (mean, probability), or the raw sum of the trees.
        n_threads : int
            0 is as many as this process may use; never changes a bit.
        device : {"cpu", "cuda", "emulated"}
            Where the trees are walked, wherever the model was trained; never changes a bit.

        Returns
        -------
        ndarray, shape (n_rows,)
            float64 response or float32 margin.

        Raises
        ------
        DataError
            If the features do not match the model's, or a value is infinite.
        ParamError
            If `output` is unknown.
        DeviceUnavailableError
            If the device is not there.
        """
        if output not in ("response", "margin"):
            raise ParamError(f"output={output!r} is unknown; choose 'response' or 'margin'")
        return self._sums(X, n_threads, device, "" if output == "margin" else self.params.objective)

    def predict_leaf(self, X: Any, n_threads: int = 0) -> np.ndarray:
        """The leaf each row reaches: node indices within each tree, int32, shape (n_rows, n_trees)."""
        rows = self._rows(X)
        if rows is None:
            return np.empty((0, len(self.forest)), dtype=np.int32)
        plane = _bins_at_hand(X)
        found = None if plane is None else self._predictor.leaves_of_bins(plane, X.cuts, n_threads)
        return self._predictor.leaves(rows, n_threads) if found is None else found

    def feature_importance(self, kind: Literal["gain", "split", "cover"] = "gain") -> pd.Series:
        """What each feature contributed, by name, in the order of the features.

        Parameters
        ----------
        kind : {"gain", "split", "cover"}
            Sum of the gains of its splits; number of its splits; sum of the hessians that passed them.
            A gain sum may be negative with ``levelwise``, whose common cut need not suit every node.

        Returns
        -------
        pandas.Series of float64
            Summed in node order, so the same everywhere.
        """
        import pandas as pd

        if kind not in ("gain", "split", "cover"):
            raise ParamError(f"kind={kind!r} is unknown; choose 'gain', 'split' or 'cover'")
        inner = self.forest.leaf == 0
        weights = None if kind == "split" else getattr(self.forest, kind)[inner]
        total = np.bincount(self.forest.feature[inner], weights, minlength=self.n_features)
        return pd.Series(total.astype(np.float64), index=list(self.feature_names), name=kind)

    def trees_to_frame(self) -> pd.DataFrame:
        """One row a node: its tree, its index there, then its arrays, with the feature's name for its index.

        A leaf's ``feature`` is None; its ``left`` and ``right`` are -1.
        """
        import pandas as pd

        names = np.array([*self.feature_names, None], dtype=object)
        nodes = {name: getattr(self.forest, name) for name in NODE_DTYPES}
        nodes["feature"] = names[self.forest.feature]
        for flag in ("missing_left", "leaf"):
            nodes[flag] = nodes[flag].astype(bool)
        return pd.DataFrame({"tree": self.forest.tree_of_node(), "node": self.forest.node_in_tree(), **nodes})

    def to_bytes(self) -> bytes:
        """The model file's content; the same bytes for the same model, wherever it was trained."""
        header = {
            "base_margin": float(self.base_margin),
            "feature_names": list(self.feature_names),
            "params": self.params.identity(),
        }
        return modelfile.pack(header, self.forest.arrays())

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Read what `to_bytes` wrote.

        Raises
        ------
        ModelError
            With the reason, if anything about it is not exactly right.
        """
        header, arrays = modelfile.unpack(bytes(data))
        _same_keys("header", header, _HEADER_KEYS)
        _same_keys("arrays", arrays, {*NODE_DTYPES, "offsets"})
        names = header["feature_names"]
        if not isinstance(names, list):
            raise ModelError("the model file's feature_names are not a list")
        return cls(Forest(**arrays), _params(header["params"]), _float32(header["base_margin"]), tuple(names))

    def save(self, path: str | os.PathLike) -> None:
        """Write the model file, entirely or not at all; `OSError` names the file and the remedy."""
        modelfile.write_whole(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike) -> Model:
        """Read a model file; `ModelError` names the file and what is wrong with it."""
        data = Path(path).read_bytes()
        try:
            return cls.from_bytes(data)
        except ModelError as error:
            raise ModelError(f"{os.fspath(path)}: {error}") from error

    def __reduce__(self) -> tuple[Callable, tuple[bytes], dict[str, Any]]:
        in_memory = {"params": self.params, "history": self.history, "profile": self.profile}
        return Model.from_bytes, (self.to_bytes(),), in_memory

    def _sums(self, X: Any, n_threads: int, device: str, response_of: str) -> np.ndarray:
        rows = self._rows(X)
        if rows is None:
            return np.empty(0, dtype=np.float64 if response_of else np.float32)
        plane = _bins_at_hand(X) if device == "cpu" else None
        found = None
        if plane is not None:
            found = self._predictor.margins_of_bins(plane, X.cuts, self.base_margin, n_threads, response_of)
        if found is None:
            found = self._predictor.margins(rows, self.base_margin, n_threads, device, response_of)
        return found

    def _rows(self, X: Any) -> Columns | np.ndarray | None:
        """The rows to predict, checked against the model's features; None if there are none."""
        if is_matrix(X) and X.shape[1] == self.n_features:
            return X
        shape = getattr(X, "shape", ())
        if len(shape) == 2 and shape[0] == 0:
            columns, n_features, names = None, shape[1], _names_of_empty(X)
        else:
            columns = _columns(X)
            n_features, names = len(columns), columns.names if columns.named else None
        if n_features != self.n_features:
            raise DataError(f"X has {n_features} features, but the model expects {self.n_features}")
        if names is not None and names != self.feature_names:
            raise DataError(_first_difference(names, self.feature_names))
        return columns


def _columns(X: Any) -> Columns:
    if isinstance(X, Dataset):
        return X.columns
    return X if isinstance(X, Columns) else Columns.of(X)


def _bins_at_hand(X: Any) -> Plane | None:
    """The CPU's bins of a data set, if a fit has made them already."""
    return X.made_plane("cpu") if isinstance(X, Dataset) else None


def _names_of_empty(X: Any) -> tuple[str, ...] | None:
    """The names that a DataFrame or Table without rows carries; `Columns` takes none that is empty."""
    for attribute in ("columns", "column_names"):
        names = getattr(X, attribute, None)
        if names is not None and all(isinstance(name, str) for name in names):
            return tuple(names)
    return None


def _first_difference(given: tuple[str, ...], expected: tuple[str, ...]) -> str:
    at = next(i for i, pair in enumerate(zip(given, expected, strict=True)) if pair[0] != pair[1])
    remedy = "reorder the columns" if sorted(given) == sorted(expected) else "rename them, or pass an array"
    return f"feature {at} of X is {given[at]!r}, but the model was trained with {expected[at]!r} there: {remedy}"


def _same_keys(what: str, found: dict[str, Any], wanted: set[str]) -> None:
    if set(found) != wanted:
        unknown, missing = sorted(set(found) - wanted), sorted(wanted - set(found))
        raise ModelError(f"the model file's {what} do not fit: unknown {unknown}, missing {missing}")


def _params(values: Any) -> Params:
    try:
        params = parse_params(values)
    except (ParamError, TypeError, ValueError) as error:
        raise ModelError(f"the model file's parameters are not valid: {error}") from error
    if params.identity() != values:
        raise ModelError("the model file's parameters are incomplete or name a device")
    return params


def _float32(value: Any) -> np.float32:
    with np.errstate(over="ignore"):
        narrow = np.float32(value) if isinstance(value, float) else np.float32(np.nan)
    if not np.isfinite(narrow) or float(narrow) != value:
        raise ModelError(f"the model file's base margin {value!r} is not a float32")
    return narrow
