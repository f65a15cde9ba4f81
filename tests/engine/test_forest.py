from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import ModelError
from engine.forest import Forest
from engine.tree import NODE_DTYPES, JoinedTrees, Tree


def make_tree(splits_of_node: list[bool]) -> Tree:
    """A breadth-first tree whose i-th node splits where the list says so; beyond the list all are leaves."""
    inner = []
    while len(inner) < 1 + 2 * sum(inner):
        inner.append(len(inner) < len(splits_of_node) and splits_of_node[len(inner)])
    inner = np.array(inner)
    first_child = np.where(inner, 2 * np.cumsum(inner) - 1, -1)
    nodes = np.arange(len(inner))
    columns = {
        "feature": np.where(inner, nodes % 3, -1),
        "bin": np.where(inner, nodes % 7, -1),
        "threshold": np.where(inner, nodes - 0.5, 0.0),
        "missing_left": inner & (nodes % 2 == 0),
        "left": first_child,
        "right": np.where(inner, first_child + 1, -1),
        "leaf": ~inner,
        "value": np.where(inner, 0.0, nodes / 8 - 1),
        "gain": np.where(inner, nodes + 1.0, 0.0),
        "cover": nodes + 0.25,
        "count": nodes + 1,
    }
    return Tree(**{name: columns[name].astype(dtype) for name, dtype in NODE_DTYPES.items()})


trees = st.lists(st.lists(st.booleans(), max_size=12).map(make_tree), max_size=4)


@given(trees)
def test_trees_come_back_as_they_went_in(given_trees):
    forest = Forest.of(given_trees)
    assert len(forest) == len(given_trees)
    for index, tree in enumerate(given_trees):
        for name, array in tree.arrays().items():
            found = forest.tree(index).arrays()[name]
            assert found.dtype == NODE_DTYPES[name]
            np.testing.assert_array_equal(found, array)
    np.testing.assert_array_equal(
        forest.tree_of_node(), np.repeat(np.arange(len(forest)), [len(t) for t in given_trees])
    )
    np.testing.assert_array_equal(forest.node_in_tree(), [node for tree in given_trees for node in range(len(tree))])


def test_trees_that_lie_joined_are_not_copied():
    joined = JoinedTrees.of([make_tree([True, False, False]), make_tree([False])])
    forest = Forest.of(joined)
    assert np.shares_memory(forest.gain, joined.arrays["gain"])
    assert [len(tree) for tree in joined] == [len(tree) for tree in joined[:]] == [3, 1]
    assert len(joined[-1]) == 1
    with pytest.raises(IndexError):
        joined[2]


def test_index_of_a_tree_counts_like_a_list():
    forest = Forest.of([make_tree([True]), make_tree([])])
    assert len(forest.tree(-1)) == 1
    assert len(forest.tree(-2)) == 3
    for index in (2, -3):
        with pytest.raises(IndexError):
            forest.tree(index)


def test_is_read_only_and_leaves_the_caller_its_array():
    tree = make_tree([True])
    arrays = Forest.of([tree]).arrays()
    forest = Forest(**{**arrays, "value": tree.value})
    with pytest.raises(ValueError, match="read-only"):
        forest.value[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        forest.tree(0).value[0] = 1
    tree.value[0] = 1


def test_takes_strided_arrays_and_keeps_contiguous_ones():
    arrays = Forest.of([make_tree([True, True])]).arrays()
    arrays["cover"] = np.repeat(arrays["cover"], 2)[::2]
    forest = Forest(**arrays)
    assert all(array.flags.c_contiguous for array in forest.arrays().values())


BREAKS = [
    ("leaf", 0, 2, "leaf flag"),
    ("leaf", 0, 1, "a leaf must have 'feature' -1"),
    ("leaf", 4, 0, "an inner node must have 'value' 0"),
    ("missing_left", 0, 2, "missing_left"),
    ("missing_left", 4, 1, "a leaf must have 'missing_left' 0"),
    ("feature", 0, -1, "must name a feature"),
    ("feature", 4, 0, "a leaf must have 'feature' -1"),
    ("bin", 0, -1, "'bin' must lie"),
    ("bin", 0, 65535, "'bin' must lie"),
    ("bin", 4, 0, "a leaf must have 'bin' -1"),
    ("threshold", 0, np.nan, "'threshold'"),
    ("threshold", 0, -np.inf, "'threshold'"),
    ("threshold", 4, 1.0, "a leaf must have 'threshold' 0"),
    ("left", 0, 7, "left child is out of range"),
    ("left", 0, -1, "left child must come after"),
    ("left", 1, 0, "left child must come after"),
    ("left", 1, 1, "left child must come after"),
    ("left", 1, 4, "have exactly one parent"),
    ("left", 1, 5, "have exactly one parent"),
    ("left", 4, 5, "a leaf must have 'left' -1"),
    ("right", 1, 1000, "right child is out of range"),
    ("right", 0, 1, "have exactly one parent"),
    ("right", 1, -(2**31), "right child must come after"),
    ("right", 4, 6, "a leaf must have 'right' -1"),
    ("value", 4, np.inf, "'value' must be finite"),
    ("value", 4, np.nan, "'value' must be finite"),
    ("value", 0, 1.0, "an inner node must have 'value' 0"),
    ("gain", 0, np.nan, "'gain' must be finite"),
    ("gain", 4, 1.0, "a leaf must have 'gain' 0"),
    ("cover", 0, np.inf, "'cover' must be finite"),
    ("cover", 0, -1.0, "'cover' must be >= 0"),
    ("count", 0, -1, "'count' must be >= 0"),
]


@pytest.mark.parametrize(("name", "node", "value", "reason"), BREAKS)
def test_one_wrong_number_is_refused_by_tree_and_node(name, node, value, reason):
    # Nodes 0, 1, 2 are inner; 3, 4, 5, 6 are leaves. The broken tree is the second of three.
    array = getattr(make_tree([True] * 3), name).copy()
    array[node] = value
    broken = replace(make_tree([True] * 3), **{name: array})
    # A node with too many parents, or none, is another one than the node that points wrong.
    named = r"\d" if "one parent" in reason else node
    with pytest.raises(ModelError, match=f"tree 1, node {named}: .*{reason}"):
        Forest.of([make_tree([True]), broken, make_tree([])])


def test_threshold_of_infinity_parts_present_from_missing():
    tree = make_tree([True])
    tree.threshold[0] = np.inf
    assert Forest.of([tree]).threshold[0] == np.inf


@pytest.mark.parametrize("offsets", [[], [0], [1, 4], [0, 3], [0, 0, 4], [0, 4, 4], [0, 3, 1, 4], [0, 5], [-1, 4]])
def test_offsets_that_do_not_fit_are_refused(offsets):
    arrays = Forest.of([make_tree([True]), make_tree([])]).arrays()
    with pytest.raises(ModelError, match="offsets"):
        Forest(**{**arrays, "offsets": np.array(offsets, dtype=np.int64)})


@pytest.mark.parametrize("name", [*NODE_DTYPES, "offsets"])
def test_wrong_dtype_shape_or_length_is_refused_by_name(name):
    arrays = Forest.of([make_tree([True])]).arrays()
    wrong = [arrays[name].astype(np.float16), arrays[name][:, None]]
    if name != "offsets":
        wrong.append(arrays[name][:-1])
    for array in wrong:
        with pytest.raises(ModelError, match=f"'{name}'|'feature'"):
            Forest(**{**arrays, name: array})
