from importlib.metadata import version

from probes.live.libraries import installed_libraries


def test_what_is_installed_here_is_found():
    found = installed_libraries()
    for name in ("lightgbm", "catboost", "nvidia-cuda-nvrtc"):
        assert found[name] == version(name)
    assert "numpy" not in found
    assert list(found) == sorted(found)


def test_names_are_normalised(tmp_path, monkeypatch):
    """pip writes them as the wheel does: ``nvidia_nccl_cu12``."""
    info = tmp_path / "nvidia_nccl_cu12-2.28.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia_nccl_cu12\nVersion: 2.28.9\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed_libraries()["nvidia-nccl-cu12"] == "2.28.9"


def test_a_broken_installation_is_passed_over(tmp_path, monkeypatch):
    (tmp_path / "xgboost-9.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert installed_libraries().get("xgboost") != "9"
