# %% [markdown]
# # Standings explorer
#
# The published rows of `results/records`, read as data: who trains fastest, how sure that is, and what it costs in
# memory. The page of a release (`dyno standings --release TAG`) prints the same figures; here they can be cut in other
# ways.

# %%
import matplotlib.pyplot as plt
import pandas as pd

from results.growth import growth
from results.pairs import TARGETS, pairs
from results.standings import standings
from results.store import records_store

rows = records_store().read().rows
found = standings(rows)
print(f"{len(rows)} rows, {len(found.tables)} tables, {dict(found.tally())}")

# %% [markdown]
# ## One line a contender
#
# Medians over the repeats; `spread` is (max - min) / median. Rows of other hosts, commits or data are not among them:
# `standings` compares one class of rows and counts what it leaves out.

# %%
contenders = pd.DataFrame(
    {
        "ladder": table.ladder,
        "rung": table.rung,
        "threads": table.row_class.threads,
        "growth": pair.growth,
        "contender": entry.contender,
        "n": entry.n,
        "train_s": entry.train.median,
        "spread": entry.train.spread,
        "ingest_s": entry.ingest.median,
        "predict_s": entry.predict.median if entry.predict else None,
        "rss_mib": None if entry.rss_bytes is None else entry.rss_bytes / 2**20,
        "value": entry.value,
    }
    for table in found.tables
    for pair in table.pairs
    for entry in pair.entries
)
contenders.round(4)

# %% [markdown]
# ## How much do repeats differ?
#
# Each dot is one fit over the median of its contender. A margin inside this cloud decides nothing.

# %%
relative = [
    (entry.contender, row.train_s / entry.train.median - 1)
    for table in found.tables
    for pair in table.pairs
    for entry in pair.entries
    for row in entry.rows
]
names = sorted({name for name, _ in relative})
figure, axes = plt.subplots(figsize=(8, 0.35 * len(names) + 1))
axes.scatter([100 * off for _, off in relative], [names.index(name) for name, _ in relative], s=14, alpha=0.6)
axes.set(yticks=range(len(names)), yticklabels=names, xlabel="training time, % off the contender's median")
axes.axvline(0, color="grey", linewidth=0.8)
plt.show()

# %% [markdown]
# ## Ours over the best rival's
#
# In each respect the best rival is whoever is best there. Quality is a share by which our metric is worse than the
# paired rival's.

# %%
cases = pairs(found)
judged = pd.DataFrame(
    {
        "where": f"{case.ladder} {case.rung}, {case.threads} threads, {case.growth}",
        **{name: case.judged[name].ratio if name in case.judged else None for name in TARGETS},
    }
    for case in cases
).set_index("where")
pd.concat([pd.DataFrame([TARGETS], index=["target"]), judged]).round(3)

# %% [markdown]
# ## Time against memory
#
# Towards the lower left is better in both.

# %%
figure, axes = plt.subplots(figsize=(7, 4))
for name, group in contenders.groupby(contenders["contender"].str.partition("-")[0]):
    axes.loglog(group["train_s"], group["rss_mib"], "o", label=name)
axes.set(xlabel="training time, s", ylabel="peak memory over the input, MiB")
axes.legend()
plt.show()

# %% [markdown]
# ## How time grows
#
# Slopes along every axis that was measured at two points or more; empty until such a ladder (`dyno ladder run
# cpu-growth`) is published.

# %%
pd.DataFrame(
    {"ladder": one.ladder, "axis": one.axis, "growth": one.growth, "contender": slope.contender, "slope": slope.value}
    for one in growth(found)
    for slope in one.slopes
)
