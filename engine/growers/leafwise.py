"""Best leaf first: a round splits the one open leaf with the largest gain. May import backends only."""

from engine.backends import Backend
from engine.growers.rounds import grow_in_rounds


def grow(backend: Backend) -> None:
    """Grow one tree, a split a round."""
    grow_in_rounds(backend, "best")
