"""What watching an eval set costs, and what stopping early saves."""

import engine
from benchmarks.data import table
from benchmarks.host import refuse_unbelievable

MODES = {
    "off": {"n_estimators": 60},
    "eval": {"n_estimators": 60},
    "stop": {"n_estimators": 600, "early_stopping_rounds": 5, "learning_rate": 0.3},
}


class EarlyStop:
    params = list(MODES)
    param_names = ("mode",)
    version = "1"
    rounds = 2
    repeat = 4
    timeout = 120

    def setup(self, mode):
        refuse_unbelievable("cpu")
        X, y = table(20_000, 20)
        self.train = engine.Dataset(X[:18_000], y[:18_000]).ingest("cpu")
        self.watched = None if mode == "off" else engine.Dataset(X[18_000:], y[18_000:], cuts_from=self.train)

    def time_train(self, mode):
        self._train(mode)

    def track_trees(self, mode):
        return len(self._train(mode).forest)

    track_trees.unit = "trees"

    def _train(self, mode):
        return engine.train({"max_depth": 4, **MODES[mode]}, self.train, eval_set=self.watched)
