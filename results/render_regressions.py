"""The steps of a history as text and as plain values. May import regressions and rich."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.markup import escape

from results.percent import signed_percent
from results.regressions import Step
from results.series import Point, Series

NAMES = {
    "train_s": "training time",
    "ingest_s": "ingest time",
    "predict_s": "prediction time",
    "rss_bytes": "host memory",
    "device_bytes": "device memory",
    "bytes": "bytes over the bus",
    "model_digest": "model's bits",
}


def to_terminal(steps: tuple[Step, ...], series: list[Series], console: Console) -> None:
    """Regressions that stand first; each with its range, size, confidence and phase."""
    for step in sorted(steps, key=lambda step: not step.counts):
        _print_step(step, console)
    points = sum(len(one.points) for one in series)
    console.print(f"{len(steps)} steps in {len(series)} series of {points} commits in all")
    hosts = {one.cell.passport for one in series}
    if len(hosts) > 1:
        told = "series are kept apart by passport, because times of two hosts say nothing about the code"
        console.print(f"{len(hosts)} hosts ({', '.join(sorted(hosts))}): {told}", soft_wrap=True)


def to_values(steps: tuple[Step, ...]) -> dict[str, Any]:
    """One JSON object; ``regressions`` counts those that stand and are the code's."""
    return {"regressions": sum(step.counts for step in steps), "steps": [_values(step) for step in steps]}


def sentence(step: Step) -> str:
    """What moved, how far, where, how sure."""
    level = (lambda value: value[:12]) if isinstance(step.new, str) else (lambda value: f"{value:.4g}")
    size = "" if step.size is None else f" ({signed_percent(step.size)})"
    sure = "exact" if step.confidence == 1.0 else f"{step.confidence:.2%} sure"
    return f"{level(step.old)} to {level(step.new)}{size}, {_range(step)}, {sure}"


def _print_step(step: Step, console: Console) -> None:
    how = {True: "worse", False: "better", None: "changed"}[step.worse]
    style = "bold red" if step.counts else "dim" if step.worse else ""
    console.print(
        f"{how}: {NAMES.get(step.measure, step.measure)}, {escape(str(step.cell))}", style=style, soft_wrap=True
    )
    console.print(f"  {escape(sentence(step))}", soft_wrap=True)
    if step.moved:
        console.print("  phases: " + ", ".join(f"{name} {share:.0%} of it" for name, share in step.moved[:3]))
    if step.control:
        console.print(f"  {step.control} moved alike at the same place: the host, not the code", soft_wrap=True)
    if step.worse and not step.stands:
        console.print("  made good since")


def _range(step: Step) -> str:
    if step.first is step.last:
        return f"at {step.at.name} (after {step.before.name})"
    return f"most likely at {step.at.name}, between {step.before.name} (good) and {step.last.name}"


def _values(step: Step) -> dict[str, Any]:
    plain = {name: getattr(step, name) for name in ("measure", "old", "new", "size", "confidence", "worse", "stands")}
    points = {name: _point(getattr(step, name)) for name in ("before", "first", "at", "last")}
    return {
        **asdict(step.cell),
        **plain,
        **points,
        "moved": dict(step.moved),
        "control": step.control,
        "counts": step.counts,
    }


def _point(point: Point) -> dict[str, Any]:
    return {"commit": point.commit, "release": point.release, "since": point.since.isoformat(), "n": len(point.rows)}
