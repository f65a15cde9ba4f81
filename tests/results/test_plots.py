import random

import matplotlib.image
import pytest

from results.plots import draw, save_plots
from results.standings import standings


def test_the_same_rows_draw_the_same_bytes(fixture_rows, tmp_path):
    drawn = []
    for seed in range(2):
        directory = tmp_path / str(seed)
        directory.mkdir()
        random.Random(seed).shuffle(fixture_rows)
        drawn.append([path.read_bytes() for path in save_plots(standings(fixture_rows), directory)])
    assert drawn[0] == drawn[1]
    assert b"<dc:date>" not in drawn[0][0]
    assert matplotlib.image.imread(tmp_path / "0" / "standings.png").ndim == 3


def test_axes_start_at_zero_and_hold_every_contender(fixture_rows):
    found = standings(fixture_rows)
    figure = draw(found)
    pairs = [pair for table in found.tables for pair in table.pairs]
    assert len(figure.axes) == len(pairs)
    for axes, pair in zip(figure.axes, pairs, strict=True):
        assert axes.get_xlim()[0] == 0
        names = [label.get_text() for label in axes.get_yticklabels()]
        expected = [entry.contender for entry in pair.entries] + [item.contender for item in pair.unplaced]
        assert [name.split()[0] for name in names] == expected
        bars = [bar for bar in axes.patches if bar.get_x() == 0]
        assert [bar.get_width() for bar in bars] == [entry.train.median for entry in pair.entries]


@pytest.mark.parametrize("seconds", [1e-6, 1e6])
def test_nothing_drawn_leaves_the_page(row, seconds):
    passport = {"digest": "5a1e7c0ffee0b00c", "host": {"processor": "Intel(R) Xeon(R) $8581C CPU @ 2.60GHz$ " * 2}}
    shared = {"passport_before": passport, "passport_after": passport, "dirty": True, "release": "0.1.0+d0123456789ab"}
    rows = [
        row(contender=name, train_s=seconds / part, ingest_s=0.0, fit_s=seconds, repeat=repeat, **shared)
        for repeat in range(2)
        for name, part in (("engine-depthwise", 1), ("xgboost-depthwise", 9))
    ]
    rows.append(row(contender="contender-" * 6, status="error", message="$\\frac{broken$", **shared))
    figure = draw(standings(rows))
    page = figure.get_tightbbox()
    assert page.x0 >= 0
    assert page.x1 <= figure.get_figwidth()
    assert page.y0 >= 0
    assert page.y1 <= figure.get_figheight()


def test_a_rung_without_figures_is_drawn(row, tmp_path):
    paths = save_plots(standings([row(status="timeout", message="300 s")]), tmp_path)
    assert all(path.stat().st_size > 0 for path in paths)
