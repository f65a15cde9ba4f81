"""The engine of this project on a GPU. May import the engine's contender."""

from functools import partial

from ladders.contenders.engine import bus_counts, predict, read_back
from ladders.contenders.engine import ingest as ingest_on
from ladders.contenders.engine import train as train_on

__all__ = ["bus_counts", "ingest", "predict", "read_back", "train"]

ingest = partial(ingest_on, device="cuda")
train = partial(train_on, device="cuda")
