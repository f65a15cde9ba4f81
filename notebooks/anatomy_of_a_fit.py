# %% [markdown]
# # Anatomy of a fit
#
# Where a fit's seconds go, how close its histograms come to what this host's memory can deliver, and what would cross
# the bus of a GPU. The bus is counted on the emulated device, which runs the very kernels of the GPU on the host: its
# counts are those of a GPU, its seconds are not, and none is shown.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from engine import Dataset, train
from probes.cores import usable_cores
from probes.live.host_triad import bind_host_triad

threads = max(1, int(usable_cores() or 1))


def data(n_rows, n_columns):
    """A regression in which three columns matter."""
    rng = np.random.default_rng(42)
    X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + 0.1 * rng.standard_normal(n_rows, dtype=np.float32)
    return Dataset(X, y)


# %% [markdown]
# ## Phases
#
# Every fit carries its profile; `DYNO_PROFILE=1` prints it.

# %%
n_rows, n_columns, n_trees, depth = 60_000, 28, 12, 6
shape = {"n_estimators": n_trees, "max_depth": depth, "n_threads": threads}
grown = {
    grower: train({"grower": grower, "device": "cpu", **shape}, data(n_rows, n_columns)).profile
    for grower in ("depthwise", "levelwise")
}
phases = pd.DataFrame(
    {name: {k: phase["seconds"] for k, phase in one["phases"].items()} for name, one in grown.items()}
)
phases = phases[(phases > 5e-4).any(axis=1)]
phases.T.plot.barh(stacked=True, figsize=(9, 2.6), xlabel="seconds", title=f"{n_rows:,} rows, {n_trees} trees").legend(
    loc="upper left", bbox_to_anchor=(1, 1)
)
plt.show()
phases.round(4)

# %% [markdown]
# ## Roofline
#
# A histogram reads, for each row of a level, one byte a column and the row's quantised gradient pair (8 bytes), and
# makes two additions a column: between one and two additions a byte. The roof is this host's own triad. At most the
# smaller half of each pair of siblings is built (the other is subtracted), so both are upper bounds. How far the
# point lies below the roof says how little of the time memory accounts for.

# %%
triad, moved = bind_host_triad(192 << 20, threads)
triad()  # touches the pages
seconds = []
for _ in range(5):
    start = time.perf_counter()
    triad()
    seconds.append(time.perf_counter() - start)
roof = moved / np.median(seconds) / 1e9

histogram = grown["depthwise"]["phases"]["histogram"]["seconds"]
rows_built = n_rows * n_trees * (1 + (depth - 1) / 2)
traffic = rows_built * (n_columns + 8) / 1e9
additions = rows_built * n_columns * 2 / 1e9
intensity = additions / traffic
print(
    f"roof {roof:.1f} GB/s; histograms at most {traffic / histogram:.1f} GB/s "
    f"and {additions / histogram:.2f} G additions/s"
)

# %%
at = np.geomspace(0.05, 20, 50)
figure, axes = plt.subplots(figsize=(6, 3.6))
axes.loglog(at, roof * at, label="memory: the host's triad")
axes.loglog([intensity], [additions / histogram], "o", label="histograms, depthwise")
axes.set(xlabel="additions a byte", ylabel="G additions/s")
axes.legend()
plt.show()

# %% [markdown]
# ## Bus
#
# The same fit, smaller, on the emulated device. A fit without an eval set makes no synchronisation between its first
# and its last tree: what is uploaded goes up before the first, and the trees come home after the last.

# %%
profile = train({"device": "emulated", "n_estimators": 3, "max_depth": 3}, data(2_000, 4)).profile
counted = ["launches", "replayed_launches", "replays", "copies", "bytes_up", "bytes_down", "syncs"]
bus = pd.DataFrame({name: {k: phase[k] for k in counted} for name, phase in profile["phases"].items()}).T
bus = bus[(bus > 0).any(axis=1)]
bus

# %%
growing = ["gradients", "histogram", "find", "plan", "partition", "leaves"]
waits = int(bus["syncs"].reindex(growing).fillna(0).sum())
print(f"{waits} synchronisations while trees grow, {int(bus['syncs'].sum())} in the whole fit")
assert waits == 0
