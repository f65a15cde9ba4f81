"""Level by level: a round splits every open node that has a valid split. May import backends only."""

from engine.backends import Backend
from engine.growers.rounds import grow_in_rounds


def grow(backend: Backend) -> None:
    """Grow one tree, a level a round."""
    grow_in_rounds(backend, "every")
