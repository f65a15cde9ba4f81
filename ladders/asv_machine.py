"""``dyno asv-machine``: this host's entry in asv's machine file. May import probes, results and asv.

Exit codes: 0 done; 2 the file is damaged or cannot be written.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Annotated, Any

import typer

from probes.passport import take_passport
from results.asv_format import machine_of

USAGE = 2

VERSION = 1
"""Of asv's machine file (`asv.machine.MachineCollection.api_version`)."""


def asv_machine(
    file: Annotated[Path | None, typer.Option(help="Where.  [default: ~/.asv-machine.json, which asv reads]")] = None,
) -> None:
    """Tell asv what this host is: processor, memory, system, GPU, driver and passport.

    The machine's name has the passport's digest, so that asv files every boot and container by itself; run this again
    after each. The benchmarks refuse a host which is not the one in the file.

    Example: dyno asv-machine && asv run --quick
    """
    path = file or Path.home() / ".asv-machine.json"
    machine = {**machine_of(take_passport()), "arch": platform.machine()}
    try:
        # asv looks under the host's name, and files under the name inside.
        _replace(path, {**_machines(path), platform.node(): machine, "version": VERSION})
    except OSError as error:
        _fail(f"cannot write {path}: {error.strerror or error}; choose another with --file")
    except ValueError as error:
        _fail(f"{path} is not asv's machine file ({error}): move it away, or choose another with --file")
    typer.echo(f"{machine['machine']} in {path}")


def _machines(path: Path) -> dict[str, Any]:
    """Of other hosts, as they stand."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    if not isinstance(found, dict):
        raise ValueError(f"a list of machines is a JSON object, this is {type(found).__name__}")
    return found


def _replace(path: Path, machines: dict[str, Any]) -> None:
    """Whole or not at all: asv stops at half a file."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(machines, indent=4))
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _fail(message: str) -> None:
    typer.secho(message, err=True, fg=typer.colors.RED)
    raise typer.Exit(USAGE)
