import pytest

from results.release import release_before, release_of
from tests.results.releases import two_releases


@pytest.mark.parametrize(
    ("tag", "before"),
    [
        ("0.10.0", "0.9.0"),
        ("0.9.0", "0.2.0"),
        ("0.2.0", "0.2.0rc1"),
        ("0.1.0", None),
        ("0.1.0+d0123", None),
        ("nightly", None),
    ],
)
def test_the_release_before_is_the_next_lower_version(tag, before):
    assert release_before(["0.9.0", "0.2.0", "0.10.0", "0.1.0", "0.2.0rc1", "0.8.0+dabc", "nightly"], tag) == before


def test_a_release_has_its_own_rows_only():
    found = release_of(two_releases(), "0.1.0")
    assert {table.row_class.release for table in found.found.tables} == {"0.1.0"}
    assert (found.previous, found.changes) == (None, ())
    assert {one.axis for one in found.slopes} == {"columns"}


def test_an_unknown_release_names_the_known_ones(row):
    with pytest.raises(LookupError, match=r"'9.9'.*: 0\.1\.0$"):
        release_of([row()], "9.9")
    with pytest.raises(LookupError, match="none"):
        release_of([], "0.1.0")
