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
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from ladders.contenders.knobs import Knobs, not_honoured
from ladders.data.cache import Stored
from ladders.data.task import Task
from ladders.memory import PeakMemory

RESULT = "RESULT "
"""What the one line that the parent reads starts with; libraries print what they like before it."""

WARM_UP_ROWS = 2048
WARM_UP_TREES = 5

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
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    module: str
    knobs: Knobs
    folder: str
    data_hash: str
    parent: int


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
    task = Stored(Path(job.folder), job.data_hash).load()
    _warm_up(contender, task, job.knobs)

    memory = PeakMemory()
    with memory:
        start = perf_counter()
        data = contender.ingest(task.X_train, task.y_train, job.knobs)
        ingested = perf_counter()
        train_start = perf_counter()
        model = contender.train(data, job.knobs)
        end = perf_counter()
    predict_start = perf_counter()
    response = contender.predict(model, task.X_test, job.knobs)
    predict_s = perf_counter() - predict_start

    found = contender.read_back(model, data)
    name, value = quality(job.knobs.objective, task.y_test, response)
    broken = not_honoured(job.knobs, found)
    return {
        "status": "rejected" if broken else "ok",
        "message": broken,
        "ingest_s": ingested - start,
        "train_s": end - train_start,
        "fit_s": end - start,
        "predict_s": predict_s,
        "rss_bytes": memory.over_resident_bytes,
        "metric": name,
        "value": value,
        "knobs_found": found,
        **(contender.evidence(model) if hasattr(contender, "evidence") else {}),
        "device": found["device"],
    }


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


def _warm_up(contender: ModuleType, task: Task, knobs: Knobs) -> None:
    """A micro-fit that starts the thread pool, loads every code path once and settles the allocator."""
    few = knobs.model_copy(update={"n_estimators": WARM_UP_TREES})
    # Spread over all rows: the first ones alone may hold a single class.
    step = max(1, len(task.y_train) // WARM_UP_ROWS)
    X, y = np.ascontiguousarray(task.X_train[::step][:WARM_UP_ROWS]), task.y_train[::step][:WARM_UP_ROWS].copy()
    model = contender.train(contender.ingest(X, y, few), few)
    contender.predict(model, X, few)


if __name__ == "__main__":
    main()
