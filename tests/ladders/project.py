"""A throwaway project that builds in a second, with a worker of the ladders that shows what a commit plants."""

import json

from tests.ladders.history import git

PYPROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "gbt-dyno"
version = "{version}"
[tool.setuptools]
packages = ["ladders"]
"""

WORKER = """
import json, sys
from pydantic import BaseModel, ConfigDict

class Knobs(BaseModel):  # an older table: fewer knobs than the job is made with, and nothing else is taken
    model_config = ConfigDict(extra="forbid")
    objective: str
    n_threads: int

class Job(BaseModel):
    model_config = ConfigDict(extra="forbid")
    module: str
    knobs: Knobs
    folder: str
    data_hash: str
    parent: int

SECONDS = {seconds}

if __name__ == "__main__":
    job = Job.model_validate_json(sys.stdin.read())
    seconds = SECONDS if job.module.endswith("engine") else 2.0
    result = {{"status": "ok", "message": None, "ingest_s": 0.5, "train_s": seconds, "fit_s": seconds + 0.5}}
    result |= {{"predict_s": 0.1, "metric": "rmse", "value": 24.5, "knobs_found": {{"n_threads": job.knobs.n_threads}}}}
    result |= {{"device": "cpu", "phases": {{"histogram": seconds}}, "model_digest": "{digest}"}}
    print("RESULT " + json.dumps(result))
"""


def make_project(folder, states):
    """A commit for each of (version, seconds, digest), or one that does not build for None; the hashes."""
    (folder / "ladders").mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "ladders" / "__init__.py").write_text("")
    commits = []
    for state in states:
        version, seconds, digest = state or ("0.1", 1.0, "aa")
        text = PYPROJECT.format(version=version)
        (folder / "pyproject.toml").write_text(
            text if state else text.replace("setuptools.build_meta", "no_such_backend")
        )
        (folder / "ladders" / "worker.py").write_text(WORKER.format(seconds=json.dumps(seconds), digest=digest * 32))
        git(folder, "add", ".")
        git(folder, "commit", "-q", "--allow-empty", "-m", "x")
        commits.append(git(folder, "rev-parse", "HEAD"))
    return commits
