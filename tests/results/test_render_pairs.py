import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from results.render import to_markdown
from results.render_pairs import MISS, to_terminal, to_values
from results.standings import standings

GOLDEN = Path(__file__).with_name("pairs.txt")

SECONDS = {"engine-depthwise": 1.0, "xgboost-depthwise": 2.0, "bonsai-depthwise": 1.25}
LEAFWISE = {"engine-leafwise": 3.0, "lightgbm": 7.0}


@pytest.fixture
def pair_rows(row):
    """Two numbers of threads of two pairs, three blocks each; one target of each kind is missed, one rival failed."""
    rows = []
    for threads in (1, 2):
        for block in range(3):
            for growth, contenders in (("depthwise", SECONDS), ("leafwise", LEAFWISE)):
                for contender, seconds in contenders.items():
                    train = seconds / threads * (1 + 0.1 * block)
                    rows.append(
                        row(
                            contender=contender,
                            growth=growth,
                            ladder="cpu-pairs",
                            rung="tall",
                            threads=threads,
                            repeat=block,
                            block=block,
                            train_s=train,
                            ingest_s=0.5 if contender == "bonsai-depthwise" else 0.25,
                            fit_s=train + 0.5,
                            predict_s=0.3 if contender == "engine-leafwise" else 0.2,
                            rss_bytes=2**27 if contender == "engine-depthwise" else 2**26,
                            value=24.8 if contender == "engine-leafwise" else 24.5,
                        )
                    )
    failed = {"status": "timeout", "message": "not done after 9 s\nmore", "ladder": "cpu-pairs", "rung": "tall"}
    return [*rows, row(contender="xgboost-lossguide", growth="leafwise", **failed)]


def printed(rows, width):
    console = Console(file=io.StringIO(), width=width)
    to_terminal(standings(rows), console)
    return console.file.getvalue()


def test_the_table_is_the_one_that_was_checked_by_eye(pair_rows):
    """To accept a new one: print it, read it, then write it here."""
    assert printed(pair_rows, 132) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 80, 132])
def test_the_verdict_is_seen_at_any_width(pair_rows, width):
    table = printed(pair_rows, width).partition("Ours over theirs")[0]
    assert all(len(line) <= width for line in table.splitlines())
    assert "tall" in table
    if width >= 80:
        assert "0.43" in table
        assert f"{MISS} 0.80" in table
        assert f"{MISS} +1.22%" in table
    assert ("fastest rival" in table) == (width >= 132)


def test_values_are_json_and_say_how_many_hold(pair_rows):
    values = json.loads(json.dumps(to_values(standings(pair_rows)), allow_nan=False))
    assert values["targets"]["train"] == {"target": 0.65, "held": 2, "of": 4}
    assert values["targets"]["quality"] == {"target": 0.003, "held": 2, "of": 4}
    case = values["cases"][0]
    assert (case["growth"], case["threads"], case["judged"]["train"]["rival"]) == ("depthwise", 1, "bonsai-depthwise")
    low, high = case["judged"]["train"]["interval"]
    assert low <= case["judged"]["train"]["ratio"] <= high


def test_without_a_pair_it_says_so(row):
    assert "No pair has figures" in printed([row()], 80)
    assert to_values(standings([]))["cases"] == []


def test_hostile_names_are_shown_as_they_stand(row):
    rows = [row(rung="[red]x"), row(rung="[red]x", contender="[b]rival", train_s=3.0, fit_s=4.0)]
    text = printed(rows, 132)
    assert "[red]x" in text
    assert "[b]rival" in text


def test_quality_over_several_data_sets_shows_how_sure_it_is(row):
    rows = [
        row(
            contender=contender,
            block=n,
            repeat=n,
            data_hash=f"fold{n}",
            data_family="all",
            value=value,
        )
        for contender, values in (("engine-depthwise", (10.1, 20.0, 29.88)), ("xgboost-depthwise", (10.0, 20.0, 30.0)))
        for n, value in enumerate(values)
    ]
    assert "+0.20% ±1.79%" in printed(rows, 132)
    judged = to_values(standings(rows))["cases"][0]["judged"]["quality"]
    assert judged["ratio"] == pytest.approx(0.002)
    assert judged["interval"] == pytest.approx((-0.0159, 0.0199), abs=1e-4)
    assert "(-0.20% ±1.78%)" in to_markdown(standings(rows))
