"""What is launched keeps to what the kernels' headers say, from which occupancy and budget are computed."""

import numpy as np
import pytest

import engine
from engine.device.emulated import EmulatedDevice
from engine.growers import GROWERS
from engine.kernels import source_folder
from engine.kernels.headers import family_of, read_families
from engine.objectives import OBJECTIVES

FAMILIES = read_families(source_folder())


@pytest.fixture
def launches(monkeypatch):
    """Every launch on an emulated device, in order."""
    seen = []
    run = EmulatedDevice._run
    monkeypatch.setattr(
        EmulatedDevice, "_run", lambda device, launch, state: (seen.append(launch), run(device, launch, state))
    )
    return seen


@pytest.mark.parametrize(("grower", "objective"), list(zip(GROWERS, OBJECTIVES, strict=True)))
def test_blocks_and_shared_memory_are_the_headers(launches, grower, objective):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(700, 40)), rng.integers(0, 2, 700)
    data = engine.Dataset(X, y)
    params = {"grower": grower, "objective": objective, "n_estimators": 1, "max_depth": 3, "max_leaves": 6}
    model = engine.train(params | {"device": "emulated"}, data, eval_set=engine.Dataset(X, y, cuts_from=data))
    model.predict(X, device="emulated")
    names = {launch.kernel for launch in launches}
    assert any(name.startswith("build_tile") for name in names)
    assert {"predict", f"differentiate_{objective}"} <= names
    for launch in launches:
        family = family_of(launch.kernel, FAMILIES)
        assert launch.block == family.block, launch
        assert launch.shared_bytes <= family.shared, launch
