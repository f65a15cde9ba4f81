"""``dyno passport``: what this host is. May import probes, typer and rich."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from probes.passport import take_passport

probes_app = typer.Typer(help="What this host is, and whether it may be believed.", no_args_is_help=True)


@probes_app.command()
def passport(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Show the host's passport: the digest that decides which rows may be compared.

    Example: dyno passport --json
    """
    found = take_passport()
    if as_json:
        typer.echo(json.dumps(found, indent=2, allow_nan=False))
        return
    table = Table(title=f"passport {found['digest']}", title_justify="left", show_header=False)
    for part in ("host", "gpu", "software", "load"):
        for name, value in (found[part] or {"": None}).items():
            table.add_row(part, name, _shown(value))
        table.add_section()
    Console().print(table)


@probes_app.callback()
def _keep_command_names() -> None:
    """Typer would drop the name of an app's only command; more probes are coming."""


def _shown(value: Any) -> str:
    if value is None:
        return "unknown (not measured)"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
