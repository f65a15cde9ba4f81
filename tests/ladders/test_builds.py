import os
import subprocess

import pytest

from ladders import builds
from ladders.builds import BuildError, build, checkout, resolve
from ladders.compare import release_of
from ladders.launch import interpreter, known_to, search_path
from tests.ladders.history import git
from tests.ladders.project import make_project


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNO_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "project"


def test_a_build_is_made_once_and_goes_before_what_is_installed(project, job):
    (commit,) = make_project(project, [("7.7", 1.0, "aa")])
    told = []
    folder = build(project, commit, told.append)
    assert told == [f"building {commit[:10]}"]
    assert build(project, commit, told.append) == folder
    assert len(told) == 1
    assert release_of(folder) == "7.7"
    program = "import ladders.worker, numpy; print(ladders.worker.__file__)"
    environment = os.environ | search_path(folder)
    found = subprocess.run([*interpreter(folder), "-c", program], env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == str(folder / "ladders" / "worker.py"), found.stderr
    assert git(project, "worktree", "list").count("\n") == 0


def test_an_older_worker_is_told_only_what_it_knows(project, job):
    (commit,) = make_project(project, [("0.1", 1.0, "aa")])
    told = known_to(build(project, commit), job("ladders.contenders.engine"))
    assert set(told["knobs"]) == {"objective", "n_threads"}
    assert set(told) == {"module", "knobs", "folder", "data_hash", "parent"}


def test_a_build_without_a_worker_says_so(tmp_path, job):
    (tmp_path / "ladders").mkdir()
    (tmp_path / "ladders" / "__init__.py").write_text("")
    with pytest.raises(RuntimeError, match="no worker that can be asked"):
        known_to(tmp_path, job("ladders.contenders.engine"))


def test_what_does_not_build_is_remembered_with_its_log(project, monkeypatch):
    (commit,) = make_project(project, [None])
    with pytest.raises(BuildError, match=r"does not build: .*failed\.log"):
        build(project, commit)
    monkeypatch.setattr(builds, "_make", None)  # not tried again: nothing is left that could
    with pytest.raises(BuildError, match="backend-unavailable"):
        build(project, commit)


def test_an_interrupted_build_leaves_nothing(project, monkeypatch):
    (commit,) = make_project(project, [("0.1", 1.0, "aa")])

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(builds, "_pip", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build(project, commit)
    assert [path.name for path in builds.builds_folder().iterdir() if path.is_dir()] == []
    assert release_of(build(project, commit)) == "0.1"
    assert git(project, "worktree", "list").count("\n") == 0


def test_revisions(project):
    (commit,) = make_project(project, [("0.1", 1.0, "aa")])
    git(project, "tag", "v0.1")
    assert resolve(project, "v0.1") == resolve(project, "main") == resolve(project, commit[:8]) == commit
    for nonsense in ("v0.2", "", "--all", "HEAD~9"):
        with pytest.raises(ValueError, match="no commit, tag or branch"):
            resolve(project, nonsense)
    with pytest.raises(ValueError, match="no commit"):
        resolve(project / "nowhere", "main")


def test_a_checkout_is_gone_afterwards(project):
    first, second = make_project(project, [("0.1", 1.0, "aa"), ("0.2", 1.0, "aa")])
    with checkout(project, first) as tree, checkout(project, first) as other:
        assert tree != other
        assert '"0.1"' in (tree / "pyproject.toml").read_text()
    assert not tree.exists()
    assert git(project, "rev-parse", "HEAD") == second
