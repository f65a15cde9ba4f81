import functools
import http.server
import io
import json
import resource
import threading
import zipfile

import numpy as np
import pytest

from ladders.data import msd
from ladders.data.msd import ARCHIVE, MEMBER, OFFICIAL, PINS, Form, fetch, make_msd, msd_shape, parse, read_copy, split
from ladders.data.task import DataError

FORM = Form(train=300, test=40, columns=6, first_year=1922, last_year=2011)
"""As the real one, and smaller."""


def table(n_rows=340, n_columns=6, **cells):
    """A text of the form; cells as ``r3_c2="x"``."""
    rng = np.random.default_rng(1)
    rows = [
        [str(year), *(f"{value:.5f}" for value in rng.normal(0, 50, n_columns - 1))]
        for year in rng.integers(1922, 2012, n_rows)
    ]
    for place, value in cells.items():
        row, column = (int(part[1:]) for part in place.split("_"))
        rows[row][column] = value
    return "".join(",".join(row) + "\n" for row in rows).encode()


def zipped(content, member=MEMBER):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
    return file.getvalue()


class Uci(http.server.BaseHTTPRequestHandler):
    """Serves what the test has put on its server; promises more bytes than it sends where asked to."""

    def do_GET(self):
        self.server.requests += 1
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(self.server.body) + self.server.missing))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def uci(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Uci) as server:
        server.body, server.missing, server.status, server.requests = zipped(table()), 0, 200, 0
        server.url = f"http://127.0.0.1:{server.server_port}/yearpredictionmsd.zip"
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.01), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_fetched_once_and_pinned(uci, tmp_path):
    first = fetch(tmp_path / "msd", uci.url, FORM)
    assert first == table()
    pins = json.loads((tmp_path / "msd" / PINS).read_text())
    assert pins.keys() == {"archive", "member"}
    assert fetch(tmp_path / "msd", uci.url, FORM) == first
    assert uci.requests == 1
    assert sorted(path.name for path in (tmp_path / "msd").iterdir()) == [PINS, ARCHIVE]


def test_the_official_split(uci, tmp_path):
    X, y = parse(fetch(tmp_path, uci.url, FORM), FORM)
    raw = np.array([line.split(",") for line in table().decode().splitlines()], np.float32)
    whole = split(X, y, FORM)
    assert np.array_equal(whole.X_train, raw[:300, 1:])
    assert np.array_equal(whole.y_test, raw[300:, 0])
    part = split(X, y, FORM, one_in=4)
    assert np.array_equal(part.y_train, whole.y_train[::4])
    assert np.array_equal(part.X_test, whole.X_test)
    assert len(split(X, y, FORM, scale=0.1).y_test) == 4


def test_another_archive_than_the_one_first_seen_is_refused(uci, tmp_path):
    fetch(tmp_path, uci.url, FORM)
    (tmp_path / ARCHIVE).unlink()
    uci.body = zipped(table(r0_c1="1.5"))
    with pytest.raises(DataError, match=r"archive of .* has SHA-256 .* when it was first fetched.*Remove .*json"):
        fetch(tmp_path, uci.url, FORM)
    assert not (tmp_path / ARCHIVE).exists()
    (tmp_path / PINS).unlink()
    assert fetch(tmp_path, uci.url, FORM) == table(r0_c1="1.5")


def test_an_archive_damaged_on_the_disk_is_fetched_again_at_the_next_run(uci, tmp_path):
    fetch(tmp_path, uci.url, FORM)
    content = bytearray((tmp_path / ARCHIVE).read_bytes())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / ARCHIVE).write_bytes(content)
    with pytest.raises(DataError):
        fetch(tmp_path, uci.url, FORM)
    assert fetch(tmp_path, uci.url, FORM) == table()
    assert uci.requests == 2


def test_a_download_cut_short_is_nothing(uci, tmp_path):
    uci.body, uci.missing = uci.body[: len(uci.body) // 2], len(uci.body)
    with pytest.raises(DataError, match=r"cannot fetch .*--data PATH, or run msd-shaped"):
        fetch(tmp_path, uci.url, FORM)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_cut_short_by_a_server_that_does_not_say_so(uci, tmp_path):
    uci.body = uci.body[: len(uci.body) // 2]
    with pytest.raises(DataError, match="not a whole zip archive"):
        fetch(tmp_path, uci.url, FORM)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_refuses_and_one_that_is_not_there(uci, tmp_path):
    uci.status = 404
    with pytest.raises(DataError, match="404"):
        fetch(tmp_path, uci.url, FORM)
    with pytest.raises(DataError, match=r"127.0.0.1.*msd-shaped"):
        fetch(tmp_path, "http://127.0.0.1:9/none.zip", FORM)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (table(n_rows=339), r"339 rows, YearPredictionMSD has 340.*cut short"),
        (table(n_rows=341), "341 rows"),
        (table(n_columns=5), "5 columns, YearPredictionMSD has 6"),
        (table(r339_c0="1921"), r"row 340 is of the year 1921, not of 1922 to 2011"),
        (table(r7_c0="2012"), "row 8 is of the year 2012"),
        (table(r7_c0="nan"), "row 8 is of the year nan"),
        (table(r7_c3="nan"), "row 8, column 4 is nan"),
        (table(r7_c3="inf"), "row 8, column 4 is inf"),
        (table(r7_c3=""), "row 8, column 4 is nan"),
        (table(r7_c3="a"), "no table of numbers"),
        (table(r7_c3="1,2"), "no table of numbers"),
        (table()[:-9], r"column|no table"),
        (b"", "1 columns"),
        (b"year\n", "1 columns"),
    ],
)
def test_what_is_not_the_data_is_refused_and_not_pinned(content, told, uci, tmp_path):
    with pytest.raises(DataError, match=told):
        parse(content, FORM)
    uci.body = zipped(content)
    with pytest.raises(DataError, match=told):
        fetch(tmp_path, uci.url, FORM)
    assert list(tmp_path.iterdir()) == []


def test_copies_on_disk(tmp_path):
    for name, content in (("a.zip", zipped(table())), ("a.txt", table()), ("a.csv", table())):
        (tmp_path / name).write_bytes(content)
        assert read_copy(tmp_path / name) == table()
    (tmp_path / "a.zip").write_bytes(zipped(table(), "other.txt"))
    with pytest.raises(DataError, match=r"no member YearPredictionMSD\.txt"):
        read_copy(tmp_path / "a.zip")
    with pytest.raises(DataError, match="No such file"):
        read_copy(tmp_path / "none.zip")
    (tmp_path / "a.zip").write_bytes(table())
    with pytest.raises(DataError, match="not a whole zip archive"):
        read_copy(tmp_path / "a.zip")


def test_the_real_form_at_its_real_size(tmp_path):
    """515,345 rows of 91 columns, zero but for the year: the split falls where it should."""
    years = np.full(515_345, b"2001" + b",0" * 90 + b"\n")
    years[463_714], years[463_715] = b"1922" + b",0" * 90 + b"\n", b"2011" + b",0" * 90 + b"\n"
    (tmp_path / "copy.txt").write_bytes(years.tobytes())
    task = make_msd(path=str(tmp_path / "copy.txt"), one_in=1)
    assert (task.X_train.shape, task.X_test.shape) == ((463_715, 90), (51_630, 90))
    assert (task.y_train[-1], task.y_test[0]) == (1922, 2011)
    assert msd_shape() == (463_715, 51_630, 90)
    assert msd_shape(one_in=16, scale=0.5) == (round(463_715 / 32), 25_815, 90)


def test_a_disk_that_fills_up_is_an_error_of_the_disk(uci, tmp_path):
    uci.body = zipped(table() + bytes(np.random.default_rng(0).bytes(200_000)))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            fetch(tmp_path, uci.url, FORM)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not (tmp_path / ARCHIVE).exists()


def test_a_cache_that_cannot_be_written(uci, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        fetch(tmp_path / "file" / "msd", uci.url, FORM)


def test_hashes_that_are_none(uci, tmp_path):
    (tmp_path / PINS).write_text("{")
    with pytest.raises(DataError, match="remove it to trust"):
        fetch(tmp_path, uci.url, FORM)


def test_one_in_none():
    with pytest.raises(ValueError, match="one_in=0"):
        make_msd(one_in=0)
    assert OFFICIAL.train + OFFICIAL.test == 515_345
    assert msd.URL.startswith("https://archive.ics.uci.edu/")
