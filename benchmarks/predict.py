"""Prediction from raw rows, from one row to many."""

from benchmarks.data import model, table
from benchmarks.host import refuse_unbelievable


class Predict:
    params = (["depthwise", "leafwise", "levelwise"], [1, 1_000, 100_000])
    param_names = ("grower", "rows")
    version = "1"
    rounds = 2
    repeat = 4
    timeout = 120

    def setup(self, grower, rows):
        refuse_unbelievable("cpu")
        self.model = model(grower)  # kept by the process: asv calls setup before every timed call
        self.X = table(rows, 20)[0]

    def time_predict(self, grower, rows):
        self.model.predict(self.X)
