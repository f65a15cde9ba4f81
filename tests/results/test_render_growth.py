import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from results.render_growth import to_terminal, to_values
from results.standings import standings

GOLDEN = Path(__file__).with_name("growth.txt")

EXPONENTS = {"engine-depthwise": (0.9, 1.1), "xgboost-depthwise": (1.0, 1.0), "bonsai-depthwise": (1.2, 0.8)}
"""Of rows and of threads (as a negative power)."""


@pytest.fixture
def growth_rows(row):
    """Rows and threads as axes, two blocks each, times as exact powers."""
    made = []
    for contender, (rows_power, threads_power) in EXPONENTS.items():
        for n, threads in ((50_000, 2), (100_000, 2), (100_000, 1), (200_000, 2)):
            for block in range(2):
                seconds = (n / 1e5) ** rows_power / threads**threads_power
                made.append(
                    row(
                        contender=contender,
                        ladder="cpu-growth",
                        rung=f"{n}",
                        threads=threads,
                        n_rows=n,
                        n_features=40,
                        repeat=block,
                        block=block,
                        knobs_asked={"max_depth": 8, "max_leaves": 0, "max_bin": 255},
                        train_s=seconds,
                        fit_s=seconds + 1,
                    )
                )
    return made


def printed(rows, width):
    console = Console(file=io.StringIO(), width=width)
    to_terminal(standings(rows), console)
    return console.file.getvalue()


def test_the_table_is_the_one_that_was_checked_by_eye(growth_rows):
    """To accept a new one: print it, read it, then write it here."""
    assert printed(growth_rows, 132) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 60, 80, 132])
def test_the_verdict_is_seen_at_any_width(growth_rows, width):
    table = printed(growth_rows, width).partition("rows: at")[0]
    assert all(len(line) <= width for line in table.splitlines())
    assert table.count("flatter") == 2


def test_values_are_json(growth_rows):
    values = json.loads(json.dumps(to_values(standings(growth_rows)), allow_nan=False))
    assert (values["held"], values["of"]) == (2, 2)
    assert [(one["axis"], one["verdict"], one["holds"]) for one in values["axes"]] == [
        ("rows", "flatter", True),
        ("threads", "flatter", True),
    ]
    assert values["axes"][0]["slopes"][0]["value"] == pytest.approx(0.9)


def test_without_an_axis_it_says_so(row):
    assert "No axis was measured" in printed([row()], 80)
    assert to_values(standings([])) == {"held": 0, "of": 0, "axes": []}
