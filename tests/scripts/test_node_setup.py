"""The setup of a rented node, as far as it goes without one: on a wheel that installs a `dyno` of known words."""

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/node_setup.sh"
TAG = f"cp3{sys.version_info.minor}"


@pytest.fixture
def node(tmp_path):
    """A home with the script and a wheel beside it; nothing can be fetched."""
    folder = tmp_path / "node"
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    wheel(folder, verdict=0)
    return folder


def wheel(folder, verdict, tag=TAG):
    """gbt-dyno with a `dyno probe` that says what it was asked and exits so."""
    path = folder / f"gbt_dyno-0.1.0-{tag}-none-any.whl"
    info = "gbt_dyno-0.1.0.dist-info"
    extras = "".join(
        f"Provides-Extra: {x}\n" for x in ("peers", "cuda12", "peers-cuda12", "cuda13", "peers-cuda13", "bonsai")
    )
    module = f"import sys\ndef main():\n    print('asked:', *sys.argv[1:])\n    return {verdict}\n"
    files = {
        "stub_dyno.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: gbt-dyno\nVersion: 0.1.0\n{extras}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ndyno = stub_dyno:main\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"]))
    return path


def setup(node, *arguments, **environment):
    clean = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return subprocess.run(
        ["bash", str(node / SCRIPT.name), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=node,
        env={**clean, "HOME": str(node), "PYTHON": sys.executable, "PIP_NO_INDEX": "1", **environment},
    )


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A libcuda of a CUDA version: ``LD_LIBRARY_PATH`` to find it."""

    def of(version):
        folder = tmp_path_factory.mktemp("driver")
        source = folder / "cuda.c"
        source.write_text(f"int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}\n")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source], check=True)
        return {"LD_LIBRARY_PATH": str(folder)}

    return of


def test_shellcheck_finds_nothing():
    checker = Path(sysconfig.get_path("scripts")) / "shellcheck"
    done = subprocess.run([checker, SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_it_sets_up_and_probes_and_may_be_run_again(node, driver):
    libraries = driver(13000)["LD_LIBRARY_PATH"]
    first = setup(node, "--cpu", LD_LIBRARY_PATH=libraries, RUNPOD_API_KEY="hush", CUDA_VISIBLE_DEVICES="0 1")
    assert first.returncode == 0, first.stderr
    assert "asked: probe --for cpu" in first.stdout
    made = (node / "gbt-dyno/venv/pyvenv.cfg").stat().st_mtime_ns

    kept = (node / "gbt-dyno/env.sh").read_text()
    assert "hush" not in kept, "a token of the provider's reached a file"
    assert login(node) == [f"{node}/gbt-dyno/results", f"{libraries},0 1", str(node / "gbt-dyno/venv/bin/dyno")]

    wheel(node, verdict=4)  # built anew, of the same version
    again = setup(node, "--cpu")
    assert again.returncode == 4, again.stderr
    assert "hand the node back" in again.stderr
    assert (node / "gbt-dyno/venv/pyvenv.cfg").stat().st_mtime_ns == made


def login(node):
    """What a shell that sshd opened finds after sourcing what the setup wrote."""
    words = (
        ". gbt-dyno/env.sh && echo $DYNO_RESULTS_DIR && echo $LD_LIBRARY_PATH,$CUDA_VISIBLE_DEVICES && command -v dyno"
    )
    clean = {"PATH": os.environ["PATH"]}
    return subprocess.run(
        ["bash", "-c", words], capture_output=True, text=True, cwd=node, env=clean, check=True
    ).stdout.splitlines()


def test_a_check_does_nothing(node, driver):
    before = sorted(node.rglob("*"))
    done = setup(node, "--check", **driver(12040))
    assert done.returncode == 0, done.stderr
    assert "[cuda12,peers-cuda12,bonsai]" in done.stdout
    assert sorted(node.rglob("*")) == before


@pytest.mark.parametrize(
    ("version", "extras"), [(12080, "cuda12,peers-cuda12"), (13000, "cuda13,"), (14010, "cuda13,")]
)
def test_the_driver_decides_what_is_installed(node, driver, version, extras):
    assert extras in setup(node, "--check", **driver(version)).stdout


def test_a_driver_too_old_and_none(node, driver):
    old = setup(node, "--check", **driver(11080))
    assert (old.returncode, "CUDA 11 at most" in old.stderr) == (1, True)
    none = setup(node, "--check", **driver(0))
    assert (none.returncode, "no NVIDIA driver answers" in none.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--gpu"], 2, "unknown option"),
        (["a.whl", "b.whl"], 2, "one wheel is enough"),
        (["absent-cp311-.whl"], 2, "no such wheel"),
        (["--help"], 0, ""),
    ],
)
def test_usage(node, arguments, code, said):
    done = setup(node, *arguments)
    assert done.returncode == code
    assert said in done.stderr


def test_a_wheel_of_another_python_or_of_none(node):
    other = wheel(node, verdict=0, tag="cp399")
    assert "the wheel is for Python 3.99" in setup(node, "--check", "--cpu", other).stderr
    assert "does not name its Python" in setup(node, "--check", "--cpu", SCRIPT).stderr
    for path in node.glob("*.whl"):
        path.unlink()
    assert "no gbt_dyno-*.whl beside this script" in setup(node, "--check", "--cpu").stderr


def test_a_home_that_cannot_be_made(node):
    (node / "file").touch()
    done = setup(node, "--cpu", DYNO_HOME=str(node / "file/home"))
    assert done.returncode == 1
    assert "file" in done.stderr
