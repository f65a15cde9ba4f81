"""`dyno engine`: fit, predict and look at a model from the shell. May import anything of the engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from engine.errors import DataError, EngineError, ParamError

app = typer.Typer(no_args_is_help=True, help="Train, apply and inspect models on CSV or Parquet tables.")

Table = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="CSV or Parquet file of numeric columns.")]
ModelFile = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="Model file written by fit.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command(epilog="Example: dyno engine fit train.csv --label y --set grower=leafwise --set n_estimators=200")
def fit(
    table: Table,
    label: Annotated[str, typer.Option(help="Column to predict.")],
    out: Annotated[Path, typer.Option(help="Where the model goes.")] = Path("model.safetensors"),
    weight: Annotated[str | None, typer.Option(help="Column of row weights.")] = None,
    evaluate: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Table to evaluate on every round.")
    ] = None,
    setting: Annotated[list[str] | None, typer.Option("--set", help="Parameter as name=value; repeatable.")] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on a table and write it."""
    with _refusals():
        from engine import Dataset, ProgressBar, train

        params = _settings(setting or [])
        features, target, weights = _split(table, label, weight)
        dataset = Dataset(features, target, weight=weights, max_bin=params.pop("max_bin", 255))
        eval_set = None
        if evaluate is not None:
            features, target, weights = _split(evaluate, label, weight)
            eval_set = Dataset(features, target, weight=weights, cuts_from=dataset)
        with ProgressBar() as bar:
            model = train(params, dataset, eval_set=eval_set, callbacks=[bar])
        model.save(out)
        last = {name: values[-1] for name, values in model.history.items()}
        _print({"model": str(out), "trees": len(model.forest), "rows": dataset.n_rows, **last}, as_json)


@app.command(epilog="Example: dyno engine predict model.safetensors test.csv --out predictions.csv")
def predict(
    model: ModelFile,
    table: Table,
    out: Annotated[Path, typer.Option(help="CSV with one column, 'prediction'.")] = Path("predictions.csv"),
    output: Annotated[str, typer.Option(help="response or margin.")] = "response",
) -> None:
    """Apply a model to a table; columns are matched by name and others are left aside."""
    with _refusals():
        import pandas as pd

        from engine import Model

        fitted = Model.load(model)
        frame = _read(table)
        missing = [name for name in fitted.feature_names if name not in frame.columns]
        if missing:
            raise DataError(f"{table} lacks {len(missing)} of the model's columns, first '{missing[0]}'")
        prediction = fitted.predict(frame[list(fitted.feature_names)], output=output)
        pd.DataFrame({"prediction": prediction}).to_csv(out, index=False)
        typer.echo(f"{len(prediction)} predictions in {out}")


@app.command(epilog="Example: dyno engine show model.safetensors --json")
def show(model: ModelFile, as_json: AsJson = False) -> None:
    """Parameters, size and gain importance of a model."""
    with _refusals():
        from engine import Model

        fitted = Model.load(model)
        gains = dict(fitted.feature_importance("gain"))
        top = dict(sorted(gains.items(), key=lambda item: -item[1])[:10])
        facts = {
            "trees": len(fitted.forest),
            "nodes": len(fitted.forest.feature),
            "features": len(fitted.feature_names),
            "base_margin": float(fitted.base_margin),
            "params": fitted.params.identity(),
            "gain": {name: float(value) for name, value in top.items()},
        }
        _print(facts, as_json)


class _refusals:  # noqa: N801 (reads as a clause: `with _refusals()`)
    """Turn what the engine refuses, and files that cannot be read or written, into one line and exit code 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EngineError | OSError):
            typer.echo(f"error: {error}", err=True)
            raise typer.Exit(2) from error


def _settings(pairs: list[str]) -> dict[str, object]:
    """Parse name=value pairs; values are JSON where they parse, else strings. Validated here, before data is read."""
    from engine.params import parse_params

    settings: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ParamError(f"--set {pair}: write name=value")
        try:
            settings[name] = json.loads(value)
        except json.JSONDecodeError:
            settings[name] = value
    parse_params(settings)
    return settings


def _read(path: Path):
    import pandas as pd

    return pd.read_parquet(path) if path.suffix in (".parquet", ".pq") else pd.read_csv(path)


def _split(path: Path, label: str, weight: str | None):
    """The table without its label and weight columns, and those two."""
    frame = _read(path)
    for column in filter(None, (label, weight)):
        if column not in frame.columns:
            raise DataError(f"{path} has no column '{column}'; it has {', '.join(map(str, frame.columns[:8]))}, ...")
    features = frame.drop(columns=[column for column in (label, weight) if column])
    return features, frame[label].to_numpy(), None if weight is None else frame[weight].to_numpy()


def _print(facts: dict, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
    else:
        for name, value in facts.items():
            typer.echo(f"{name}: {value}")
