import io
import xml.etree.ElementTree as ET

import pytest
from PIL import Image

from results.drawings import DRAWN_BY, growth_of, headline, panels
from results.release import release_of
from tests.results.releases import two_releases


@pytest.fixture(scope="module")
def release():
    return release_of(two_releases(), "0.2.0")


@pytest.fixture(scope="module")
def drawings(release):
    flights = [table for table in release.found.tables if table.ladder == "flights"]
    return [headline(release.cases), panels("flights", flights), *map(growth_of, release.slopes)]


def test_a_drawing_says_its_figures_in_words_and_the_same_twice(drawings):
    for drawing in drawings:
        svg = drawing.svg()
        assert svg == drawing.svg()
        assert DRAWN_BY in svg
        tree = ET.fromstring(svg)
        (words,) = [element.text for element in tree.iter() if element.tag.endswith("description")]
        assert words == drawing.words
        assert Image.open(io.BytesIO(drawing.png())).info["Description"] == drawing.words


def test_the_words_are_the_figures(release, drawings):
    case = next(case for case in release.cases if case.rung == "delay")
    assert f"flights delay, 2 threads, depthwise: {case.judged['train'].ratio:.2f} (" in drawings[0].words
    assert "engine-depthwise: ingest 0.1000 s, train 1.257 s, total 1.357 s" in drawings[1].words
    assert "host memory 50.00 MiB, device memory 300.0 MiB, quality 24.50" in drawings[1].words
    assert (
        "xgboost-depthwise: ingest 0.1000 s, train 2.096 s, total 2.196 s, host memory 50.00 MiB, device memory not"
        in (drawings[1].words)
    )
    assert "engine-depthwise: slope 0.50" in drawings[2].words


def test_text_stays_text_and_nothing_leaves_the_page(drawings):
    for drawing in drawings:
        assert "<text" in drawing.svg()
        figure = drawing.draw()
        page = figure.get_tightbbox()
        assert page.x0 >= 0
        assert page.x1 <= figure.get_figwidth() + 0.01
        assert page.y0 >= 0
        assert page.y1 <= figure.get_figheight() + 0.01


def test_nothing_measured_is_drawn_as_such(row):
    found = release_of([row(status="oom", message="killed", data_hash=None)], "0.1.0")
    assert "not measured" in panels("flights", found.found.tables).svg()
    assert "as fast" in headline(()).svg()
