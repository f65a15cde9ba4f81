"""The loop that all growers share: look at the open nodes, choose, split, repeat. May import backends only."""

from engine.backends import Backend, Choice


def grow_in_rounds(backend: Backend, choice: Choice) -> None:
    """Split open nodes round by round, until the plan has nothing left to split or the limits allow no more rounds."""
    if backend.grow(choice):
        return
    for _ in backend.rounds(choice):
        backend.build_histograms()
        backend.find_splits(choice)
        if backend.plan(choice) == 0:
            return
        backend.partition()
