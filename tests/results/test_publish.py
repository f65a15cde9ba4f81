import json

import pytest

from results.publish import choose, copy
from results.store import Store, StoreError


@pytest.fixture
def local(tmp_path, row):
    store = Store(tmp_path / "local")
    store.append(row(repeat=0))
    store.append(row(repeat=1, status="oom", message="a result too"))
    store.append(row(repeat=2, dirty=True))
    store.append(row(repeat=3, commit=None))
    store.append(row(repeat=4, release="0.2.0", commit="fedcba9", ladder="tall"))
    return store


@pytest.fixture
def records(tmp_path):
    return Store(tmp_path / "records")


def test_whole_rows_of_every_status_go_and_go_once(local, records):
    copy(choose(local.read().stored, records).rows, records)
    assert [row.repeat for row in records.read().rows] == [0, 1, 4]
    again = choose(local.read().stored, records)
    assert again.rows == ()
    assert again.left_out["already published"] == 3


def test_rows_of_no_commit_stay_unless_asked_for(local, records):
    assert sum(choose(local.read().stored, records).left_out.values()) == 2
    assert [item.row.repeat for item in choose(local.read().stored, records, dirty=True).rows] == [0, 1, 2, 3, 4]


def test_filters(local, records):
    assert [item.row.repeat for item in choose(local.read().stored, records, release="0.2.0").rows] == [4]
    assert [item.row.repeat for item in choose(local.read().stored, records, commit="0123").rows] == [0, 1]
    assert choose(local.read().stored, records, commit="0000").rows == ()


def test_keys_of_a_later_writer_are_copied(local, records, row):
    later = json.dumps({**json.loads(row(repeat=9).to_line()), "joules": 12.5})
    local.append_text("flights", later)
    copy(choose(local.read().stored, records).rows, records)
    assert later in (records.directory / "flights.jsonl").read_text().splitlines()


def test_records_that_cannot_be_written_are_said(local, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot append"):
        copy(choose(local.read().stored, Store(tmp_path / "file")).rows, Store(tmp_path / "file"))
