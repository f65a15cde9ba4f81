"""What a fit asks of a device, counted on the emulated one: exact, so one fit is enough and any host will do."""

import hashlib

import engine
from benchmarks.data import table
from engine.profile import COUNTED

GROWERS = ("depthwise", "leafwise", "levelwise")


class Kernels:
    params = list(GROWERS)
    param_names = ("grower",)
    version = "1"
    timeout = 120

    def setup_cache(self):
        """One fit a grower, for all the counts."""
        return {grower: _counts(grower) for grower in GROWERS}

    def track_syncs(self, counts, grower):
        return counts[grower]["syncs"]

    def track_launches(self, counts, grower):
        return counts[grower]["launches"]

    def track_replays(self, counts, grower):
        return counts[grower]["replays"]

    def track_copies(self, counts, grower):
        return counts[grower]["copies"]

    def track_bytes_up(self, counts, grower):
        return counts[grower]["bytes_up"]

    def track_bytes_down(self, counts, grower):
        return counts[grower]["bytes_down"]

    def track_model_digest(self, counts, grower):
        return counts[grower]["model_digest"]

    track_bytes_up.unit = track_bytes_down.unit = "bytes"


def _counts(grower: str) -> dict[str, int]:
    limit = {"max_leaves": 16, "max_depth": 0} if grower == "leafwise" else {"max_depth": 4}
    params = {"n_estimators": 5, "grower": grower, "device": "emulated", **limit}
    model = engine.train(params, engine.Dataset(*table(2_000, 12)))
    phases = model.profile["phases"].values()
    counts = {name: sum(phase[name] for phase in phases) for name in COUNTED}
    return counts | {"model_digest": int(hashlib.sha256(model.to_bytes()).hexdigest()[:12], 16)}
