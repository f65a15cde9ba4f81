"""Imports run one way (DESIGN.md §2): read from the source of every module, whether or not it is ever imported."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ROOMS = {
    "engine": set(),
    "probes": set(),
    "results": set(),
    "ladders": {"engine", "probes", "results"},
    "benchmarks": {"engine", "probes", "results", "ladders"},
}

# Within the engine a module may import its own layer and those below it.
LAYERS = [
    {"errors", "tree", "numerics", "callbacks", "profile", "kernels", "cores", "modelfile"},
    {"params", "metrics", "objectives", "device", "forest", "cuts"}
    | {"arrays", "tables", "columns", "labels", "resident_columns"},
    {"backends", "predictor"},
    {"dataset", "growers", "model", "memory"},
    {"session"},
    {"estimators", "__init__"},
    {"cli"},
]


def modules(room):
    return sorted((ROOT / room).rglob("*.py"))


def imported(path, type_checking=False):
    """Dotted names a file imports, without those that only type checkers see."""
    tree = ast.parse(path.read_text())
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(id(child) for child in ast.walk(node))
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room they enter"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer_of(name):
    return next((i for i, layer in enumerate(LAYERS) if name in layer), None)


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_one_way(room):
    for path in modules(room):
        rooms = {name.split(".")[0] for name in imported(path)} & set(ROOMS) - {room}
        assert rooms <= ROOMS[room], f"{path.relative_to(ROOT)} imports {rooms - ROOMS[room]}"


def test_engine_layers_import_downwards():
    for path in modules("engine"):
        own = path.relative_to(ROOT / "engine").parts[0].removesuffix(".py")
        assert layer_of(own) is not None, f"engine/{own} has no layer: say in LAYERS where it stands"
        for name in imported(path):
            parts = name.split(".")
            if parts[0] != "engine" or parts[1] in ("_native", "_native_debug"):
                continue
            below = layer_of(parts[1])
            if below is None:  # a name of engine/__init__ itself
                below = layer_of("__init__")
            assert below <= layer_of(own), f"{path.relative_to(ROOT)} imports engine.{parts[1]} from above"


def test_only_the_cuda_device_and_the_live_probe_import_cupy():
    for room in ROOMS:
        for path in modules(room):
            if path.relative_to(ROOT).as_posix() not in ("engine/device/cuda.py", "probes/live/cuda.py"):
                assert not [name for name in imported(path) if name.split(".")[0] == "cupy"], path


@pytest.mark.parametrize("room", ROOMS)
def test_every_module_says_what_it_is_for(room):
    for path in modules(room):
        text = path.read_text()
        assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{path.relative_to(ROOT)} has no docstring"
