# %% [markdown]
# # A regression hunt
#
# A history with a known culprit: 30 commits, 4 fits each, 3 % noise, and from commit 18 on the histograms take 15 %
# longer. The rows are made up; everything that reads them is what `dyno results check` and `dyno results compare` run.

# %%
from datetime import UTC, datetime, timedelta

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from results.regressions import find_steps
from results.schema import Row
from results.series import series_of
from results.verdict import Block, judge

CULPRIT, SLOWER, NOISE = 18, 1.15, 0.03
PHASES = {"histogram": 1.0, "find": 0.2, "partition": 0.4}
PASSPORT = {"digest": "made-up-host"}

# %% [markdown]
# ## The history


# %%
def fit(place, repeat, rng, slower, **changes):
    """One row; every fit has its own noise."""
    noise = float(np.exp(NOISE * rng.standard_normal()))
    phases = {name: seconds * noise * (slower if name == "histogram" else 1) for name, seconds in PHASES.items()}
    train_s = sum(phases.values())
    fields = {
        "ts": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=place, minutes=repeat),
        "commit": f"{place + 0xC0FFEE00:040x}",
        "dirty": False,
        "release": "0.1.0",
        "ladder": "made-up",
        "rung": "one",
        "contender": "engine-depthwise",
        "growth": "depthwise",
        "grower": "depthwise",
        "library": "gbt-dyno",
        "version": "0.1.0",
        "device": "cpu",
        "threads": 2,
        "repeat": repeat,
        "block": repeat,
        "order": 0,
        "seed": 42,
        "knobs_asked": {},
        "knobs_found": {},
        "ingest_s": 0.1,
        "train_s": train_s,
        "fit_s": train_s + 0.1,
        "metric": "rmse",
        "value": 1.0,
        "phases": phases,
        "status": "ok",
        "data_hash": "made-up",
        "passport_before": PASSPORT,
        "passport_after": PASSPORT,
        "command": "notebooks/regression_hunt.py",
    }
    return Row(**{**fields, **changes})


def history(seed, slower):
    """Thirty commits, four fits each."""
    rng = np.random.default_rng(seed)
    return [fit(place, repeat, rng, slower if place >= CULPRIT else 1.0) for place in range(30) for repeat in range(4)]


rows = history(seed=7, slower=SLOWER)
order = {row.commit: place for place, row in enumerate(rows)}

# %% [markdown]
# ## Which commit, which phase, how sure
#
# The step's place comes with a range: the commits that may have brought it, with 95 % of the probability.

# %%
(step,) = [step for step in find_steps(series_of(rows, order)) if step.measure == "train_s"]
place = {row.commit: row.ts for row in rows}
named = sorted(place, key=place.get)
first, at, last = (named.index(point.commit) for point in (step.first, step.at, step.last))
print(f"training time {step.size:+.1%} at commit {at} (between {first} and {last}), confidence {step.confidence:.4f}")
print("phases that moved:", ", ".join(f"{name} {share:.0%}" for name, share in step.moved))
assert first <= CULPRIT <= last
assert step.moved[0][0] == "histogram"

# %%
times = pd.Series([row.train_s for row in rows], [named.index(row.commit) for row in rows])
figure, axes = plt.subplots(figsize=(8, 3))
axes.plot(times.index, times, ".", alpha=0.5)
axes.plot([0, at], [step.old] * 2, [at, 29], [step.new] * 2, linewidth=2)
axes.axvspan(first - 0.5, last + 0.5, alpha=0.15)
axes.set(xlabel="commit", ylabel="training time, s")
plt.show()

# %% [markdown]
# ## A flat history has no step

# %%
flat = [step for step in find_steps(series_of(history(seed=8, slower=1.0), order)) if step.measure == "train_s"]
print(f"{len(flat)} steps in a history without one")
assert not flat

# %% [markdown]
# ## Two versions, in blocks
#
# Before and after the culprit in blocks of A, B, B, A, a rival beside them. The host gets 30 % slower half way; the
# control takes that out again, and the verdict is about the code.

# %%
rng = np.random.default_rng(1)


def seconds(true_s):
    """One measured time."""
    return float(true_s * np.exp(NOISE * rng.standard_normal()))


blocks = []
for number in range(9):
    host = 1.0 if number < 4 else 1.3
    blocks.append(
        Block(
            a=(seconds(1.6 * host), seconds(1.6 * host)),
            b=(seconds(1.75 * host), seconds(1.75 * host)),
            control_a=(seconds(2.5 * host), seconds(2.5 * host)),
            control_b=(seconds(2.5 * host), seconds(2.5 * host)),
        )
    )
verdict = judge(blocks)
print(
    f"{verdict.name}: {verdict.ratio - 1:+.1%} "
    f"({verdict.low - 1:+.1%} to {verdict.high - 1:+.1%}), {verdict.blocks} blocks"
)
assert verdict.name == "slower"
