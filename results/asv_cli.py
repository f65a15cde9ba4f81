"""``dyno results export-asv`` and ``import-asv``: rows to asv's files and back. May import results and typer.

Exit codes: 0 done; 2 usage, damaged or unwritable files; 3 no rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NoReturn

import typer

from results.asv_format import FormatError, commit_date, export_rows, import_rows
from results.store import CHECKOUT, Store, StoreError, local_store, records_store

USAGE, NOTHING = 2, 3

StoreFolder = Annotated[Path | None, typer.Option(help="Directory of rows instead of the local one.")]


def export_asv(
    ladder: Annotated[str | None, typer.Option(help="Only this ladder, for example flights.")] = None,
    published: Annotated[bool, typer.Option("--published", help="Rows of results/records.")] = False,
    store: StoreFolder = None,
    to: Annotated[Path | None, typer.Option(help="asv's results_dir.  [default: .asv/results of the checkout]")] = None,
) -> None:
    """Write rows into asv's result files; then 'asv publish' shows them beside its own benchmarks.

    Rows are left out that asv cannot file: of no commit, or of a changed tree.

    Example: dyno results export-asv --ladder flights && asv publish && asv preview
    """
    directory = to or CHECKOUT / ".asv" / "results"
    try:
        source = Store(store) if store else records_store() if published else local_store()
        content = source.read(ladder)
        for problem in content.problems:
            typer.echo(f"not a row: {problem}", err=True)
        found = export_rows(content.rows, directory, commit_date(CHECKOUT))
    except (StoreError, FormatError) as error:
        _fail(str(error), USAGE)
    except OSError as error:
        _fail(f"cannot write to {directory}: {error.strerror or error}; choose another with --to", USAGE)
    for path in found.files:
        typer.echo(path)
    for reason, count in sorted(found.left_out.items()):
        typer.echo(f"{count} rows left out: {reason}", err=True)
    if not found.files:
        _fail(f"no rows for asv in {source.directory}; measure on a committed tree with: dyno ladder run", NOTHING)


def import_asv(
    path: Annotated[Path, typer.Argument(help="A result file of export-asv, or a directory of them.")],
    store: StoreFolder = None,
) -> None:
    """Take rows out of asv's result files into the local rows, each once.

    A file is believed only if its rows still give the figures that asv shows. asv's own runs hold no rows: theirs are
    in .asv/rows.

    Example: dyno results import-asv .asv/results
    """
    target = Store(store) if store else local_store()
    if not path.exists():
        _fail(f"no file or directory {path}; asv's configuration names it: results_dir", USAGE)
    try:
        rows = list(import_rows(path))  # all of them read before the first is written
        known = {row.to_line() for row in target.read().rows}
        new = [row for row in rows if row.to_line() not in known]
        for row in new:
            target.append(row)
    except (StoreError, FormatError) as error:
        _fail(str(error), USAGE)
    if not rows:
        _fail(f"no rows in {path}: only files of 'dyno results export-asv' hold them", NOTHING)
    typer.echo(f"{len(new)} rows imported to {target.directory}, {len(rows) - len(new)} there already")


def _fail(message: str, code: int) -> NoReturn:
    typer.secho(message, err=True, fg=typer.colors.RED)
    raise typer.Exit(code)
