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
import sysconfig
from functools import cache
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


def launch(job: Job, timeout_s: float, build: Path | None = None) -> dict[str, Any]:
    """Run one job to its end.

    Parameters
    ----------
    job : Job
    timeout_s : float
        Of the whole process; then it is killed.
    build : Path, optional
        Folder of `ladders.builds.build`, whose packages run the job instead of ours; it is told only what it knows.

    Returns
    -------
    dict
        At least ``status`` (ok, rejected, oom, timeout or error) and ``message``; the worker's figures if it had any.
    """
    threads = {name: str(job.knobs.n_threads) for name in THREAD_VARIABLES}
    kills = _memory_kills()
    try:
        order = job.model_dump() if build is None else known_to(build, job)
    except RuntimeError as error:
        return {"status": "error", "message": str(error)}
    child = subprocess.Popen(
        [*interpreter(build), "-m", "ladders.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | threads | search_path(build),
        start_new_session=True,  # Ctrl-C is for the parent, which then ends the child in its own way
    )
    try:
        output, errors = child.communicate(json.dumps(order).encode(), timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "message": f"not done after {timeout_s:g} s, the scenario's timeout_s; killed"}
    finally:
        _kill(child)
    return _parsed(output) or _died(child.returncode, errors.decode(errors="replace"), kills)


def interpreter(build: Path | None) -> list[str]:
    """How Python is started. -P: the caller's directory may hold modules with our names. -S, for a build: an editable
    install announces itself to Python's `site`, ahead of every path."""
    return [sys.executable, "-P", *(["-S"] if build else [])]


def search_path(build: Path | None) -> dict[str, str]:
    """The variable that puts a build before what is installed; none without one."""
    folders = (build, *dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib")))
    return {"PYTHONPATH": os.pathsep.join(map(str, folders))} if build else {}


def known_to(build: Path, job: Job) -> dict[str, Any]:
    """The job without what a build's worker, of an earlier day, would refuse as unknown.

    Raises
    ------
    RuntimeError
        If the build has no worker of the ladders; names it.
    """
    schema = _job_schema(build)
    knobs = schema["$defs"]["Knobs"]["properties"]
    known = {name: value for name, value in job.model_dump().items() if name in schema["properties"]}
    return {**known, "knobs": {name: value for name, value in known["knobs"].items() if name in knobs}}


@cache
def _job_schema(build: Path) -> dict[str, Any]:
    program = "import json; from ladders.worker import Job; print(json.dumps(Job.model_json_schema()))"
    environment = os.environ | search_path(build)
    asked = subprocess.run([*interpreter(build), "-c", program], env=environment, capture_output=True, timeout=120)
    if asked.returncode:
        last = (asked.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
        raise RuntimeError(f"the packages in {build} have no worker that can be asked for a fit: {last}")
    return json.loads(asked.stdout)


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
