from ladders.contenders.shape import tree_depth


def test_leaves_as_nodes():
    assert tree_depth([1, -1, 3, -1, -1], [2, -1, 4, -1, -1]) == 2


def test_leaves_as_negative_children():
    assert tree_depth([1, -1, -2], [-4, 2, -3]) == 3


def test_one_leaf_and_nothing():
    assert tree_depth([-1], [-1]) == 0
    assert tree_depth([], []) == 0
