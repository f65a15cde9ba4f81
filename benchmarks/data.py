"""The rows that the benchmarks within one process share: made once a process. May import NumPy and the engine."""

from functools import cache

import numpy as np

import engine


@cache
def table(rows: int, columns: int, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Uniform columns and a label of the first two, with a little noise; read-only for all."""
    draw = np.random.default_rng(42)
    X = draw.random((rows, columns), dtype=np.float32).astype(dtype)
    y = (X[:, 0] + X[:, 1] ** 2 + 0.1 * draw.standard_normal(rows)).astype(np.float32)
    return X, y


@cache
def model(grower: str, trees: int = 20) -> engine.Model:
    """Trained on a table of 20,000 x 20."""
    limit = {"max_leaves": 64, "max_depth": 0} if grower == "leafwise" else {"max_depth": 6}
    return engine.train({"n_estimators": trees, "grower": grower, **limit}, engine.Dataset(*table(20_000, 20)))
