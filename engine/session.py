"""The state machine of one fit, from parameters and data to a model. May import growers and what lies below.

A failed session exports nothing and releases everything; a model exists only after Completed (DESIGN.md §5).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

import numpy as np

from engine.backends import Backend, Choice, open_backend
from engine.callbacks import Callback, Progress
from engine.cuts import Cuts
from engine.dataset import Dataset
from engine.errors import DataError, ParamError, SessionError
from engine.forest import Forest
from engine.growers import GROWERS
from engine.model import Model
from engine.objectives import get_objective
from engine.params import Params, parse_params
from engine.profile import Profile
from engine.tree import JoinedTrees, Tree


class State(Enum):
    """Where a session stands; it only moves forward, or to FAILED."""

    CREATED = 0
    VALIDATED = 1
    BINNED = 2
    BACKEND_READY = 3
    ITERATING = 4
    FINALISED = 5
    COMPLETED = 6
    FAILED = 7


def train(
    params: Params | dict[str, Any] | None,
    dataset: Dataset,
    *,
    eval_set: Dataset | Sequence[Dataset] | None = None,
    callbacks: Sequence[Callback] = (),
) -> Model:
    """Fit a model.

    Parameters
    ----------
    params : Params or dict, optional
        See `engine.Params`; unknown names are refused.
    dataset : Dataset
        With labels. Reusable: binning is done once per device.
    eval_set : Dataset or sequence of Dataset, optional
        Built with ``cuts_from=dataset``. The first one decides early stopping.
    callbacks : sequence of callable
        Called with a `Progress` after each tree; returning True ends the fit.

    Returns
    -------
    Model
        Up to the best round when early stopping is on.

    Raises
    ------
    ParamError, DataError, DeviceUnavailableError
        Before any work. Whatever a backend or a callback raises passes through unchanged.

    Examples
    --------
    >>> data = engine.Dataset(X, y)
    >>> model = engine.train({"n_estimators": 200, "grower": "leafwise"}, data)
    """
    return Session(params, dataset, eval_set=eval_set, callbacks=callbacks).run()


class Session:
    """One fit. `run` may be called once."""

    def __init__(
        self,
        params: Params | dict[str, Any] | None,
        dataset: Dataset,
        *,
        eval_set: Dataset | Sequence[Dataset] | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.state = State.CREATED
        self.history: dict[str, list[float]] = {}
        self._given_params = params
        self._dataset = dataset
        self._eval_sets = _as_sequence(eval_set)
        self._callbacks = tuple(callbacks)
        self._backend: Backend | None = None

    def run(self) -> Model:
        """Go through every state; on any exception, Ctrl-C included, to FAILED, with everything released."""
        if self.state is not State.CREATED:
            raise SessionError(f"a session runs once; this one is {self.state.name}: make a new one")
        try:
            self._validate()
            self._bin()
            self._ready()
            self._iterate()
            model = self._finalise()
        except BaseException:
            self.state = State.FAILED
            raise
        finally:
            if self._backend is not None:
                self._backend.close()
        self.state = State.COMPLETED
        self._profile.print_if_asked()
        return model

    def _validate(self) -> None:
        params = parse_params(self._given_params)
        if not isinstance(self._dataset, Dataset):
            raise DataError(f"dataset must be an engine.Dataset, got {type(self._dataset).__name__}")
        if "max_bin" in params.model_fields_set and params.max_bin != self._dataset.max_bin:
            raise ParamError(
                f"max_bin={params.max_bin}, but the dataset was cut with max_bin={self._dataset.max_bin}: "
                "leave it out of the parameters or build the dataset with the same value"
            )
        self._params = params.model_copy(update={"max_bin": self._dataset.max_bin})
        self._objective = get_objective(params.objective)
        for name, data in self._named_datasets():
            _check_labelled(name, data, self._dataset)
            self._objective.check_label(data.label)
        if params.early_stopping_rounds and not self._eval_sets:
            raise ParamError(
                f"early_stopping_rounds={params.early_stopping_rounds} needs an eval_set to watch: "
                "give one or set it to 0"
            )
        self._profile = Profile(params.device)
        self._backend = open_backend(params.device, params.n_threads)
        self.state = State.VALIDATED

    def _bin(self) -> None:
        with self._profile.timed("ingest"):
            self._planes = [data.plane(self._params.device, self._profile.book) for _, data in self._named_datasets()]
        self.state = State.BINNED

    def _ready(self) -> None:
        data, params = self._dataset, self._params
        self._base_margin = self._objective.base_margin(data.label, data.weight, params.base_score)
        with self._profile.timed("begin"):
            self._backend.begin_fit(
                self._planes[0], data.label, data.weight, params, self._base_margin, self._planes[1:]
            )
        with self._profile.timed("tune"):
            self._backend.tune()
        self.history = {self._metric_key(i): [] for i in range(len(self._eval_sets))}
        self.state = State.BACKEND_READY

    def _iterate(self) -> None:
        self.state = State.ITERATING
        profiled = ProfiledBackend(self._backend, self._profile)
        grow = GROWERS[self._params.grower]
        for index in range(self._params.n_estimators):
            profiled.begin_tree(index)
            grow(profiled)
            profiled.end_tree()
            self._evaluate()
            if self._should_stop(index):
                return

    def _evaluate(self) -> None:
        with self._profile.timed("evaluate"):
            for i, data in enumerate(self._eval_sets):
                margin = self._backend.eval_margins(i)
                self.history[self._metric_key(i)].append(self._objective.metric(margin, data.label, data.weight))

    def _should_stop(self, index: int) -> bool:
        progress = Progress(index, self._params.n_estimators, self.history)
        asked = [callback(progress) is True for callback in self._callbacks]
        patience = self._params.early_stopping_rounds
        return any(asked) or bool(patience and index - self._best_round() >= patience)

    def _best_round(self) -> int:
        watched = self.history[self._metric_key(0)]
        return watched.index(min(watched))

    def _finalise(self) -> Model:
        with self._profile.timed("finish"):
            trees = self._backend.end_fit()
        self._profile.book(self._backend.ledger)
        self._backend.close()  # before the forest is made: a fit's histograms and rows are far larger than its trees
        if self._params.early_stopping_rounds:
            trees = trees[: self._best_round() + 1]
        self.state = State.FINALISED
        model = Model(
            _with_thresholds(trees, self._dataset.cuts),
            self._params,
            self._base_margin,
            self._dataset.feature_names,
            self.history,
        )
        model.profile = self._profile.as_dict()
        return model

    def _named_datasets(self) -> list[tuple[str, Dataset]]:
        return [("dataset", self._dataset)] + [(f"eval_set[{i}]", data) for i, data in enumerate(self._eval_sets)]

    def _metric_key(self, index: int) -> str:
        return f"eval{index}_{self._objective.metric_name}"


class ProfiledBackend:
    """A backend whose transactions are timed, each under its phase; what growers are given."""

    def __init__(self, backend: Backend, profile: Profile) -> None:
        self._backend, self._phases = backend, profile.phases
        self.rounds = backend.rounds
        self.begin_tree = self._timed(backend.begin_tree, profile, "gradients")
        self.build_histograms = self._timed(backend.build_histograms, profile, "histogram")
        self.find_splits: Callable[[Choice], None] = self._timed(backend.find_splits, profile, "find")
        self.plan: Callable[[Choice], int | None] = self._timed(backend.plan, profile, "plan")
        self.partition = self._timed(backend.partition, profile, "partition")
        self.end_tree = self._timed(backend.end_tree, profile, "leaves")

    def grow(self, choice: Choice) -> bool:
        """The backend's own rounds, if it makes them by itself; it says how long each phase took."""
        seconds = self._backend.grow(choice) or {}
        for phase, taken in seconds.items():
            self._phases[phase].seconds += taken
        return bool(seconds)

    @staticmethod
    def _timed(transaction: Callable, profile: Profile, phase: str) -> Callable:
        # Written out rather than `with profile.timed(...)`: leafwise makes a thousand calls a tree.
        cost = profile.phases[phase]

        def call(*arguments: Any) -> Any:
            start = time.perf_counter()
            try:
                return transaction(*arguments)
            finally:
                cost.seconds += time.perf_counter() - start

        return call


def _as_sequence(eval_set: Dataset | Sequence[Dataset] | None) -> tuple[Dataset, ...]:
    if eval_set is None:
        return ()
    return (eval_set,) if isinstance(eval_set, Dataset) else tuple(eval_set)


def _check_labelled(name: str, data: Any, dataset: Dataset) -> None:
    if not isinstance(data, Dataset):
        raise DataError(f"{name} must be an engine.Dataset, got {type(data).__name__}")
    if data.label is None:
        raise DataError(f"{name} has no labels: build it as Dataset(X, y)")
    if data.cuts != dataset.cuts:
        raise DataError(
            f"{name} was cut differently from the training data: build it with cuts_from=the training dataset"
        )


def _with_thresholds(trees: Sequence[Tree], cuts: Cuts) -> Forest:
    """Contract §3: bin b is the raw value below cut b, or below infinity for the last value bin."""
    joined = JoinedTrees.of(trees)
    arrays = joined.arrays
    inner = arrays["leaf"] == 0
    feature, bin_ = arrays["feature"][inner], arrays["bin"][inner]
    last = bin_ == cuts.value_bins[feature] - 1
    position = np.where(last, 0, cuts.offsets[feature] + bin_)
    values = cuts.values if cuts.values.size else np.zeros(1)
    arrays["threshold"][inner] = np.where(last, np.inf, values[position])
    return Forest(**arrays, offsets=joined.offsets)
