import pytest

from probes.checks.versions import LIBRARIES, VersionsProbe, built_for
from tests.probes.played import checks_of


@pytest.mark.parametrize(
    ("library", "installed", "major"),
    [
        ("xgboost", {"xgboost": "3.4.1", "nvidia-nccl-cu13": "2.28"}, 13),
        ("xgboost", {"xgboost": "3.2.0", "nvidia-nccl-cu12": "2.28"}, 12),
        ("xgboost", {"xgboost-cu12": "3.4.1", "nvidia-nccl-cu13": "2.28"}, 12),
        ("xgboost", {"xgboost": "3.4.1"}, None),
        ("xgboost", {"xgboost-cpu": "3.2.0", "nvidia-nccl-cu13": "2.28"}, 0),
        ("xgboost", {}, 0),
        ("catboost", {"catboost": "1.2.10"}, 11),
        ("lightgbm", {"lightgbm": "4.7.0"}, None),
        ("bonsai", {"bonsai-gbt": "2.10.0"}, 12),
        ("cupy", {"cupy-cuda12x": "13.6"}, 12),
        ("cupy", {"cupy-cuda12x": "13.6", "cupy-cuda13x": "14.2"}, 13),
        ("cupy", {"cupy": "14.2"}, None),
    ],
)
def test_what_a_wheel_was_built_for(library, installed, major):
    found, why = built_for(library, installed)
    assert found == major
    assert why


@pytest.mark.parametrize(
    ("driver", "verdict"), [("12.4", "fail"), ("12.9", "fail"), ("13.0", "pass"), ("14.1", "pass")]
)
def test_a_wheel_newer_than_the_driver(tmp_path, driver, verdict):
    """Minor versions are compatible within a major (CUDA's minor version compatibility)."""
    found = checks_of(VersionsProbe(), tmp_path, nvml={"driver_cuda": driver})
    assert found["driver-xgboost"].verdict == verdict
    assert found["driver-cupy"].verdict == verdict
    assert found["driver-catboost"].verdict == "pass"


def test_what_is_not_installed_cannot_mismatch(tmp_path):
    nothing = dict.fromkeys(("bonsai-gbt", "catboost", "cupy-cuda13x", "nvidia-cuda-nvrtc", "xgboost"))
    found = checks_of(VersionsProbe(), tmp_path, libraries=nothing, nvml={"driver_cuda": "11.0"})
    assert {check.value for check in found.values()} == {"absent"}


@pytest.mark.parametrize(
    ("compiler", "verdict"),
    [
        ({"nvidia-cuda-nvrtc": "13.5.37"}, "pass"),
        ({"nvidia-cuda-nvrtc": None}, "unknown"),
        ({"nvidia-cuda-nvrtc": None, "nvidia-cuda-nvrtc-cu12": "12.8"}, "unknown"),
    ],
)
def test_the_compiler_of_cupys_cuda(tmp_path, compiler, verdict):
    assert checks_of(VersionsProbe(), tmp_path, libraries=compiler)["nvrtc"].verdict == verdict


def test_without_a_driver_all_is_unknown(tmp_path):
    found = checks_of(VersionsProbe(), tmp_path, nvml={"raises": "no driver"})
    assert {check.verdict for check in found.values()} == {"unknown"}
    assert len(found) == len(LIBRARIES) + 1
