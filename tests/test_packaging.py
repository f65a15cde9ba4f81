"""The wheel: portable, complete without the source tree, and with nothing that was measured here in it."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def build_wheel(folder):
    options = ["--no-deps", "--no-build-isolation", f"--config-settings=build-dir={folder}/build"]
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", *options, "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(once):
    (path,) = once("wheel", build_wheel).glob("*.whl")
    return path


def test_holds_all_that_runs(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for room in ("engine", "probes", "ladders", "results"):
        sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / room).rglob("*.py")}
        assert sources <= names
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "ladders/scenarios").glob("*.toml")} <= names
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "engine/kernels").glob("*.cuh")} <= names
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "probes/kernels").glob("*.cu")} <= names
    assert {"engine/kernels/budget.toml", "engine/_emulator.so", "probes/thresholds.toml"} <= names
    assert any(re.fullmatch(r"engine/_native\..*\.so", name) for name in names)


def test_holds_no_sources_of_the_build_and_no_results(wheel):
    for name in zipfile.ZipFile(wheel).namelist():
        assert not name.endswith((".cpp", ".hpp", ".jsonl"))
        assert not name.startswith(("tests/", "results/local", "results/records"))


def test_runs_where_the_source_tree_is_not(wheel, tmp_path):
    """Unpacked into an empty folder and imported from there, in a process that sees no editable install."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'Editable' not in type(f).__name__ "
        "and 'ScikitBuild' not in type(f).__name__]; sys.path.insert(0, '.');"
        "import engine, numpy as np; X = np.arange(20.0).reshape(10, 2);"
        "model = engine.train({'n_estimators': 2}, engine.Dataset(X, X[:, 0]));"
        "print(engine.__file__, len(model.forest), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [str(tmp_path / "engine" / "__init__.py"), "2"]


def test_is_built_for_no_particular_processor():
    """Wider instruction sets are chosen at run time (engine/native/instruction_set.hpp), never by the build."""
    settings = re.sub(r"#.*", "", (ROOT / "CMakeLists.txt").read_text())
    assert "-ffp-contract=off" in settings
    assert re.findall(r"-m(?:arch|tune|cpu|avx|fma)\S*", settings) == []
