"""Seeded synthetic tasks of any size, generated in chunks. May import NumPy and Task.

Every chunk has a generator of its own, so a task's first rows do not depend on how many follow.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ladders.data.task import Shape, Task

CHUNK = 65_536
CHUNK_CELLS = 2**26
"""A chunk of very wide rows has fewer of them: 256 MiB are drawn at a time, whatever the shape."""

MSD_TRAIN, MSD_TEST = 463_715, 51_630
MSD_MEANS, MSD_COVARIANCES = 12, 78

TALL_INFORMATIVE = 20
TALL_MOST_TEST_ROWS = 500_000
TALL_NOISE_SHARE = 1 / 3

TRAIN, TEST = 1, 2
"""The parts, as they stand in the seeds of their chunks; 0 is the law's own."""

Chunk = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def make_msd_shaped(*, scale: float = 1.0, seed: int = 42, label: str = "value") -> Task:
    """Shaped like YearPredictionMSD: 463,715 + 51,630 rows of 12 means and 78 covariances, and a skewed label.

    Songs are described by 12 loudness-like means that share a few latent factors, and by products of pairs of them:
    so the columns are correlated, heavy-tailed, and their scales differ by four orders of magnitude. The label is a
    year: a smooth non-linear function of the factors, squeezed towards the recent end, with noise.

    Parameters
    ----------
    scale : float in (0, 1]
        Share of the rows.
    seed : int
    label : {"value", "above-median"}
        The year; or 1 where it is above its median, else 0.

    Raises
    ------
    ValueError
        For another label.
    """
    law = np.random.default_rng([seed, 0])
    n_factors = 6
    mixing = law.normal(size=(n_factors, MSD_MEANS)) / np.sqrt(n_factors)
    own_share = law.uniform(0.3, 0.8, MSD_MEANS)
    centre = law.normal(0.0, 20.0, MSD_MEANS)
    scales = np.geomspace(50.0, 5.0, MSD_MEANS)
    pairs = np.array([(i, j) for i in range(MSD_MEANS) for j in range(i, MSD_MEANS)])
    pair_scales = 10.0 ** law.uniform(0.0, 4.0, MSD_COVARIANCES)
    weights = law.normal(size=n_factors)
    pair_weights = law.normal(size=MSD_COVARIANCES) / np.sqrt(MSD_COVARIANCES)

    def chunk(draw: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        factors = draw.normal(size=(n, n_factors))
        means = factors @ mixing + own_share * draw.normal(size=(n, MSD_MEANS))
        spread = means * np.exp(0.3 * draw.normal(size=(n, MSD_MEANS)))
        products = spread[:, pairs[:, 0]] * spread[:, pairs[:, 1]] + 0.5 * draw.normal(size=(n, MSD_COVARIANCES))
        signal = np.tanh(factors @ weights / 2) + np.sin(means[:, 0] * 2) * 0.5 + np.tanh(products @ pair_weights)
        year = 2011 - 9 * np.log1p(np.exp(-1.2 * signal + 0.9 * draw.normal(size=n)))
        return np.concatenate([centre + scales * means, pair_scales * products], axis=1), year

    names = tuple(f"mean_{i}" for i in range(MSD_MEANS)) + tuple(f"covariance_{i}_{j}" for i, j in pairs)
    return _generate(_labelled(chunk, seed, label, CHUNK), seed, msd_shaped_shape(scale=scale), names, CHUNK)


def msd_shaped_shape(*, scale: float = 1.0, seed: int = 42, label: str = "value") -> Shape:
    """Rows and columns that `make_msd_shaped` will give."""
    return Shape(*(max(1, round(n * scale)) for n in (MSD_TRAIN, MSD_TEST)), MSD_MEANS + MSD_COVARIANCES)


def make_tall(
    *,
    scale: float = 1.0,
    rows: int = 2_000_000,
    columns: int = 100,
    seed: int = 42,
    test_rows: int = 0,
    label: str = "value",
) -> Task:
    """Friedman's first function, generalised: blocks of five informative columns, up to 20, among uniform noise.

    ``y = sum over blocks of 10 sin(pi a b) + 20 (c - 1/2)^2 + 10 d + 5 e``, plus normal noise of a third of the
    signal's standard deviation (Friedman 1991, section 4.3, has one block and unit noise).

    Parameters
    ----------
    scale : float in (0, 1]
        Share of the training rows.
    rows, columns, seed : int
    test_rows : int
        0 is a fifth of the training rows, at most 500,000. A small task needs more, or luck decides its metric.
    label : {"value", "above-median"}
        ``y``; or 1 where it is above its median, else 0.

    Raises
    ------
    ValueError
        For fewer than 1 row or 5 columns, a negative number of test rows, or another label.
    """
    shape = tall_shape(scale=scale, rows=rows, columns=columns, test_rows=test_rows)
    n_blocks = min(TALL_INFORMATIVE, columns) // 5
    probe = np.random.default_rng([seed, 0])
    noise = TALL_NOISE_SHARE * _friedman(probe.random((CHUNK, 5 * n_blocks)), n_blocks).std()

    def chunk(draw: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X = draw.random((n, columns), dtype=np.float32)
        return X, _friedman(X[:, : 5 * n_blocks].astype(np.float64), n_blocks) + noise * draw.normal(size=n)

    names = tuple(f"x{i}" for i in range(columns))
    chunk_rows = min(CHUNK, max(1, CHUNK_CELLS // columns))
    return _generate(_labelled(chunk, seed, label, chunk_rows), seed, shape, names, chunk_rows)


def tall_shape(
    *,
    scale: float = 1.0,
    rows: int = 2_000_000,
    columns: int = 100,
    seed: int = 42,
    test_rows: int = 0,
    label: str = "value",
) -> Shape:
    """Rows and columns that `make_tall` will give.

    Raises
    ------
    ValueError
        For fewer than 1 row or 5 columns, or a negative number of test rows.
    """
    if rows < 1 or columns < 5 or test_rows < 0:
        raise ValueError(
            f"tall needs at least 1 row and 5 columns and no negative test_rows, got rows={rows}, columns={columns}, "
            f"test_rows={test_rows}"
        )
    n_train = max(1, round(rows * scale))
    return Shape(n_train, test_rows or max(1, min(n_train // 5, TALL_MOST_TEST_ROWS)), columns)


def _friedman(X: np.ndarray, n_blocks: int) -> np.ndarray:
    a, b, c, d, e = X.reshape(len(X), n_blocks, 5).transpose(2, 0, 1)
    return (10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e).sum(axis=1)


def _labelled(chunk: Chunk, seed: int, label: str, chunk_rows: int) -> Chunk:
    """The recipe with the label asked for; the median is that of the first training chunk, whatever the rows."""
    if label == "value":
        return chunk
    if label != "above-median":
        raise ValueError(f"label '{label}' is not one of the synthetic labels: choose 'value' or 'above-median'")
    median = np.median(chunk(np.random.default_rng([seed, TRAIN, 0]), chunk_rows)[1])

    def classes(draw: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        X, value = chunk(draw, n)
        return X, value > median

    return classes


def _generate(chunk: Chunk, seed: int, shape: Shape, names: tuple[str, ...], chunk_rows: int) -> Task:
    """Train and test rows, each chunk from a generator seeded by (seed, part, chunk)."""
    arrays = []
    for part, n in ((TRAIN, shape.train), (TEST, shape.test)):
        X, y = np.empty((n, len(names)), np.float32), np.empty(n, np.float32)
        for index, start in enumerate(range(0, n, chunk_rows)):
            # A whole chunk is always drawn, so that its first rows are the same where fewer are kept.
            values, label = chunk(np.random.default_rng([seed, part, index]), chunk_rows)
            kept = min(chunk_rows, n - start)
            X[start : start + kept], y[start : start + kept] = values[:kept], label[:kept]
        arrays += [X, y]
    return Task(*arrays, names)
