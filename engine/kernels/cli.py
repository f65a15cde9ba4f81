"""`dyno kernels`: what each kernel costs on each architecture, from the compiler, without a GPU. May import the kernels
room.
"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from engine.errors import EngineError
from engine.kernels.budget import budget_file, write_budgets
from engine.kernels.catalogue import Entry, all_complaints, catalogue, tightest_budgets
from engine.kernels.occupancy import LIMITS

COMPLAINTS, USAGE = 1, 2


def kernels(
    arch: Annotated[
        list[str] | None, typer.Option(help="Architecture, such as sm_90; repeatable.  [default: all of them]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="Rewrite budget.toml to what the kernels use now.")] = False,
) -> None:
    """Registers, shared memory, occupancy, atomics and bytes of every kernel; exit code 1 if one breaks a gate."""
    archs = _known(arch) if arch and not accept else list(LIMITS)
    try:
        entries = catalogue(archs)
        if accept:
            write_budgets(tightest_budgets(entries))
            typer.echo(f"{budget_file()} is rewritten: read its diff", err=True)
    except (EngineError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(USAGE) from error
    if as_json:
        print(json.dumps([entry.facts() for entry in entries], indent=2))
    else:
        typer.echo(_table(entries))
    found = all_complaints(entries)
    for complaint in found:
        typer.echo(complaint, err=True)
    if found:
        raise typer.Exit(COMPLAINTS)


def _known(archs: list[str]) -> list[str]:
    for arch in archs:
        if arch not in LIMITS:
            raise typer.BadParameter(f"'{arch}' is unknown; choose from {', '.join(LIMITS)}", param_hint="--arch")
    return archs


def _table(entries: list[Entry]) -> str:
    """Whole lines, however wide the terminal: formulas cut short would tell nothing."""
    heading = ("kernel", "arch", "block", "registers", "shared", "occupancy", "atomics/cell", "bytes/row")
    rows = [heading, *(_row(entry) for entry in entries)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heading))]
    return "\n".join("  ".join(map(_aligned, row, widths, heading)).rstrip() for row in rows)


def _row(entry: Entry) -> tuple[str, ...]:
    family, kernel = entry.family, entry.kernel
    numbers = (family.block, kernel.registers, entry.shared, f"{entry.occupancy} %", family.atomics_per_cell or "")
    return (kernel.name, kernel.arch, *map(str, numbers), family.bytes_per_row)


def _aligned(cell: str, width: int, column: str) -> str:
    return cell.ljust(width) if column in ("kernel", "arch", "bytes/row") else cell.rjust(width)
