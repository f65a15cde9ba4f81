"""A contender that fails the way its name in the environment says; run by real workers in test_launch."""

import os
import signal
import sys
import time


def ingest(X, y, asked):
    how = os.environ["MISBEHAVE"]
    if how == "raise":
        raise RuntimeError("no luck today")
    if how == "memory":
        raise MemoryError("cannot have 9 GB")
    if how == "bad_alloc":
        raise RuntimeError("std::bad_alloc")
    if how == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        print("a library's farewell", file=sys.stderr)
        os._exit(7)
    if how == "hang":
        time.sleep(600)
    if how == "nan":
        return X
    raise AssertionError(how)


def train(data, asked):
    return data


def predict(model, X, asked):
    return X[:, 0] * float("nan")


def read_back(model, data):
    return {"device": "cpu"}
