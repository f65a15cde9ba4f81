"""A release's page as HTML and Markdown, from templates. May import results.release_view and jinja2.

The HTML holds all it needs: style and figures are inline, and nothing is fetched. Its figures take their colours from
the style, so that they follow the reader's light or dark setting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from results.drawings import DRAWN_BY, LIBRARIES, OTHERS, RULE, Drawing
from results.plots import FAINT, INK
from results.release_view import Cell, Grid, View
from results.render import escape_markdown

VARIABLES = {
    INK: "ink",
    FAINT: "faint",
    RULE: "rule",
    **{colour: library for library, (colour, _) in LIBRARIES.items()},
    **{colour: f"other-{number}" for number, (colour, _) in enumerate(OTHERS)},
}
"""Colours that the drawings use, and the style's variable for each."""


def to_html(page: View, records: str) -> str:
    """The page for a browser, in one file; `records` is the way from it to the files of rows."""
    environment = _environment(autoescape=True)
    environment.filters["inline"] = inline
    style = environment.loader.get_source(environment, "standings.css")[0]
    return environment.get_template("standings.html").render(
        page=page, style=Markup(style.rstrip()), records=records, example=_example(page), drawn_by=DRAWN_BY
    )


def to_markdown(page: View, records: str) -> str:
    """The page for a repository's viewer; `records` is the way from it to the files of rows."""
    environment = _environment(autoescape=False)
    environment.finalize = lambda value: value if isinstance(value, Markup) else _plain(value)
    environment.filters.update(raw=lambda text: Markup(text), table=_table, code=_code)
    text = environment.get_template("standings.md").render(page=page, records=records, example=_example(page))
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def inline(drawing: Drawing) -> Markup:
    """A drawing as an element of the page, named for screen readers, coloured by the style's variables."""
    svg = drawing.svg(face="none")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r" <metadata>.*?</metadata>\n", "", svg, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        svg = svg.replace(colour, f"var(--{variable})")
    svg = _own_names(svg, drawing.name)
    svg = re.sub(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>", r"<svg \1 @label>", svg, count=1)
    label = Markup('role="img" aria-label="{}"').format(f"{drawing.title}. {drawing.words}")
    return Markup(svg.replace("@label", label, 1).rstrip())


def _own_names(svg: str, prefix: str) -> str:
    """Ids that something refers to get a prefix, so that they are unique on the page; the others go."""
    used = set(re.findall(r"#([\w.-]+)", svg))
    svg = re.sub(r' id="([\w.-]+)"', lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else "", svg)
    return re.sub(r'(href="|url\()#([\w.-]+)', rf"\1#{prefix}-\2", svg)


def _environment(autoescape: bool) -> Environment:
    return Environment(
        loader=PackageLoader("results"), autoescape=autoescape, undefined=StrictUndefined, keep_trailing_newline=True
    )


def _on_one_line(value: object) -> str:
    return " ".join(str(value).split())


def _code(text: str) -> Markup:
    """A code span whose fence is longer than any in the text."""
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    return Markup(f"{fence} {_on_one_line(text)} {fence}")


def _table(grid: Grid) -> Markup:
    """A grid under its caption; a line's note takes the place of its cells."""
    sides = ("---" if column in grid.words else "---:" for column in range(len(grid.headings)))
    lines = [f"**{_plain(grid.caption)}**", "", _row(map(_plain, grid.headings)), _row(sides)]
    for line in grid.lines:
        cells = [_linked(cell) for cell in (line.head, *line.cells)]
        cells += [_plain(line.note)] if line.note else []
        lines.append(_row(cells + [""] * (len(grid.headings) - len(cells))))
    return Markup("\n".join(lines))


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _plain(text: object) -> str:
    return escape_markdown(_on_one_line(text))


def _linked(cell: Cell) -> str:
    text = _plain(cell.text)
    return f"[{text}](#{cell.evidence})" if cell.evidence else text


def _example(page: View) -> str:
    rows = (row.name for ladder in page.ladders for item in ladder.evidence for row in item.rows)
    return next(rows, "flights:1")
