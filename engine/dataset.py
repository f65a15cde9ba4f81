"""Features, labels, weights and their bins, made once for many fits. May import columns, cuts, labels, backends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from numbers import Integral
from typing import TYPE_CHECKING, Any

from engine.backends import Plane, open_backend
from engine.columns import Table
from engine.cuts import Cuts
from engine.errors import DataError, ParamError
from engine.labels import check_labels, check_weights

if TYPE_CHECKING:
    from engine.device.ledger import Ledger


class Dataset:
    """Features with their cuts and, if given, labels and weights. Immutable, reusable, safe to share among threads.

    Parameters
    ----------
    X : ndarray, pandas.DataFrame, pyarrow.Table, polars.DataFrame, DLPack or GPU array, shape (n_rows, n_features)
        Floats, integers up to 2^53, booleans; NaN and null are missing. Floating-point NumPy input is not copied:
        do not change it while the data set lives. Nor is float32 or float64 on a GPU: ``device="cuda"`` bins it
        where it lies, and only its cuts are found on the host, a few columns at a time.
    y : array-like, shape (n_rows,), optional
        Finite labels within float32.
    weight : array-like, shape (n_rows,), optional
        Finite, >= 0. Rows of weight zero are dropped before anything else is looked at.
    feature_names : sequence of str, optional
        Unique; default those of the table, else f0, f1, ...
    max_bin : int in [2, 65535]
        Value bins a feature at most.
    cuts_from : Dataset, optional
        Take its cuts and `max_bin`, as an eval set must.

    Attributes
    ----------
    columns : Columns or ResidentColumns
        Without the rows of weight zero; so are `label` and `weight`.
    label, weight : ndarray of float32, shape (n_rows,), or None
    cuts : Cuts
    max_bin : int
    owns_cuts : bool
        Whether the cuts were found in these rows rather than taken from another data set.

    Raises
    ------
    DataError
        Names the column or row, the value and the remedy.
    ParamError
        If `max_bin` is out of range.
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        weight: Any = None,
        feature_names: Sequence[str] | None = None,
        max_bin: int = 255,
        cuts_from: Dataset | None = None,
    ) -> None:
        _check_cut_source(max_bin, cuts_from)
        table = Table.of(X, feature_names)
        if cuts_from is not None:
            table = _named_alike(table, cuts_from)
        self.weight, keep = check_weights(weight, table.n_rows)
        self.columns = table.columns(keep)
        self.label = check_labels(y, table.n_rows, keep)
        self.owns_cuts = cuts_from is None
        self.max_bin = int(max_bin) if cuts_from is None else cuts_from.max_bin
        if cuts_from is None:
            self.cuts = Cuts.find(self.columns, self.weight, self.max_bin)
        else:
            self.columns.check()
            self.cuts = cuts_from.cuts
        self._planes: dict[str, Plane] = {}
        self._lock = threading.Lock()

    @property
    def n_rows(self) -> int:
        """Number of rows of positive weight."""
        return self.columns.n_rows

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """One a feature, unique."""
        return self.columns.names

    def plane(self, device: str, book: Callable[[Ledger | None], None] | None = None) -> Plane:
        """The bins as a device's backend keeps them; made on the first call, then shared by every fit.

        Parameters
        ----------
        device : str
        book : callable, optional
            If this is the call that makes them, given the ledger of that, and of what it took to find the cuts.

        Raises
        ------
        DeviceUnavailableError
            If the device cannot be opened here.
        """
        with self._lock:
            if device not in self._planes:
                with closing(open_backend(device)) as backend:
                    self._planes[device] = backend.ingest(self)
                    if book is not None:
                        book(backend.ledger)
                        book(self.columns.traffic())
            return self._planes[device]

    def made_plane(self, device: str) -> Plane | None:
        """The bins as a device's backend keeps them, if someone has asked for them before."""
        return self._planes.get(device)

    def ingest(self, device: str = "cpu") -> Dataset:
        """Bin now what would be binned by the first fit on `device`; returns the data set itself."""
        self.plane(device)
        return self

    def __repr__(self) -> str:
        labelled = "labelled" if self.label is not None else "unlabelled"
        return f"<Dataset {self.n_rows} x {self.n_features}, {labelled}, max_bin={self.max_bin}>"


def _check_cut_source(max_bin: int, cuts_from: Dataset | None) -> None:
    if isinstance(max_bin, bool) or not isinstance(max_bin, Integral) or not 2 <= max_bin <= 65535:
        raise ParamError(f"max_bin={max_bin!r} must be an integer in [2, 65535]")
    if cuts_from is not None and not isinstance(cuts_from, Dataset):
        raise DataError(f"cuts_from must be an engine.Dataset, got {type(cuts_from).__name__}")


def _named_alike(table: Table, other: Dataset) -> Table:
    """Refuse other columns than those the cuts belong to; a table without names takes theirs."""
    if len(table.parts) != other.n_features:
        raise DataError(f"X has {len(table.parts)} columns, but the data of cuts_from has {other.n_features}")
    if not table.named or not other.columns.named:
        return Table(table.parts, other.feature_names, other.columns.named)
    for position, (own, expected) in enumerate(zip(table.names, other.feature_names, strict=True)):
        if own != expected:
            raise DataError(
                f"column {position} is '{own}', but in the data of cuts_from it is '{expected}': "
                "give the same columns in the same order"
            )
    return table
