import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from results.render import HEADINGS, seconds, to_markdown, to_terminal, to_values, verdict
from results.standings import Comparison, standings

GOLDEN = Path(__file__).with_name("standings.md")


def printed(rows, width):
    console = Console(file=io.StringIO(), width=width)
    to_terminal(standings(rows), console)
    return console.file.getvalue()


def test_the_page_is_the_one_that_was_checked_by_eye(fixture_rows):
    """To accept a new page: read it (`DYNO_RESULTS_DIR`=here, `dyno standings --out /tmp/page`), then copy it here."""
    assert to_markdown(standings(fixture_rows)) == GOLDEN.read_text(encoding="utf-8")


def test_every_table_line_has_every_column(fixture_rows):
    lines = [line for line in to_markdown(standings(fixture_rows)).splitlines() if line.startswith("|")]
    assert lines
    assert {line.replace("\\|", "").count("|") for line in lines} == {len(HEADINGS) + 1}


@pytest.mark.parametrize("width", [40, 80, 100, 132, 200])
def test_the_terminal_says_who_and_how_at_any_width(fixture_rows, width):
    text = printed(fixture_rows, width)
    table = text.partition("commit")[0]
    assert all(len(line) <= width for line in text.splitlines())
    if width >= 80:
        for word in ("engine-depthwise 0.1.0", "1.37x faster", "1.64x slower", "tie (1.05x)", "timeout", "invalid"):
            assert word in table
    assert ("engine fits" in table) == (width >= 200)


def test_hostile_text_is_shown_as_it_stands(row):
    rows = [
        row(),
        row(contender="[red]x[/red]", status="error", message="[/bold] | *x* <b>\nsecond line", rung="delay"),
    ]
    assert "[/bold] | *x* <b>" in printed(rows, 132)
    page = to_markdown(standings(rows))
    assert r"\[/bold\] \| \*x\* \<b\>" in page
    assert "second line" not in page


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        (Comparison(1.5, "faster"), "1.50x faster"),
        (Comparison(0.5, "slower"), "2.00x slower"),
        (Comparison(0.98, "tie"), "tie (0.98x)"),
        (Comparison(3.0, "unrepeated"), "unrepeated (3.00x)"),
        (None, "-"),
    ],
)
def test_a_loss_is_said_like_a_win(comparison, said):
    assert verdict(comparison) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(2.0, "2.00"), (0.15, "0.150"), (123.4, "123"), (999.9, "1.00e+03"), (4321.0, "4321"), (0.0, "0.00")],
)
def test_seconds_keep_three_digits(value, said):
    assert seconds(value) == said


def test_values_are_json_and_carry_the_page(fixture_rows):
    values = json.loads(json.dumps(to_values(standings(fixture_rows)), allow_nan=False))
    assert sum(values["tally"].values()) == 6
    assert values["tables"][0]["pairs"][0]["entries"][0]["train"]["median"] == 1.5
