"""How much device memory a fit takes, before any work. May import backends, dataset and what lies below."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.backends.device_plane import ingest_bytes, plane_bytes
from engine.backends.raw_chunks import uploaded_width
from engine.backends.resident_shape import FitShape, fit_bytes
from engine.cuts import NARROW_BINS
from engine.dataset import Dataset
from engine.device.memory import explain, readable
from engine.errors import DataError
from engine.params import Params, parse_params


@dataclass(frozen=True)
class MemoryEstimate:
    """Device memory of one fit; prints as what a person wants to know.

    Attributes
    ----------
    planes : dict of int
        Bytes of the data sets' bins by buffer: they stay for as long as the data sets are used.
    ingest : dict of int
        Bytes by buffer while the largest data set is binned.
    fit : dict of int
        Bytes by buffer from the fit's begin to its end.
    """

    planes: dict[str, int]
    ingest: dict[str, int]
    fit: dict[str, int]

    @property
    def peak(self) -> int:
        """The most that is taken at once, but for what CUDA itself keeps for a process."""
        return sum(self.planes.values()) + max(sum(self.ingest.values()), sum(self.fit.values()))

    def __str__(self) -> str:
        return f"{readable(self.peak)} at the most; {explain({**self.planes, **self.fit})}"


def estimate_memory(
    params: Params | dict[str, Any] | None,
    shape: Dataset | tuple[int, int],
    *,
    weighted: bool = False,
    eval_set: Sequence[Dataset] | Sequence[int] | Dataset | int = (),
) -> MemoryEstimate:
    """What a fit takes on a device with kernels.

    Parameters
    ----------
    params : Params or dict, optional
    shape : Dataset or (n_rows, n_features)
        A data set gives exact numbers; a shape those of float32 features that all have ``max_bin`` value bins.
    weighted : bool
        Whether there will be weights; a data set knows.
    eval_set : Dataset or rows, or a sequence of them

    Returns
    -------
    MemoryEstimate

    Raises
    ------
    ParamError, DataError
        If the parameters are invalid, or the shape is no shape.

    Examples
    --------
    >>> print(engine.estimate_memory({"max_depth": 8}, (16_777_216, 128)))
    """
    params = parse_params(params)
    data = shape if isinstance(shape, Dataset) else None
    n_rows, value_bins = (data.n_rows, data.cuts.value_bins) if data else _largest(params, shape)
    eval_rows = _rows(eval_set)
    wide = bool((value_bins > NARROW_BINS).any())
    n_features = len(value_bins)
    n_cuts = len(data.cuts.values) if data else int((value_bins - 1).sum())
    width = uploaded_width(data.columns, _place(params, data)) if data else 4
    if data:
        weighted = data.weight is not None and bool((data.weight != 1).any())
    rows_of_planes = (n_rows, *eval_rows)
    planes = [plane_bytes(rows, n_features, wide) for rows in rows_of_planes]
    return MemoryEstimate(
        {name: sum(plane[name] for plane in planes) for name in planes[0]},
        ingest_bytes(max(rows_of_planes), n_features, n_cuts, width),
        fit_bytes(FitShape(params, n_rows, value_bins, weighted, eval_rows)),
    )


def _largest(params: Params, shape: tuple[int, int]) -> tuple[int, np.ndarray]:
    """Rows, and value bins of features that use all they may."""
    try:
        n_rows, n_features = (int(size) for size in shape)
    except (TypeError, ValueError):
        raise DataError(f"shape {shape!r} must be a Dataset or (n_rows, n_features)") from None
    if n_rows < 1 or n_features < 1:
        raise DataError(f"shape {shape!r} must have at least one row and one column")
    return n_rows, np.full(n_features, min(params.max_bin, n_rows), np.int32)


def _place(params: Params, data: Dataset) -> str:
    """Where the fit will be: of several GPUs the one where the data set lies, if it lies on one."""
    place = data.columns.place or ""
    return place if place.partition(":")[0] == params.device else params.device


def _rows(eval_set: Any) -> tuple[int, ...]:
    sets = (eval_set,) if isinstance(eval_set, Dataset | int) else tuple(eval_set)
    return tuple(data.n_rows if isinstance(data, Dataset) else int(data) for data in sets)
