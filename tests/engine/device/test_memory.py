"""All or nothing, and a message that helps."""

import pytest

from engine.device.memory import explain, readable


@pytest.mark.parametrize(("nbytes", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2 * 10**9, "2.0 GB")])
def test_bytes_for_people(nbytes, text):
    assert readable(nbytes) == text


def test_the_largest_buffer_names_the_knob():
    text = explain({"rows": 10, "cells": 4 * 10**9, "tiles": 10**6})
    assert text.startswith("all of it needs 4.0 GB (cells 4.0 GB, tiles 1.0 MB, rows 10 B)")
    assert "max_leaves" in text
    assert "rows" in explain({"pairs": 10}).partition(":")[2]
