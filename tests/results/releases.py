"""Published rows of two releases, for the tests of pages: wins, losses, failures, growth, evil names, another host."""

from datetime import UTC, datetime, timedelta

from tests.results.conftest import PASSPORT, make_row

ENGINE, RIVAL = "engine-depthwise", "xgboost-depthwise"
SPEED = {ENGINE: 1.0, RIVAL: 2.0, "bonsai-depthwise": 1.5}
KNOBS = {"max_depth": 8, "max_leaves": 0, "max_bin": 255}
OTHER_HOST = {"digest": "0therh0st0000000"}
EVIL = "<script>fetch('http://example.com')</script> | `*_ ](x) \u2028\n# second line"


def two_releases():
    """Rows of 0.1.0 and 0.2.0, on a host 5 % slower: the engine 20 % slower on flights, the same on growth."""
    rows = []
    for number, release in enumerate(("0.1.0", "0.2.0")):
        for contender in SPEED:
            for block in range(6):
                engine_slower = 1.2 if number and contender == ENGINE else 1.0
                rows.append(fit(release, number, contender, block, engine_slower * 1.05**number))
                for columns in (20, 40, 80):
                    growth = {
                        "ladder": "cpu-growth",
                        "rung": f"columns-{columns}",
                        "n_rows": 1000,
                        "n_features": columns,
                    }
                    factor = 1.05**number * (columns / 20) ** (0.5 if contender == ENGINE else 0.9)
                    rows.append(fit(release, number, contender, block, factor, **growth))
    rows.append(fit("0.2.0", 1, "catboost", 0, status="error", message=EVIL, growth="levelwise"))
    rows.append(fit("0.2.0", 1, ENGINE, 0, rung="<b>late</b>", command=f"dyno ladder run {EVIL}"))
    rows.append(fit("0.2.0", 0, ENGINE, 9, passport_before=OTHER_HOST, passport_after=OTHER_HOST))
    return rows


def fit(release, number, contender, block, factor=1.0, **changes):
    """One fit of a contender in a block, a little unlike that of the other blocks."""
    train = SPEED.get(contender, 1.0) * factor * (1 + 0.004 * (block * 7 % 5 - 2))
    fields = {
        "release": release,
        "commit": f"{number + 0xABC:040x}",
        "ts": datetime(2026, 1, 1 + number, 12, block, tzinfo=UTC) + timedelta(seconds=len(contender)),
        "contender": contender,
        "library": contender.partition("-")[0],
        "version": release if contender == ENGINE else "3.2.0",
        "block": block,
        "repeat": block,
        "knobs_asked": KNOBS,
        "knobs_found": KNOBS,
        "ingest_s": 0.1,
        "train_s": train,
        "fit_s": train + 0.1,
        "rss_bytes": 50 << 20,
        "device_bytes": 300 << 20 if contender == ENGINE else None,
        "passport_before": PASSPORT,
        "passport_after": PASSPORT,
        "command": f"dyno ladder run flights --contenders={contender}",
    }
    return make_row(**{**fields, **changes})
