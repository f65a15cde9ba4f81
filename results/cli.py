"""``dyno standings`` and ``dyno results``: what was measured, and who stands where. May import results, typer and rich.

Exit codes: 0 done; 1 something got slower or worse; 2 usage, damaged or unwritable rows; 3 no rows to stand on;
5 ambiguous.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePath
from typing import Annotated, NoReturn

import typer
from rich.markup import escape
from rich.table import Table

from results import publish, render, render_growth, render_pairs, render_regressions
from results.asv_cli import export_asv, import_asv
from results.percent import parse_percent
from results.regressions import find_steps
from results.schema import Row, json_schema
from results.series import git_order, series_of
from results.standings import Standings
from results.standings import standings as rank
from results.store import CHECKOUT, Content, Store, Stored, StoreError, local_store, records_store

SLOWER, USAGE, NOTHING = 1, 2, 3
DAMAGED = USAGE  # to be repaired before anything can be said

LISTED = ("row", "time", "commit", "rung", "scale", "threads", "contender", "repeat", "status", "train s", "value")

LISTED_PRIORITY = (0, 6, 3, 5, 9, 10, 8, 7, 1, 2, 4)
"""Headings of the list in the order in which a narrow terminal gives them room."""

results_app = typer.Typer(help="The measured rows: list, show, pairs, growth, check, publish.", no_args_is_help=True)
results_app.command("export-asv")(export_asv)
results_app.command("import-asv")(import_asv)

Ladder = Annotated[str | None, typer.Option("--ladder", help="Only this ladder, for example flights.")]
Release = Annotated[str | None, typer.Option("--release", help="Only rows of this release, for example 0.1.0.")]
Scale = Annotated[float | None, typer.Option(help="Only rows of this scale; else the newest decides.")]
Threads = Annotated[int | None, typer.Option(help="Only rows at this number of threads; else a table for each.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]
Published = Annotated[bool, typer.Option("--published", help="Read results/records instead of the local rows.")]


def standings(
    ladder: Ladder = None,
    release: Annotated[
        str | None,
        typer.Option("--release", help="Write this release's page into results/standings, from results/records."),
    ] = None,
    scale: Scale = None,
    threads: Threads = None,
    published: Published = False,
    as_json: AsJson = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Where page and plots go; else results/local/standings, or results/standings/TAG."),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Write nothing; exit code 1 if the page of --release, else any, is not its rows'."
        ),
    ] = False,
) -> None:
    """Who stands where: a table, a page and a plot; with --release the page of a release, from its published rows.

    Example: dyno standings --ladder flights; dyno standings --release 0.1.0; dyno standings --check
    """
    if release or check:
        if ladder or scale or threads:
            _fail("the page of a release has every ladder, scale and number of threads: leave those options out", USAGE)
        (_check_pages if check else _write_page)(release, out, as_json)
        return
    found = _standings(published, ladder, release, scale, threads)
    paths = _save(found, out or local_store().directory / "standings")
    if as_json:
        typer.echo(
            json.dumps({**render.to_values(found), "files": [str(path) for path in paths]}, allow_nan=False, indent=2)
        )
    else:
        render.to_terminal(found, render.terminal())
        for path in paths:
            typer.echo(path)
    if not found.measured_anything:
        _nothing(ladder, "no row has status ok")


@results_app.command()
def pairs(
    ladder: Ladder = None,
    release: Release = None,
    scale: Scale = None,
    threads: Threads = None,
    published: Published = False,
    as_json: AsJson = False,
) -> None:
    """Each pair against its targets: train, prep, memory, predict over the best rival's; quality to the paired one's.

    Example: dyno results pairs --ladder cpu-pairs --json
    """
    found = _standings(published, ladder, release, scale, threads)
    if as_json:
        typer.echo(json.dumps(render_pairs.to_values(found), allow_nan=False, indent=2))
    else:
        render_pairs.to_terminal(found, render.terminal())


@results_app.command()
def growth(
    ladder: Ladder = None,
    release: Release = None,
    scale: Scale = None,
    published: Published = False,
    as_json: AsJson = False,
) -> None:
    """How training time grows with rows, columns, depth, bins and threads, beside the rivals: slopes.

    Example: dyno results growth --ladder cpu-growth
    """
    found = _standings(published, ladder, release, scale, None)
    if as_json:
        typer.echo(json.dumps(render_growth.to_values(found), allow_nan=False, indent=2))
    else:
        render_growth.to_terminal(found, render.terminal())


@results_app.command("list")
def list_rows(
    ladder: Ladder = None,
    release: Release = None,
    published: Published = False,
    as_json: Annotated[bool, typer.Option("--json", help="The rows themselves, one JSON object a line.")] = False,
) -> None:
    """One line a row, in file order.

    Example: dyno results list --ladder flights
    """
    rows = [stored for stored in _read(published, ladder).stored if release in (None, stored.row.release)]
    if not rows:
        _nothing(ladder, "no rows")
    if as_json:
        for stored in rows:
            typer.echo(stored.text)
        return
    console, lines = render.terminal(), [_listed(stored) for stored in rows]
    columns = render.fitting([LISTED, *lines], LISTED_PRIORITY, console.width, between=2)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(LISTED[column], no_wrap=True)
    for texts in lines:
        table.add_row(*(escape(texts[column]) for column in columns))
    console.print(table)


@results_app.command()
def show(
    row: Annotated[str, typer.Argument(help="A row as 'dyno results list' names it: ladder:line.")],
    published: Published = False,
) -> None:
    """One row in full.

    Example: dyno results show flights:12
    """
    ladder, _, line = row.rpartition(":")
    for stored in _read(published, ladder or None).stored:
        if stored.path.stem == ladder and str(stored.line) == line:
            typer.echo(json.dumps(json.loads(stored.text), indent=2))
            return
    _fail(f"no row '{row}'; name it as 'dyno results list' does: ladder:line", USAGE)


@results_app.command()
def check(
    ladder: Ladder = None,
    published: Published = False,
    store: Annotated[Path | None, typer.Option(help="Read the rows of this directory instead.")] = None,
    repo: Annotated[Path | None, typer.Option(help="The repository that orders the commits.  [default: ours]")] = None,
    smallest: Annotated[str, typer.Option(help="Smallest change of a time or memory that is reported.")] = "2%",
    as_json: AsJson = False,
) -> None:
    """Read every line against the schema, then look for steps over the history: time, memory, quality, counts, bits.

    Exit code 1 if something got worse and still is. Only rows of one host, work and contender are set in one series.

    Example: dyno results check --ladder flights
    """
    content = _read(published, ladder, store)
    typer.echo(f"{len(content.rows)} rows, {len(content.problems)} damaged lines", err=as_json)
    if not content.rows:
        _nothing(ladder, "no rows")
    try:
        limit = parse_percent(smallest)
    except ValueError as error:
        _fail(f"--smallest {error}", USAGE)
    found = series_of(content.rows, git_order(repo or CHECKOUT))
    steps = find_steps(found, smallest=limit)
    if as_json:
        typer.echo(json.dumps(render_regressions.to_values(steps), allow_nan=False, indent=2))
    else:
        render_regressions.to_terminal(steps, found, render.terminal())
    if any(step.counts for step in steps):
        raise typer.Exit(SLOWER)
    raise typer.Exit(DAMAGED if content.problems else 0)


@results_app.command()
def schema() -> None:
    """The row as JSON Schema."""
    typer.echo(json.dumps(json_schema(), indent=2))


@results_app.command("publish")
def publish_rows(
    ladder: Ladder = None,
    release: Release = None,
    commit: Annotated[str | None, typer.Option(help="Only rows of this commit (any unique beginning).")] = None,
    dirty: Annotated[bool, typer.Option("--dirty", help="Also rows measured on a changed tree.")] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Say what would be published; write nothing.")] = False,
) -> None:
    """Copy local rows into results/records, which is under version control; a row already there is not copied again.

    Rows of every status go along: a loss or a failure is a result.

    Example: dyno results publish --ladder flights --release 0.1.0
    """
    content = _read(False, ladder)
    try:
        chosen = publish.choose(content.stored, records_store(), release=release, commit=commit, dirty=dirty)
        if not plan:
            publish.copy(chosen.rows, records_store())
    except StoreError as error:
        _fail(str(error), DAMAGED)
    typer.echo(f"{len(chosen.rows)} rows {'would be ' if plan else ''}published to {records_store().directory}")
    for reason, count in sorted(chosen.left_out.items()):
        typer.echo(f"{count} left out: {reason}")
    if not content.rows:
        _nothing(ladder, "no rows")


def _standings(
    published: bool, ladder: str | None, release: str | None, scale: float | None, threads: int | None
) -> Standings:
    """Of the rows asked for."""
    rows = _read(published, ladder).rows
    wanted = {"release": release, "scale": scale, "threads": threads}
    chosen = [row for row in rows if all(value in (None, getattr(row, name)) for name, value in wanted.items())]
    if not chosen:
        _nothing(ladder, f"{len(rows)} rows, none of this release, scale and threads" if rows else "no rows")
    return rank(chosen)


def _read(published: bool, ladder: str | None, directory: Path | None = None) -> Content:
    try:
        store = Store(directory) if directory else records_store() if published else local_store()
        content = store.read(ladder)
    except StoreError as error:
        _fail(str(error), DAMAGED)
    for problem in content.problems:
        typer.secho(f"not a row: {problem}", err=True, fg=typer.colors.YELLOW)
    return content


def _save(found: Standings, directory: Path) -> list[Path]:
    from results.plots import save_plots  # matplotlib would cost every other command a third of a second

    try:
        directory.mkdir(parents=True, exist_ok=True)
        page = directory / "standings.md"
        page.write_text(render.to_markdown(found), encoding="utf-8")
        return [page, *save_plots(found, directory)]
    except OSError as error:
        _fail(
            f"cannot write the standings to {directory}: {error.strerror or error}; choose another with --out", DAMAGED
        )


def _write_page(release: str, out: Path | None, as_json: bool) -> None:
    from results import pages  # matplotlib and jinja2 would cost every other command half a second

    directory = out or _pages_directory() / release
    try:
        paths = pages.write(_files(release, directory), directory)
    except OSError as error:
        _fail(f"cannot write the page to {directory}: {error.strerror or error}; choose another with --out", DAMAGED)
    if as_json:
        typer.echo(json.dumps({"release": release, "files": [str(path) for path in paths]}, indent=2))
    else:
        for path in paths:
            typer.echo(path)


def _check_pages(release: str | None, out: Path | None, as_json: bool) -> None:
    from results import pages

    root = _pages_directory()
    tags = (
        [release] if release else sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    )
    if not tags:
        _fail(f"no page in {root} to check; write one with: dyno standings --release TAG", NOTHING)
    places = {tag: out or root / tag for tag in tags}
    found = [said for tag, place in places.items() for said in pages.disagreements(_files(tag, place), place)]
    if as_json:
        typer.echo(json.dumps({"releases": tags, "disagreements": found}, indent=2))
    else:
        for said in found:
            typer.secho(said, err=True, fg=typer.colors.RED)
        typer.echo(f"{len(tags)} {'page' if len(tags) == 1 else 'pages'} checked, {len(found)} disagreements")
    if found:
        typer.echo("write it again with: dyno standings --release TAG", err=True)
        raise typer.Exit(SLOWER)


def _pages_directory() -> Path:
    try:
        return records_store().directory.parent / "standings"
    except StoreError as error:
        _fail(str(error), DAMAGED)


def _files(tag: str, directory: Path) -> dict[str, bytes]:
    """Of a release's page, as they should stand in a directory."""
    from results import pages

    if PurePath(tag).name != tag:
        _fail(f"'{tag}' is no release: it names a directory, for example 0.1.0", USAGE)
    try:
        return pages.files_of(pages.page_of(_read(True, None), tag), directory, records_store().directory)
    except LookupError as error:
        _fail(f"nothing to stand on: {error.args[0]}; publish rows with: dyno results publish --release {tag}", NOTHING)


def _listed(stored: Stored) -> tuple[str, ...]:
    row: Row = stored.row
    return (
        f"{stored.path.stem}:{stored.line}",
        f"{row.ts:%Y-%m-%d %H:%M}",
        (row.commit or "unknown")[:7] + ("+" if row.dirty else ""),
        row.rung,
        f"{row.scale:g}",
        str(row.threads),
        row.contender,
        str(row.repeat),
        row.status if row.valid else f"{row.status}, invalid: {row.invalid_reason}",
        render.NOT_MEASURED if row.train_s is None else f"{row.train_s:.3g}",
        render.NOT_MEASURED if row.value is None else f"{row.metric} {row.value:.5g}",
    )


def _nothing(ladder: str | None, why: str) -> NoReturn:
    _fail(f"nothing to stand on: {why}; measure with: dyno ladder run {ladder or 'flights'}", NOTHING)


def _fail(message: str, code: int) -> NoReturn:
    typer.secho(message, err=True, fg=typer.colors.RED)
    raise typer.Exit(code)
