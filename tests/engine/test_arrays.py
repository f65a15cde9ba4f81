"""Arrays that know only DLPack, and arrays that lie where nobody here can read."""

import numpy as np
import pytest

import engine
from engine.arrays import as_numpy
from engine.columns import Columns
from engine.errors import DataError


class Tensor:
    """Offers a NumPy array by DLPack alone, from a device of choice (1: host, 8: Metal)."""

    def __init__(self, array, device=1):
        self._array, self._device = array, device

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._device, 0


def test_features_and_labels_by_dlpack_are_viewed():
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3, dtype=np.float32)
    assert np.shares_memory(Columns.of(Tensor(X)).arrays[1], X)
    data = engine.Dataset(Tensor(X), Tensor(y))
    assert data.label.tolist() == [0, 1, 2]


def test_what_lies_on_another_kind_of_device_is_refused_with_the_remedy():
    given = Tensor(np.zeros((3, 2)), device=8)
    with pytest.raises(DataError, match=r"^X is a .*Tensor on a device that is not CUDA's.*pass a host copy"):
        Columns.of(given)
    with pytest.raises(DataError, match=r"^label is a .* that is not CUDA's"):
        engine.Dataset(np.zeros((3, 2)), given)


def test_what_its_library_will_not_hand_out_is_refused_by_name():
    class Guarded:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("detach it first")

    with pytest.raises(DataError, match="weight cannot be read as an array: detach it first"):
        as_numpy("weight", Guarded())
