"""The engine's fits: growth x scenario, on the CPU and, where there is one, on the GPU."""

from benchmarks import fits
from benchmarks.host import contenders, has_gpu, rungs
from benchmarks.rows import not_available


class _Digest:
    """Of our own model: a number that changes when a bit does."""

    def track_model_digest(self, contender, rung):
        digest = self._next("track_model_digest", contender, rung).model_digest
        if digest is None:
            not_available("this commit writes no model digest into its rows")
        return int(digest[:12], 16)  # a double holds 48 bits exactly


class Fit(fits._Fits, _Digest):
    params = (contenders(ours=True), rungs("cpu"))


if has_gpu():

    class FitOnGpu(fits._OnGpu, _Digest):
        params = (contenders(ours=True), rungs("gpu"))

        def track_syncs(self, contender, rung):
            return self._next("track_syncs", contender, rung).syncs

        def track_launches(self, contender, rung):
            return self._next("track_launches", contender, rung).launches

        def track_bytes(self, contender, rung):
            row = self._next("track_bytes", contender, rung)
            return row.bytes_up + row.bytes_down

        track_bytes.unit = "bytes"
