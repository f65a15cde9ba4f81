"""The rivals' fits, on the same rungs as the engine's: those that are installed."""

from benchmarks import fits
from benchmarks.host import contenders, has_gpu, rungs


class Rivals(fits._Fits):
    params = (contenders(ours=False), rungs("cpu"))


if has_gpu():

    class RivalsOnGpu(fits._OnGpu):
        params = (contenders(ours=False), rungs("gpu"))
