"""What the figures of a fit are, for every contender: the classes that fit.py and rivals.py give their parameters.

Every figure comes from rows: `time_` reports the seconds that the row has, by a timer that stands still otherwise.
"""

from __future__ import annotations

from benchmarks.host import refuse_unbelievable
from benchmarks.rows import Reader


class _Fits:
    """Base of the benchmarks over (contender, rung)."""

    target = "cpu"
    param_names = ("contender", "rung")
    version = "1"
    number = 1
    rounds = 2
    repeat = 4  # 8 samples: with 6 against 6, asv's test cannot find two commits different
    warmup_time = 0  # the worker makes its own warm-up
    timeout = 600

    def setup(self, contender: str, rung: str) -> None:
        refuse_unbelievable(self.target)

    def timer(self) -> float:
        """Seconds read off rows so far."""
        return self._read_s

    _read_s = 0.0

    def _next(self, reader: str, contender: str, rung: str):
        return Reader(f"{type(self).__name__}.{reader}", self.target, contender, rung).next()

    def time_ingest(self, contender, rung):
        self._read_s += self._next("time_ingest", contender, rung).ingest_s

    def time_train(self, contender, rung):
        self._read_s += self._next("time_train", contender, rung).train_s

    def time_fit(self, contender, rung):
        self._read_s += self._next("time_fit", contender, rung).fit_s

    def time_predict(self, contender, rung):
        self._read_s += self._next("time_predict", contender, rung).predict_s

    def track_quality(self, contender, rung):
        """RMSE or log loss on the test part."""
        return self._next("track_quality", contender, rung).value

    track_quality.unit = "loss"

    def track_peakmem(self, contender, rung):
        """Peak memory over the resident input; asv's own peakmem_ would count the input, and this process."""
        return self._next("track_peakmem", contender, rung).rss_bytes

    track_peakmem.type = "peakmemory"
    track_peakmem.unit = "bytes"


class _OnGpu(_Fits):
    """What a card adds."""

    target = "gpu"

    def track_device_peakmem(self, contender, rung):
        return self._next("track_device_peakmem", contender, rung).device_bytes

    track_device_peakmem.type = "peakmemory"
    track_device_peakmem.unit = "bytes"
