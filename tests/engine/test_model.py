import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from engine import modelfile
from engine.dataset import Dataset
from engine.errors import DataError, EngineError, ModelError, ParamError
from engine.forest import Forest
from engine.model import Model
from engine.params import parse_params
from engine.session import train
from tests.engine.growing import RESPONSES

NAMES = ("speed", "größe", "x y")


def make_data(n_rows: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n_rows, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.15] = np.nan
    y = (np.nan_to_num(X[:, 0]) + np.isnan(X[:, 1]) > 0.3).astype(np.float32)
    return X, y


def make_model(n_estimators: int = 3, **params) -> Model:
    X, y = make_data()
    data = Dataset(X, y, feature_names=NAMES)
    return train({"device": "reference", "n_estimators": n_estimators, "max_depth": 3, **params}, data)


@pytest.fixture(scope="module")
def model() -> Model:
    return make_model()


def walk(model: Model, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Margins and leaves, one row and one node at a time, from nothing but the tree arrays."""
    margins, leaves = [], []
    for row in X.astype(np.float64):
        margin = model.base_margin
        for index in range(len(model.forest)):
            tree, node = model.forest.tree(index), 0
            while not tree.leaf[node]:
                value = row[tree.feature[node]]
                left = tree.missing_left[node] if np.isnan(value) else value < tree.threshold[node]
                node = tree.left[node] if left else tree.right[node]
            margin = np.float32(margin + tree.value[node])
            leaves.append(node)
        margins.append(margin)
    return np.array(margins, dtype=np.float32), np.array(leaves, dtype=np.int32).reshape(len(X), len(model.forest))


@pytest.mark.parametrize("objective", RESPONSES)
def test_prediction_is_the_walk_through_the_trees(objective):
    model = make_model(objective=objective)
    X, _ = make_data()
    margins, leaves = walk(model, X)
    assert len(np.unique(margins)) > 3
    found = model.predict(X, output="margin", n_threads=2)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, margins)
    response = model.predict(X)
    assert response.dtype == np.float64
    np.testing.assert_array_equal(response, RESPONSES[objective](margins))
    found_leaves = model.predict_leaf(X)
    assert found_leaves.dtype == np.int32
    np.testing.assert_array_equal(found_leaves, leaves)


CONTAINERS = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=list(NAMES)),
    "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "integer labels": pd.DataFrame,
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": lambda X: pickle.loads(pickle.dumps(X)).view(),
    "float64": lambda X: X.astype(np.float64),
}


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("n_rows", [0, 1, 50])
def test_every_container_predicts_alike(model, container, n_rows):
    X = make_data()[0][:n_rows]
    margins, leaves = walk(model, X)
    contained = CONTAINERS[container](X)
    np.testing.assert_array_equal(model.predict(contained, output="margin"), margins)
    assert model.predict(contained).shape == (n_rows,)
    found = model.predict_leaf(contained)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, leaves)


@pytest.mark.parametrize("n_rows", [0, 3])
@pytest.mark.parametrize("make", [lambda d: d, pa.Table.from_pandas, pl.from_pandas])
def test_names_that_differ_are_refused_naming_the_first(model, make, n_rows):
    right = pd.DataFrame(np.zeros((n_rows, 3)), columns=NAMES)
    with pytest.raises(DataError, match=r"feature 1 of X is 'x y', but .* 'größe' there: reorder"):
        model.predict(make(right[["speed", "x y", "größe"]]))
    with pytest.raises(DataError, match=r"feature 0 of X is 'Speed', but .* 'speed' there: rename"):
        model.predict_leaf(make(right.rename(columns={"speed": "Speed"})))
    with pytest.raises(DataError, match="X has 2 features, but the model expects 3"):
        model.predict(make(right[["speed", "größe"]]))


def test_a_column_called_names_is_no_list_of_names(model):
    X = pd.DataFrame(np.zeros((0, 3)), columns=["names", "columns", "column_names"])
    with pytest.raises(DataError, match="feature 0 of X is 'names'"):
        model.predict(X)


@pytest.mark.parametrize("n_features", [0, 1, 4])
@pytest.mark.parametrize("n_rows", [0, 2])
def test_a_wrong_number_of_features_is_refused(model, n_features, n_rows):
    with pytest.raises(DataError):
        model.predict(np.zeros((n_rows, n_features)))


def test_unfit_values_and_options_are_refused(model):
    X = np.zeros((4, 3))
    X[2, 1] = np.inf
    with pytest.raises(DataError, match="inf"):
        model.predict(X)
    for bad in (np.zeros(3), np.zeros((0, 3, 1)), np.array([["a", "b", "c"]]), None, 3):
        with pytest.raises(EngineError):
            model.predict(bad)
    with pytest.raises(ParamError, match="'response' or 'margin'"):
        model.predict(np.zeros((1, 3)), output="proba")
    with pytest.raises(ParamError, match="'gain', 'split' or 'cover'"):
        model.feature_importance("weight")


@pytest.mark.parametrize("objective", RESPONSES)
def test_a_file_comes_back_as_the_same_model(objective, tmp_path):
    model = make_model(objective=objective)
    model.save(tmp_path / "model")
    loaded = Model.load(str(tmp_path / "model"))
    assert loaded.to_bytes() == model.to_bytes() == (tmp_path / "model").read_bytes()
    assert loaded.feature_names == NAMES
    assert loaded.params.identity() == model.params.identity()
    assert (loaded.history, loaded.profile) == ({}, {})
    X, _ = make_data()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_the_file_knows_nothing_of_device_threads_or_time(model):
    other = Model(
        model.forest, parse_params(model.params, device="cpu", n_threads=3), model.base_margin, NAMES, {"rmse": [1.0]}
    )
    other.profile = {"seconds": 3.0}
    assert other.to_bytes() == model.to_bytes()


def test_any_changed_or_missing_byte_of_the_file_is_refused():
    data = make_model(n_estimators=1, max_depth=1).to_bytes()
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0xFF
        with pytest.raises(ModelError):
            Model.from_bytes(bytes(damaged))
        with pytest.raises(ModelError):
            Model.from_bytes(data[:at])


def test_load_names_the_file(tmp_path):
    (tmp_path / "model").write_bytes(b"something else")
    with pytest.raises(ModelError, match=r"/model: not a model file"):
        Model.load(tmp_path / "model")
    with pytest.raises(FileNotFoundError):
        Model.load(tmp_path / "absent")


def forged(model: Model, *, header: dict | None = None, arrays: dict | None = None) -> bytes:
    """A file with a true digest over changed content; None takes a key away."""
    old_header, old_arrays = modelfile.unpack(model.to_bytes())
    new = [{**old, **(more or {})} for old, more in ((old_header, header), (old_arrays, arrays))]
    return modelfile.pack(*({k: v for k, v in content.items() if v is not None} for content in new))


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"device": "cpu"}, r"header do not fit: unknown \['device'\]"),
        ({"params": None}, r"missing \['params'\]"),
        ({"params": {}}, "incomplete"),
        ({"params": 3}, "parameters"),
        ({"params": {"depth": 3}}, "unknown parameter 'depth'"),
        ({"params": {"learning_rate": -1.0}}, "learning_rate"),
        ({"params": parse_params().model_dump()}, "name a device"),
        ({"base_margin": 0.1}, "not a float32"),
        ({"base_margin": 1e300}, "not a float32"),
        ({"base_margin": "0"}, "not a float32"),
        ({"feature_names": "abc"}, "not a list"),
        ({"feature_names": []}, "names of its features"),
        ({"feature_names": [1, 2, 3]}, "names of its features"),
        ({"feature_names": ["a"]}, "splits on feature"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_with_the_reason(model, header, reason):
    with pytest.raises(ModelError, match=reason):
        Model.from_bytes(forged(model, header=header))


def test_trees_that_do_not_fit_are_refused_with_the_reason(model):
    cycle = model.forest.left.copy()
    cycle[1] = 0
    for arrays, reason in [
        ({"extra": np.zeros(1)}, r"unknown \['extra'\]"),
        ({"gain": None}, r"missing \['gain'\]"),
        ({"left": cycle}, "must come after its parent"),
        ({"gain": model.forest.gain.astype(np.float32)}, "'gain' must be"),
        ({"feature": model.forest.feature + np.int32(9)}, "feature"),
    ]:
        with pytest.raises(ModelError, match=reason):
            Model.from_bytes(forged(model, arrays=arrays))


def test_pickle_and_copy_keep_what_the_file_does_not():
    X, y = make_data()
    data = Dataset(X, y)
    params = {"device": "reference", "n_estimators": 2, "n_threads": 1}
    model = train(params, data, eval_set=Dataset(X, y, cuts_from=data))
    assert model.history
    assert model.profile
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.to_bytes() == model.to_bytes()
        assert (other.history, other.profile, other.params) == (model.history, model.profile, model.params)


def test_frame_has_one_row_a_node(model):
    frame = model.trees_to_frame()
    assert len(frame) == len(model.forest.feature)
    inner = frame[~frame["leaf"]]
    assert set(inner["feature"]) <= set(NAMES)
    assert frame.loc[frame["leaf"], "feature"].isna().all()
    root = frame[(frame["tree"] == 2) & (frame["node"] == 0)].iloc[0]
    children = frame[(frame["tree"] == 2) & frame["node"].isin([root["left"], root["right"]])]
    assert children["count"].sum() == root["count"] == 200
    assert children["cover"].sum() == root["cover"]


def test_importance_sums_over_the_splits(model):
    inner = model.trees_to_frame().query("not leaf")
    for kind, expected in {
        "gain": inner.groupby("feature")["gain"].sum(),
        "cover": inner.groupby("feature")["cover"].sum(),
        "split": inner.groupby("feature").size(),
    }.items():
        found = model.feature_importance(kind)
        assert list(found.index) == list(NAMES)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected.reindex(NAMES, fill_value=0), rtol=1e-12)


@pytest.mark.parametrize("is_ingested", [False, True])
@pytest.mark.parametrize("own_cuts", [False, True])
def test_a_dataset_is_predicted_as_its_rows_are(model, is_ingested, own_cuts):
    """Whether or not there are bins, and whether they are of the training cuts or not."""
    X, y = make_data()
    trained_on = Dataset(X, y, feature_names=NAMES)
    rows = X[::-1][:60]
    weight = np.arange(60) % 3
    data = Dataset(rows, weight=weight, cuts_from=None if own_cuts else trained_on)
    if is_ingested:
        data.ingest("cpu")
    kept = rows[weight > 0]
    margins, leaves = walk(model, kept)
    np.testing.assert_array_equal(model.predict(data, output="margin"), margins)
    np.testing.assert_array_equal(model.predict(data, output="margin", device="emulated"), margins)
    for device in ("cpu", "emulated"):
        np.testing.assert_array_equal(model.predict(data, device=device), RESPONSES["squared_error"](margins))
    np.testing.assert_array_equal(model.predict_leaf(data), leaves)


def test_a_dataset_of_other_columns_is_refused(model):
    X = make_data()[0]
    with pytest.raises(DataError, match="2 features, but the model expects 3"):
        model.predict(Dataset(X[:, :2]))
    with pytest.raises(DataError, match="feature 0 of X is 'a'"):
        model.predict(Dataset(X, feature_names=["a", "b", "c"]).ingest())


@pytest.mark.parametrize("trees", [0, 1])
def test_a_model_without_a_split_predicts_its_base(model, trees):
    stumps = Forest.of([make_model(gamma=1e9).forest.tree(0)] * trees)
    bare = Model(stumps, model.params, np.float32(0.5), NAMES)
    bare = Model.from_bytes(bare.to_bytes())
    expected = np.float32(0.5) + (stumps.value[0] if trees else np.float32(0))
    np.testing.assert_array_equal(bare.predict(np.zeros((3, 3))), np.full(3, expected))
    assert bare.predict_leaf(np.zeros((3, 3))).shape == (3, trees)
    assert (bare.feature_importance() == 0).all()
    assert bare.best_iteration == trees - 1


def test_a_base_margin_that_is_no_number_is_refused(model):
    for bad in (np.nan, np.inf):
        with pytest.raises(ModelError, match="base margin"):
            Model(model.forest, model.params, np.float32(bad), NAMES)


def test_import_leaves_pandas_and_sklearn_alone():
    code = (
        "import sys, engine.model; print([m for m in ('pandas', 'sklearn', 'polars', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
