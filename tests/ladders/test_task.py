import numpy as np
import pytest

from ladders.data.task import Task


def task(**changes):
    arrays = {
        "X_train": np.ones((3, 2), np.float32),
        "y_train": np.zeros(3, np.float32),
        "X_test": np.ones((1, 2), np.float32),
        "y_test": np.zeros(1, np.float32),
        "feature_names": ("a", "b"),
    }
    return Task(**{**arrays, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"X_train": np.ones((3, 2))},
        {"y_train": np.zeros(3, np.int64)},
        {"X_train": np.asfortranarray(np.ones((3, 2), np.float32))},
        {"y_train": np.zeros(2, np.float32)},
        {"feature_names": ("a",)},
        {"X_test": np.ones((0, 2), np.float32), "y_test": np.zeros(0, np.float32)},
    ],
)
def test_refuses_what_contenders_would_read_differently(changes):
    with pytest.raises(ValueError, match="part"):
        task(**changes)


def test_digest_sees_every_part():
    whole = task()
    other = np.ones((3, 2), np.float32)
    other[2, 1] = np.nextafter(np.float32(1), np.float32(2))
    changed = [
        task(X_train=other),
        task(y_test=np.ones(1, np.float32)),
        task(feature_names=("b", "a")),
        task(X_train=np.ones((2, 2), np.float32), y_train=np.zeros(2, np.float32)),
    ]
    assert whole.digest() == task().digest()
    assert len({whole.digest(), *(item.digest() for item in changed)}) == 5
