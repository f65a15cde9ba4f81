"""Recorded and written hosts, played back through the same parts as a real one. May import probes.

A fixture is one JSON file; ``tests/fixtures/hosts`` holds ours. `probes.replay.fixture` is its form.
"""

from probes.replay.host import Replay, load_replay

__all__ = ["Replay", "load_replay"]
