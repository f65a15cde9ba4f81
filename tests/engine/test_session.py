"""The state machine: what is refused before work, what a failure leaves behind, when a fit stops."""

import numpy as np
import pytest

import engine
from engine import Dataset, Session, State, train
from engine.backends import open_backend

DEVICES = ("reference", "cpu")


def make_data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] * 2 + np.sin(X[:, 1] * 3) + rng.normal(size=n) * 0.1
    return X, y


@pytest.fixture
def data():
    return Dataset(*make_data())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("grower", ["depthwise", "leafwise", "levelwise"])
def test_a_fit_learns(data, device, grower):
    X, y = make_data()
    model = train({"device": device, "grower": grower, "n_estimators": 30, "learning_rate": 0.3}, data)
    assert len(model.forest) == 30
    assert np.mean((model.predict(X) - y) ** 2) < 0.1 * np.var(y)


def test_the_margins_of_training_are_those_of_prediction(data):
    """The eval set is the training set: its last metric is the metric of what predict gives."""
    X, y = make_data()
    watched = Dataset(X, y, cuts_from=data)
    model = train({"n_estimators": 7, "objective": "squared_error"}, data, eval_set=watched)
    margin = model.predict(X, output="margin")
    assert model.history["eval0_rmse"][-1] == engine.objectives.get_objective("squared_error").metric(
        margin, watched.label, None
    )


def test_states_of_a_session_that_completes(data):
    seen = []
    session = Session({"n_estimators": 2}, data, callbacks=[lambda progress: seen.append(session.state)])
    assert session.state is State.CREATED
    session.run()
    assert seen == [State.ITERATING] * 2
    assert session.state is State.COMPLETED
    with pytest.raises(engine.SessionError, match="runs once"):
        session.run()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, MemoryError])
@pytest.mark.parametrize("device", DEVICES)
def test_a_failure_in_the_middle_releases_the_backend_and_spoils_nothing(data, error, device):
    def interrupt(progress):
        if progress.tree == 3:
            raise error("in the middle")

    session = Session({"n_estimators": 10, "device": device}, data, callbacks=[interrupt])
    with pytest.raises(error):
        session.run()
    assert session.state is State.FAILED
    again = train({"n_estimators": 10, "device": device}, data)
    assert again.to_bytes() == train({"n_estimators": 10, "device": device}, Dataset(*make_data())).to_bytes()


def test_a_callback_may_end_the_fit_only_by_saying_true(data):
    assert len(train({"n_estimators": 10}, data, callbacks=[lambda progress: progress.tree == 4]).forest) == 5
    assert len(train({"n_estimators": 10}, data, callbacks=[lambda progress: "yes"]).forest) == 10


def test_early_stopping_keeps_the_best_round(data):
    watched = Dataset(*make_data(seed=1), cuts_from=data)
    params = {"n_estimators": 400, "learning_rate": 0.5, "early_stopping_rounds": 5}
    model = train(params, data, eval_set=watched)
    metric = model.history["eval0_rmse"]
    assert len(metric) < 400
    assert model.best_iteration == int(np.argmin(metric)) == len(metric) - 6


def test_several_eval_sets_are_all_recorded(data):
    watched = [Dataset(*make_data(seed=s), cuts_from=data) for s in (1, 2)]
    history = train({"n_estimators": 3}, data, eval_set=watched).history
    assert {name: len(values) for name, values in history.items()} == {"eval0_rmse": 3, "eval1_rmse": 3}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_bin": 16}, "max_bin=16, but the dataset was cut with max_bin=255"),
        ({"early_stopping_rounds": 3}, "needs an eval_set"),
        ({"n_estimator": 3}, "did you mean 'n_estimators'"),
        ({"objective": "logistic"}, "'logistic' needs labels in"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(data, params, message):
    session = Session(params, data)
    with pytest.raises(engine.EngineError, match=message):
        session.run()
    assert session.state is State.FAILED


def test_a_dataset_without_labels_is_refused():
    with pytest.raises(engine.DataError, match="dataset has no labels"):
        train({}, Dataset(make_data()[0]))


def test_an_eval_set_with_other_cuts_is_refused(data):
    with pytest.raises(engine.DataError, match=r"eval_set\[0\].*cuts_from"):
        train({}, data, eval_set=Dataset(*make_data(seed=1)))


def test_an_unavailable_device_raises_and_nothing_takes_its_place(data):
    with pytest.raises(engine.DeviceUnavailableError, match="cuda"):
        train({"device": "cuda"}, data)


@pytest.mark.parametrize("device", DEVICES)
def test_close_is_idempotent_in_any_state(device):
    backend = open_backend(device)
    backend.close()
    backend.close()


def test_the_profile_speaks_of_every_phase(data, capsys, monkeypatch):
    monkeypatch.setenv("DYNO_PROFILE", "1")
    model = train({"n_estimators": 3}, data)
    phases = model.profile["phases"]
    assert all(phases[name]["seconds"] > 0 for name in ("gradients", "histogram", "find", "partition", "leaves"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["grow-profile", "cuda-profile", "bus"]
    assert "not measured" in lines[1]
