import numpy as np
import pytest

from ladders.data import synthetic
from ladders.data.sources import SOURCES
from ladders.data.synthetic import make_msd_shaped, make_tall


@pytest.fixture(scope="module")
def songs():
    return make_msd_shaped(scale=0.02)


def test_shape_of_the_song_data(songs):
    assert songs.X_train.shape == (round(463_715 * 0.02), 90)
    assert songs.X_test.shape == (round(51_630 * 0.02), 90)
    assert len(set(songs.feature_names)) == 90


def test_columns_differ_in_scale_and_are_correlated(songs):
    spread = songs.X_train.std(axis=0)
    assert spread.max() / spread.min() > 1e3
    correlation = np.abs(np.corrcoef(songs.X_train, rowvar=False))
    assert (correlation[np.triu_indices(90, 1)] > 0.3).sum() > 100


def test_the_label_is_skewed_finite_and_learnable(songs):
    y = songs.y_train.astype(np.float64)
    assert np.isfinite(songs.X_train).all()
    assert np.isfinite(y).all()
    assert ((y - y.mean()) ** 3).mean() / y.std() ** 3 < -0.5
    design = np.column_stack([songs.X_train, np.ones(len(y))]).astype(np.float64)
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert residual.std() < 0.95 * y.std()


def test_tall_is_friedmans_function():
    task = make_tall(rows=20_000, columns=7, seed=5)
    x = task.X_train.astype(np.float64)
    signal = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    noise = task.y_train - signal
    assert abs(noise.mean()) < 0.1
    assert noise.std() == pytest.approx(signal.std() / 3, rel=0.05)
    assert np.abs(np.corrcoef(np.column_stack([noise, x]), rowvar=False)[0, 1:]).max() < 0.05


@pytest.mark.parametrize(("columns", "blocks"), [(5, 1), (9, 1), (10, 2), (20, 4), (60, 4)])
def test_tall_has_up_to_twenty_informative_columns(columns, blocks):
    task = make_tall(rows=4_000, columns=columns)
    linear = [abs(np.corrcoef(task.X_train[:, j], task.y_train)[0, 1]) for j in range(columns)]
    assert [j for j in range(3, columns, 5) if linear[j] > 0.15] == [5 * block + 3 for block in range(blocks)]


def test_the_first_rows_do_not_depend_on_how_many_follow(monkeypatch):
    monkeypatch.setattr(synthetic, "CHUNK", 256)
    few, many = make_tall(rows=300, columns=5), make_tall(rows=900, columns=5)
    assert np.array_equal(few.X_train, many.X_train[:300])
    assert np.array_equal(few.y_train, many.y_train[:300])


def test_seeds_and_parts_differ():
    one, other = make_tall(rows=300, columns=5, seed=1), make_tall(rows=300, columns=5, seed=2)
    assert not np.array_equal(one.X_train, other.X_train)
    assert not np.array_equal(one.X_train[:60], one.X_test[:60])


def small_songs(**more):
    return make_msd_shaped(scale=0.01, **more)


def small_tall(**more):
    return make_tall(rows=9000, columns=5, **more)


@pytest.mark.parametrize("make", [small_songs, small_tall])
def test_the_classes_are_the_same_rows_on_either_side_of_the_median(make):
    value, classes = make(), make(label="above-median")
    assert classes.y_train.dtype == np.float32
    assert 0.45 < classes.y_train.mean() < 0.55
    for part in ("train", "test"):
        assert np.array_equal(getattr(value, f"X_{part}"), getattr(classes, f"X_{part}"))
        above = getattr(classes, f"y_{part}") == 1
        assert set(getattr(classes, f"y_{part}")) == {0.0, 1.0}
        assert getattr(value, f"y_{part}")[~above].max() < value.y_train[classes.y_train == 1].min()
        assert getattr(value, f"y_{part}")[above].min() > value.y_train[classes.y_train == 0].max()


def test_the_threshold_does_not_depend_on_the_rows():
    few, many = (make_tall(rows=rows, columns=5, label="above-median") for rows in (300, 900))
    assert np.array_equal(few.y_train, many.y_train[:300])


def test_test_rows_may_be_chosen():
    task = make_tall(rows=100, columns=5, test_rows=3000)
    assert (len(task.y_train), len(task.y_test)) == (100, 3000)
    assert np.array_equal(task.X_test[:20], make_tall(rows=100, columns=5).X_test)


@pytest.mark.parametrize("wrong", [{"label": "class"}, {"test_rows": -1}, {"rows": 0}, {"columns": 4}])
def test_tall_refuses(wrong):
    with pytest.raises(ValueError, match=r"label|at least"):
        make_tall(**{"rows": 10, "columns": 5, **wrong})


def test_one_row():
    task = make_tall(rows=1, columns=5)
    assert task.X_train.shape == (1, 5)
    assert task.X_test.shape == (1, 5)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("tall", {"rows": 1234, "columns": 7}),
        ("tall", {"rows": 9, "columns": 5, "test_rows": 4}),
        ("msd-shaped", {}),
    ],
)
@pytest.mark.parametrize("scale", [1e-9, 0.003])
def test_the_shape_is_known_before_the_task_is_made(source, options, scale):
    task, shape = (how(scale=scale, **options) for how in (SOURCES[source].make, SOURCES[source].shape))
    assert shape == (*task.X_train.shape[:1], *task.X_test.shape)
    assert shape.nbytes == sum(array.nbytes for array in (task.X_train, task.y_train, task.X_test, task.y_test))


def test_very_wide_rows_are_drawn_a_few_at_a_time(monkeypatch):
    """The first rows still do not depend on how many follow; chunks of rows that are not wide are as they were."""
    monkeypatch.setattr(synthetic, "CHUNK_CELLS", 1000)
    few, more = (synthetic.make_tall(rows=rows, columns=100, test_rows=5) for rows in (25, 95))
    assert np.array_equal(few.X_train, more.X_train[:25])
    assert np.array_equal(few.y_train, more.y_train[:25])
    assert len(np.unique(more.X_train[:, 0])) == 95
