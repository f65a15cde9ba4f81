"""Arrays that know only DLPack, and arrays that lie on a GPU."""

import numpy as np
import pytest

import engine
from engine.arrays import as_numpy
from engine.columns import Columns
from engine.errors import DataError


class Tensor:
    """Offers a NumPy array by DLPack alone, from a device of choice (1: host, 2: GPU)."""

    def __init__(self, array, device=1):
        self._array, self._device = array, device

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._device, 0


class GpuArray:
    """As numba's: known by CUDA's array interface alone."""

    __cuda_array_interface__ = {"shape": (3, 2), "typestr": "<f4", "data": (16, False), "version": 3}  # noqa: RUF012


def test_features_and_labels_by_dlpack_are_viewed():
    X, y = np.arange(6.0).reshape(3, 2), np.arange(3, dtype=np.float32)
    assert np.shares_memory(Columns.of(Tensor(X)).arrays[1], X)
    data = engine.Dataset(Tensor(X), Tensor(y))
    assert data.label.tolist() == [0, 1, 2]


@pytest.mark.parametrize("given", [Tensor(np.zeros((3, 2)), device=2), GpuArray()])
def test_what_lies_on_a_gpu_is_refused_with_the_remedy(given):
    with pytest.raises(DataError, match=r"^X is a .*(Tensor|GpuArray) in the memory of a GPU.*\.get\(\)"):
        Columns.of(given)
    with pytest.raises(DataError, match=r"^label is a .* in the memory of a GPU"):
        engine.Dataset(np.zeros((3, 2)), given)


def test_what_its_library_will_not_hand_out_is_refused_by_name():
    class Guarded:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("detach it first")

    with pytest.raises(DataError, match="weight cannot be read as an array: detach it first"):
        as_numpy("weight", Guarded())
