import pytest

from results.percent import parse_percent, signed_percent


@pytest.mark.parametrize(
    ("text", "share"), [("3%", 0.03), (" 3 %", 0.03), ("0.03", 0.03), ("1e-3", 0.001), ("150%", 1.5)]
)
def test_shares(text, share):
    assert parse_percent(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "three", "0", "-3%", "nan", "inf", "1e9", "3%%"])
def test_nonsense(text):
    with pytest.raises(ValueError, match=r"for example 3%"):
        parse_percent(text)


@pytest.mark.parametrize(
    ("share", "text"), [(0.1023, "+10.2 %"), (-0.005, "-0.5 %"), (2e-6, "+0.0002 %"), (12, "+1200 %")]
)
def test_text(share, text):
    assert signed_percent(share) == text
