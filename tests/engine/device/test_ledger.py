"""What is booked where."""

import contextlib

from engine.device.ledger import Ledger


def test_a_transaction_ends_with_its_block_also_when_it_fails():
    ledger = Ledger()
    with ledger.during("begin"):
        ledger.entry.bytes_up += 3
        with contextlib.suppress(RuntimeError), ledger.during("tune"):
            ledger.entry.syncs += 1
            raise RuntimeError
        ledger.entry.bytes_up += 4
    assert ledger.transaction == "outside"
    assert {name: (e.bytes_up, e.syncs) for name, e in ledger.entries.items()} == {"begin": (7, 0), "tune": (0, 1)}


def test_a_replay_counts_every_launch_in_it():
    ledger = Ledger()
    with ledger.during("gradients") as entry:
        ledger.launched(["quantise"])
        ledger.launched(["build", "find", "build"], replayed=True)
    assert (entry.launches, entry.replays) == (4, 1)  # no kernel has a home
    assert ledger.kernels == {"quantise": 1, "build": 2, "find": 1}


def test_seconds_go_to_the_transaction_that_launched():
    ledger = Ledger()
    with ledger.during("evaluate"):
        ledger.timed("build", 0.25, "histogram")
        ledger.timed("build", 0.5, "histogram")
    assert ledger.entries["histogram"].device_seconds == ledger.kernel_seconds["build"] == 0.75


def test_a_kernel_with_a_home_is_booked_there_whoever_replays_it():
    ledger = Ledger(homes={"build": "histogram"})
    with ledger.during("leaves"):
        ledger.launched(["build", "close"], replayed=True)
        ledger.timed("build", 0.5, "leaves")
    histogram, leaves = ledger.entries["histogram"], ledger.entries["leaves"]
    assert (histogram.launches, histogram.replays, histogram.device_seconds) == (1, 0, 0.5)
    assert (leaves.launches, leaves.replays, leaves.device_seconds) == (1, 1, 0.0)
