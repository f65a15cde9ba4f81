"""The three growth strategies as orders of transactions. May import backends only."""

from collections.abc import Callable

from engine.backends import Backend
from engine.growers import depthwise, leafwise, levelwise

GROWERS: dict[str, Callable[[Backend], None]] = {
    "depthwise": depthwise.grow,
    "leafwise": leafwise.grow,
    "levelwise": levelwise.grow,
}
