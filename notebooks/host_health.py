# %% [markdown]
# # Host health over time
#
# May a host be believed, and did it stay the same while it was measured? Two sources: recorded hosts, replayed through
# the real checks (`dyno probe --replay FILE`), and the passports that every published row carries.

# %%
import matplotlib.pyplot as plt
import pandas as pd

from probes.probe import chosen, outcome
from probes.replay import load_replay
from probes.thresholds import load_thresholds
from probes.verdict import decide
from results.store import CHECKOUT, records_store

# %% [markdown]
# ## Recorded hosts
#
# Each file is a host as it was measured or reported: a co-tenant, a slow link, a driver too old. The verdict and its
# first reason are those of a rented node in the same state.

# %%
thresholds = load_thresholds()


def judged(path):
    """A recorded host's verdict and checks."""
    replay = load_replay(path)
    with replay.parts("auto", replay.threads) as parts:
        checks = [check for probe in chosen(replay.target, quick=False) for check in outcome(probe, parts, thresholds)]
    return decide(checks, thresholds), {check.name: check for check in checks}


hosts = {path.stem: judged(path) for path in sorted((CHECKOUT / "tests/fixtures/hosts").glob("*.json"))}
pd.DataFrame(
    {"host": name, "verdict": verdict.decision, "first reason": next(iter(verdict.reasons), "")[:100]}
    for name, (verdict, _) in hosts.items()
)

# %% [markdown]
# ## One figure across hosts
#
# The round trip of an empty kernel: the figure that sank rented nodes before. Where no card answers, there is none.

# %%
round_trip = pd.Series(
    {name: checks["sync-p50"].value for name, (_, checks) in hosts.items() if "sync-p50" in checks}, dtype=float
).dropna()
round_trip.sort_values().plot.barh(
    figsize=(7, 0.3 * len(round_trip) + 1), logx=True, xlabel="empty round trip (p50), us"
)
plt.show()

# %% [markdown]
# ## The passports of published rows
#
# A passport's digest covers what must not change between rows that are compared. Load, free memory and throttling are
# not in it: they are what the minute was like, before and after each fit.

# %%
rows = sorted(records_store().read().rows, key=lambda row: row.ts)
minutes = pd.DataFrame(
    {
        "ts": row.ts,
        "passport": row.passport_before["digest"],
        "load_1m": (row.passport_before.get("load") or {}).get("load_1m"),
        "available_gib": ((row.passport_before.get("load") or {}).get("memory_available_bytes") or 0) / 2**30 or None,
        "kept": row.passport_after is None or row.passport_after["digest"] == row.passport_before["digest"],
        "valid": row.valid,
    }
    for row in rows
)
print(
    f"{minutes['passport'].nunique()} passports over {len(minutes)} rows; "
    f"{(~minutes['kept']).sum()} changed during a fit"
)
minutes.groupby("passport").agg(first=("ts", "min"), last=("ts", "max"), rows=("ts", "size"), valid=("valid", "sum"))

# %%
figure, axes = plt.subplots(figsize=(8, 2.6))
for digest, group in minutes.groupby("passport"):
    axes.plot(range(len(group)), group["load_1m"], ".", label=digest[:8])
axes.set(xlabel="row, in order of time", ylabel="load, one minute")
axes.legend(title="passport")
plt.show()

# %% [markdown]
# ## Does the load show in the figures?
#
# Each fit's training time over its contender's median, against the load before it. A slope here would mean that the
# rows measure the neighbours.

# %%
fits = pd.DataFrame(
    {
        "key": f"{row.ladder} {row.rung} {row.threads} {row.contender} {row.passport_before['digest']} {row.commit}",
        "train_s": row.train_s,
        "load_1m": (row.passport_before.get("load") or {}).get("load_1m"),
    }
    for row in rows
    if row.status == "ok" and row.valid
)
fits["off"] = fits["train_s"] / fits.groupby("key")["train_s"].transform("median") - 1
print("rank correlation of load and time:", round(fits["off"].corr(fits["load_1m"], method="spearman"), 2))
fits.plot.scatter("load_1m", "off", figsize=(6, 3), ylabel="off the contender's median")
plt.show()
