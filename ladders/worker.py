"""The child of a ladder: one fit, a JSON job on stdin, one RESULT line on stdout. May import contenders and data.

Run as ``python -m ladders.worker``. A process of its own for every fit, so that no library sees another's threads,
allocator or caches, and a crash costs one row.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from types import ModuleType
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from ladders.contenders.knobs import Knobs, misplaced, not_honoured
from ladders.data.cache import Stored
from ladders.data.csv_file import read_csv
from ladders.data.task import Task
from ladders.device_memory import PeakDeviceMemory
from ladders.memory import PeakMemory

RESULT = "RESULT "
"""What the one line that the parent reads starts with; libraries print what they like before it."""

WARM_UP_ROWS = 2048
WARM_UP_TREES = 5

LEAST_CALLS, LEAST_S = 5, 0.1
"""How long one kind of prediction is timed: a call of one row takes microseconds, one of all of them seconds."""

LONGEST_MESSAGE = 2000
"""Characters; some libraries put whole matrices into their errors."""

PR_SET_PDEATHSIG = 1


class Job(BaseModel):
    """What the parent asks of one child.

    Attributes
    ----------
    module : str
        The contender's module.
    knobs : Knobs
    folder, data_hash : str
        The task on disk.
    parent : int
        Process id that must still be alive.
    timing_mode, held_out, watch, predictions
        As the rung says: see `ladders.scenario.Rung`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    module: str
    knobs: Knobs
    folder: str
    data_hash: str
    parent: int
    timing_mode: Literal["in_memory", "pipeline"] = "in_memory"
    held_out: float = 0.0
    watch: bool = False
    predictions: bool = False


def main() -> None:
    """Read the job, fit, print the result. Every failure is a result too; only a killed child prints none."""
    job = Job.model_validate_json(sys.stdin.buffer.read())
    die_with(job.parent)
    hold_to(job.knobs.n_threads)
    try:
        result = measure(job)
    except Exception as error:
        status = "oom" if is_out_of_memory(error) else "error"
        message = f"{type(error).__name__}: {error}"[:LONGEST_MESSAGE]
        result = {"status": status, "message": f"{message}\n{traceback.format_exc(limit=-3)[-LONGEST_MESSAGE:]}"}
    sys.stdout.flush()
    print(RESULT + json.dumps(result, allow_nan=False), flush=True)


def measure(job: Job) -> dict[str, Any]:
    """One warm-up that is not timed, then one fit that is; fields named as in `results.schema.Row`."""
    contender = import_module(job.module)
    asked = job.knobs
    if asked.device == "gpu" and (reason := _why_no_gpu(contender)):
        return {"status": "unsupported", "message": reason}
    stored = Stored(Path(job.folder), job.data_hash)
    task = stored.load()
    read = partial(read_csv, stored.csv(), asked.n_threads) if job.timing_mode == "pipeline" else None
    _warm_up(contender, task, asked)

    model, data, figures = _fit(contender, task, job, read)
    predict_start = perf_counter()
    response = contender.predict(model, task.X_test, asked)
    predict_s = perf_counter() - predict_start

    found = contender.read_back(model, data)
    if reason := misplaced(asked, found):
        return {"status": "error", "message": reason, "knobs_found": found, "device": found["device"]}
    name, value = quality(asked.objective, task.y_test, response)
    broken = not_honoured(asked, found)
    return {
        "status": "rejected" if broken else "ok",
        "message": broken,
        **figures,
        "predict_s": predict_s,
        "metric": name,
        "value": value,
        "knobs_found": found,
        **({"predictions": time_predictions(contender, model, data, task, asked)} if job.predictions else {}),
        **(contender.evidence(model) if hasattr(contender, "evidence") else {}),
        "device": found["device"],
    }


def time_predictions(contender: ModuleType, model: Any, data: Any, task: Task, asked: Knobs) -> dict[str, float]:
    """Median seconds of a call at 1, 1,000 and all test rows, from raw rows and, where the library can, a data set.

    Returns
    -------
    dict
        ``raw_1000`` and the like; making the data set is not counted.
    """
    seconds = {}
    for n_rows in sorted({min(n, len(task.X_test)) for n in (1, 1000, len(task.X_test))}):
        X = np.ascontiguousarray(task.X_test[:n_rows])
        given: dict[str, Callable[[], Any]] = {"raw": lambda X=X: X}
        if hasattr(contender, "to_predict"):
            given["dataset"] = partial(contender.to_predict, X, asked, data)
        for kind, make in given.items():
            seconds[f"{kind}_{n_rows}"] = _median_seconds(make, lambda rows: contender.predict(model, rows, asked))
    return seconds


def quality(objective: str, label: np.ndarray, response: np.ndarray) -> tuple[str, float]:
    """The metric of every contender, by scikit-learn in float64, so that nobody is judged by his own definition.

    Parameters
    ----------
    objective : {"squared_error", "logistic", "poisson"}
    label, response : ndarray, shape (n_rows,)

    Returns
    -------
    tuple of str, float
        ``rmse``, ``log_loss`` or ``poisson_deviance``; smaller is better.

    Raises
    ------
    ValueError
        If the response has another length than the label, or is not finite.
    """
    from sklearn.metrics import log_loss, mean_poisson_deviance, root_mean_squared_error

    label, response = np.asarray(label, np.float64), np.asarray(response, np.float64)
    if response.shape != label.shape or not np.isfinite(response).all():
        raise ValueError(
            f"the prediction has shape {response.shape} and {np.count_nonzero(~np.isfinite(response))} values that are "
            f"not finite; {label.shape} finite ones are needed"
        )
    if objective == "squared_error":
        return "rmse", float(root_mean_squared_error(label, response))
    if objective == "logistic":
        return "log_loss", float(log_loss(label, response, labels=[0, 1]))
    return "poisson_deviance", float(mean_poisson_deviance(label, response))


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory ran out: C++ libraries wrap ``std::bad_alloc`` in errors of their own."""
    words = ("bad_alloc", "out of memory", "cannot allocate memory", "insufficient memory")
    return isinstance(error, MemoryError) or any(word in str(error).lower() for word in words)


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, however it dies (Linux; elsewhere nothing is done)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the request was made
        sys.exit(1)


def hold_to(threads: int) -> None:
    """Show this process no more cores than the threads it was asked to use.

    Not every step of every library takes a number of threads (CatBoost's `Pool.quantize` does not, measured with
    1.2.10), so asking is not enough for equal footing. The same cores for all: the first of those allowed.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _fit(
    contender: ModuleType, task: Task, job: Job, read: Callable[[], tuple[np.ndarray, np.ndarray]] | None
) -> tuple[Any, Any, dict[str, Any]]:
    """The timed fit: model, training data and figures."""
    X, y, asked = task.X_train, task.y_train, job.knobs
    memory, device_memory = PeakMemory(), PeakDeviceMemory(asked.device)
    with memory, device_memory:
        start = perf_counter()
        if read is not None:
            X, y = read()
        read_end = perf_counter()
        kept = _kept(len(y), job.held_out)
        data = contender.ingest(X[:kept], y[:kept], asked)
        watched = [contender.ingest(X[kept:], y[kept:], asked, data)] if job.watch else []
        ingested = perf_counter()
        train_start = perf_counter()
        model = contender.train(data, asked, *watched)
        end = perf_counter()
    if read is not None and not (np.array_equal(X, task.X_train, equal_nan=True) and np.array_equal(y, task.y_train)):
        raise ValueError(f"{job.folder}/train.csv holds other rows than the arrays beside it: remove it and run again")
    figures = {
        "ingest_s": ingested - read_end,
        "train_s": end - train_start,
        "fit_s": end - start,
        "rss_bytes": memory.over_resident_bytes,
        "device_bytes": device_memory.peak_bytes,
    }
    return model, data, figures | ({} if read is None else {"read_s": read_end - start})


def _kept(n_rows: int, held_out: float) -> int:
    """Rows that are trained on: all but the last share."""
    if not held_out:
        return n_rows
    kept = n_rows - max(1, round(n_rows * held_out))
    if kept < 1:
        raise ValueError(f"{n_rows} training rows are too few to hold out {held_out:g} of them: raise --scale")
    return kept


def _median_seconds(make: Callable[[], Any], predict: Callable[[Any], Any]) -> float:
    """Of at least `LEAST_CALLS` calls, and more for `LEAST_S` seconds in all, after one that is not counted.

    Rows are made anew for every call, untimed: XGBoost keeps the answers for a matrix it has seen, and would give
    380 million rows a second.
    """
    predict(make())
    taken: list[float] = []
    begin = perf_counter()
    while len(taken) < LEAST_CALLS or perf_counter() - begin < LEAST_S:
        rows = make()
        start = perf_counter()
        predict(rows)
        taken.append(perf_counter() - start)
    return median(taken)


def _why_no_gpu(contender: ModuleType) -> str | None:
    return contender.why_no_gpu() if hasattr(contender, "why_no_gpu") else None


def _warm_up(contender: ModuleType, task: Task, knobs: Knobs) -> None:
    """A micro-fit that starts the thread pool, loads every code path once and settles the allocator."""
    few = knobs.model_copy(update={"n_estimators": WARM_UP_TREES, "patience": 0})
    # Spread over all rows: the first ones alone may hold a single class.
    step = max(1, len(task.y_train) // WARM_UP_ROWS)
    X, y = np.ascontiguousarray(task.X_train[::step][:WARM_UP_ROWS]), task.y_train[::step][:WARM_UP_ROWS].copy()
    model = contender.train(contender.ingest(X, y, few), few)
    contender.predict(model, X, few)


if __name__ == "__main__":
    main()
