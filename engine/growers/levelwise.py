"""Oblivious trees: a round splits the whole frontier by one common cut. May import backends only."""

from engine.backends import Backend
from engine.growers.rounds import grow_in_rounds


def grow(backend: Backend) -> None:
    """Grow one tree, a level and one cut a round."""
    grow_in_rounds(backend, "common")
