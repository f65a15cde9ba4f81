"""The host's own figures, beside those measured on it: memory triad, steal, and a GPU's where there is one."""

from benchmarks.host import has_gpu
from probes.probe import chosen
from probes.supervisor import FULL_LIMIT_S, supervise
from probes.thresholds import load_thresholds

TARGET = "gpu" if has_gpu() else "cpu"


class Host:
    params = [name for probe in chosen(TARGET, quick=False) for name in probe.names]
    param_names = ("check",)
    version = "1"
    timeout = 120

    def setup_cache(self):
        """One probe for all checks: their figures, None for what is unknown or is no number."""
        checks = supervise(chosen(TARGET, quick=False), load_thresholds(), threads=1, limit_s=FULL_LIMIT_S)
        return {check.name: check.value for check in checks if type(check.value) in (int, float)}

    def setup(self, figures, check):
        if check not in figures:
            raise NotImplementedError(f"{check} is unknown on this host, or no number")

    def track_check(self, figures, check):
        return figures[check]
