"""From the caller's array to bins, by dtype and order of the array."""

import numpy as np

import engine
from benchmarks.data import table
from benchmarks.host import refuse_unbelievable


class Ingest:
    params = (["float32", "float64", "int32"], ["C", "F"])
    param_names = ("dtype", "order")
    version = "1"
    rounds = 2
    repeat = 4
    timeout = 120

    def setup(self, dtype, order):
        refuse_unbelievable("cpu")
        X, self.y = table(50_000, 20)
        values = (X * 1000).astype(dtype) if dtype == "int32" else X.astype(dtype)
        self.X = np.asarray(values, order=order)

    def time_ingest(self, dtype, order):
        engine.Dataset(self.X, self.y).ingest("cpu")
