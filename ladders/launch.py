"""Starts one worker and says how it ended, whatever it did. May import worker's job and the standard library.

Nothing a child does reaches the run: a crash, a hang, a lack of memory or nonsense on its output is a result.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from ladders.worker import RESULT, Job

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)

TAIL = 2000
"""Characters of a failed worker's stderr kept in its row."""

_KERNEL_EVENTS = Path("/proc/vmstat")


def launch(job: Job, timeout_s: float) -> dict[str, Any]:
    """Run one job to its end.

    Parameters
    ----------
    job : Job
    timeout_s : float
        Of the whole process; then it is killed.

    Returns
    -------
    dict
        At least ``status`` (ok, rejected, oom, timeout or error) and ``message``; the worker's figures if it had any.
    """
    threads = {name: str(job.knobs.n_threads) for name in THREAD_VARIABLES}
    kills = _memory_kills()
    child = subprocess.Popen(
        # -P: the caller's directory may hold modules with our names.
        [sys.executable, "-P", "-m", "ladders.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | threads,
        start_new_session=True,  # Ctrl-C is for the parent, which then ends the child in its own way
    )
    try:
        output, errors = child.communicate(job.model_dump_json().encode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "message": f"not done after {timeout_s:g} s, the scenario's timeout_s; killed"}
    finally:
        _kill(child)
    return _parsed(output) or _died(child.returncode, errors.decode(errors="replace"), kills)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End the child and whatever it started; nothing if it has ended."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for stream in (child.stdin, child.stdout, child.stderr):
        stream.close()


def _parsed(output: bytes) -> dict[str, Any] | None:
    """The last RESULT line as an object with a status, else None."""
    for line in reversed(output.decode(errors="replace").splitlines()):
        if line.startswith(RESULT):
            try:
                result = json.loads(line[len(RESULT) :])
            except ValueError:
                return None
            return result if isinstance(result, dict) and "status" in result else None
    return None


def _died(code: int, errors: str, kills_before: int | None) -> dict[str, Any]:
    tail = f"; its last words: {errors.strip()[-TAIL:]}" if errors.strip() else ""
    if code >= 0:
        return {"status": "error", "message": f"the worker ended with exit code {code} and no result{tail}"}
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    kills = _memory_kills()
    if name == "SIGKILL" and (kills is None or kills > kills_before):
        sure = (
            "the kernel's out-of-memory killer" if kills is not None else "most likely the kernel, for lack of memory"
        )
        return {"status": "oom", "message": f"the worker was killed by {sure}{tail}"}
    return {"status": "error", "message": f"the worker was ended by {name}{tail}"}


def _memory_kills() -> int | None:
    """How many processes the kernel has killed for lack of memory since boot; None where it does not say."""
    try:
        found = re.search(r"^oom_kill (\d+)$", _KERNEL_EVENTS.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None
