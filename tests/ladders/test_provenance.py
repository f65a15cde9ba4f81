import subprocess

import pytest

from ladders.provenance import read_provenance


@pytest.fixture
def checkout(tmp_path):
    """A git repository with one commit."""
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "a.py").write_text("1\n")
    (tmp_path / "README.md").write_text("read\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "-m", "first")
    return tmp_path


def git(folder, *arguments):
    return subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True, text=True).stdout


def test_clean(checkout):
    found = read_provenance(checkout)
    assert found.commit == git(checkout, "rev-parse", "HEAD").strip()
    assert not found.dirty
    assert "+" not in found.release


def test_documentation_moves_no_figure(checkout):
    (checkout / "README.md").write_text("changed\n")
    assert not read_provenance(checkout).dirty


def test_each_difference_is_a_release_of_its_own(checkout):
    releases = {read_provenance(checkout).release}
    (checkout / "engine" / "a.py").write_text("2\n")
    releases.add(read_provenance(checkout).release)
    assert read_provenance(checkout).dirty
    (checkout / "engine" / "new.py").write_text("3\n")
    releases.add(read_provenance(checkout).release)
    (checkout / "engine" / "new.py").write_text("4\n")
    releases.add(read_provenance(checkout).release)
    assert len(releases) == 4


def test_outside_git(tmp_path):
    found = read_provenance(tmp_path)
    assert (found.commit, found.dirty) == (None, False)
