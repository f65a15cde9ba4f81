"""The emulated device, through the small kernels of engine/native/emulator/self_test.cpp."""

import ctypes
import platform
import threading

import numpy as np
import pytest

from engine.device import Launch, open_device
from engine.device.emulated import EmulatedDevice, KernelError, kernel_names
from engine.errors import DeviceMemoryError, DeviceUnavailableError

SEEDS = range(20)
STATE = np.dtype([("input", "u8"), ("output", "u8"), ("wide", "u8"), ("n", "i8")])


class Bench:
    """One device with an input and two zeroed outputs for a self-test kernel."""

    def __init__(self, values=(0,), n_output=1, wide=(0,), n=0, clear=True, **device):
        self.device = EmulatedDevice(**device)
        self.n_output, self.n_wide = n_output, len(wide)
        self.input = self.put(np.asarray(values, np.uint32), "input")
        self.output = self.device.alloc(4 * n_output, "output")
        if clear:
            self.device.clear(self.output)
        self.wide = self.put(np.asarray(wide, np.uint64), "wide")
        state = np.array([(self.input.address, self.output.address, self.wide.address, n)], STATE)
        self.state = self.put(state, "state")

    def put(self, array, what):
        buffer = self.device.alloc(array.nbytes, what)
        self.device.upload(buffer, array)
        return buffer

    def run(self, kernel, grid=1, block=32, shared_bytes=0):
        self.device.launch(Launch(f"self_test_{kernel}", grid, block, shared_bytes), self.state)
        output = self.device.download(self.output, np.uint32, (self.n_output,))
        return output, self.device.download(self.wide, np.uint64, (self.n_wide,))


def numbers(size, below=100):
    return np.random.default_rng(size).integers(0, below, size).astype(np.uint32)


# ---- what the primitives do ------------------------------------------------------------------------------------------


def test_a_thread_knows_its_names():
    output, _ = Bench(n_output=6 * 3 * 70).run("names", grid=3, block=70)
    thread, block, block_size, grid_size, lane, warp = output.reshape(3, 70, 6).transpose(2, 0, 1)
    assert (thread == np.arange(70)).all()
    assert (block == np.arange(3)[:, None]).all()
    assert (block_size == 70).all()
    assert (grid_size == 3).all()
    assert (lane == thread % 32).all()
    assert (warp == thread // 32).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_barrier_makes_shared_memory_whole(seed):
    values = numbers(5 * 200)
    output, _ = Bench(values, len(values), schedule_seed=seed).run("reverse", grid=5, block=200, shared_bytes=800)
    assert (output == values.reshape(5, 200)[:, ::-1].ravel()).all()


@pytest.mark.parametrize("seed", SEEDS[:5])
def test_shuffles(seed):
    values, lane = numbers(64), np.arange(32)
    output, _ = Bench(values, 4 * 64, schedule_seed=seed).run("shuffles", block=64)
    shuffled, up, down, xor = output.reshape(2, 32, 4).transpose(2, 0, 1)
    warps = values.reshape(2, 32)
    assert (shuffled == warps[:, (lane + 5) % 32]).all()
    assert (up == warps[:, np.where(lane < 3, lane, lane - 3)]).all()
    assert (down == warps[:, np.where(lane + 3 > 31, lane, lane + 3)]).all()
    assert (xor == warps[:, lane ^ 9]).all()


def test_shuffles_carry_64_bits():
    values = numbers(64, 2**20).astype(np.uint64) * 2**40
    output, wide = Bench(n_output=64, wide=values // 2**40 * (2**40 + 1)).run("scan", block=64)
    warps = (values // 2**40 * (2**40 + 1)).reshape(2, 32)
    assert (wide.reshape(2, 32) == warps.cumsum(axis=1)).all()
    assert len(set(output[:32])) == 1


@pytest.mark.parametrize("n", [1, 20, 32])
@pytest.mark.parametrize("seed", SEEDS[:5])
def test_votes_of_part_of_a_warp_that_diverges(n, seed):
    values = numbers(32)
    output, _ = Bench(values, 4 * 32, n=n, schedule_seed=seed).run("votes")
    same, votes, any_seven, all_small = output.reshape(32, 4)[:n].T
    taking_part = values[:n]
    bits = 2 ** np.arange(n)
    odd = taking_part % 2 == 1
    assert (same == [(bits * (taking_part == value)).sum() for value in taking_part]).all()
    threes, fives = ((bits * voting).sum() for voting in (odd & (taking_part % 3 == 0), ~odd & (taking_part % 5 == 0)))
    expected = np.where(odd, threes, fives)
    assert (votes == expected).all()
    assert (any_seven == (taking_part == 7).any()).all()
    assert (all_small == (taking_part < 90).all()).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_atomics_add_up_whatever_the_order(seed):
    values = numbers(6 * 96)
    bench = Bench(values, 2, wide=np.zeros(16), schedule_seed=seed)
    output, wide = bench.run("atomics", grid=6, block=96, shared_bytes=64)
    assert (wide == np.bincount(values % 16, minlength=16)).all()
    assert output[0] == values.max()
    assert output[1] in values
    tally = bench.device.tally("self_test_atomics")
    assert tally == (len(values), 6 * 16 + 2 * len(values), 6 * 2, 0)


def test_the_last_block_sees_what_the_others_wrote():
    for seed in SEEDS:
        _, wide = Bench(n_output=10, schedule_seed=seed, n_processors=3).run("last", grid=9, block=1)
        assert wide == 45


@pytest.mark.parametrize("seed", SEEDS)
def test_look_back_through_64_blocks_of_which_two_are_resident(seed):
    values = numbers(64)
    bench = Bench(values, 65, wide=np.zeros(64), n=64, schedule_seed=seed)
    output, _ = bench.run("look_back", grid=64, block=40, shared_bytes=4)
    assert (output[:64] == values.cumsum()).all()


@pytest.fixture
def other_floating_point_mode():
    """Rounding towards zero and no denormals, as some other library may have left it."""
    library = ctypes.CDLL("libm.so.6")
    saved, changed = (ctypes.c_uint32 * 16)(), (ctypes.c_uint32 * 16)()
    for environment in (saved, changed):
        library.fegetenv(environment)
    changed[7] |= 0x8000 | 0x6000 | 0x0040  # MXCSR: flush to zero, rounding, denormals are zero
    library.fesetenv(changed)
    yield
    library.fesetenv(saved)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="knows where x86-64 keeps the mode")
def test_kernels_run_in_the_contracts_floating_point_mode(other_floating_point_mode):
    denormal, two, three = 1000, 0x40000000, 0x40400000  # as bits: this thread's own arithmetic is off
    output, _ = Bench((denormal, two, three), 2).run("floating_point")
    assert output.tolist() == [denormal // 2, 0x3F2AAAAB]


# ---- the schedule ----------------------------------------------------------------------------------------------------


def orders(kernel, seeds=SEEDS, **launch):
    """The outputs of a kernel over schedule seeds, each as bytes."""
    found = []
    for seed in seeds:
        values = numbers(launch["grid"] * launch["block"])
        n = len(values)
        bench = Bench(values, n + 1, wide=np.zeros(n), n=n, schedule_seed=seed)
        found.append(bench.run(kernel, **launch)[0].tobytes())
    return found


def test_a_seed_replays_its_schedule():
    launch = {"grid": 4, "block": 64}
    assert orders("tickets", [7], **launch) == orders("tickets", [7], **launch)


def test_every_seed_has_an_order_of_its_own():
    assert len(set(orders("tickets", grid=4, block=64))) == len(SEEDS)


def test_an_order_dependent_sum_changes_bits():
    assert len(set(orders("float_sum", grid=1, block=64, shared_bytes=8))) > 1


def test_a_missing_barrier_changes_bits():
    launch = {"grid": 2, "block": 64, "shared_bytes": 256}
    assert len(set(orders("reverse", **launch))) == 1
    assert len(set(orders("reverse_without_barrier", **launch))) > len(SEEDS) // 2


def test_a_flag_published_before_its_value_changes_bits():
    launch = {"grid": 32, "block": 2, "shared_bytes": 4}
    sums = {np.frombuffer(found, np.uint32)[:32].tobytes() for found in orders("flag_before_value", **launch)}
    assert len({found[:128] for found in orders("look_back", **launch)}) == 1
    assert len(sums) > 1


def test_unwritten_memory_differs_from_seed_to_seed():
    found = set()
    for seed in SEEDS:
        output, _ = Bench(np.zeros(32), 32, schedule_seed=seed).run("reads_unwritten", shared_bytes=128)
        found.add(output.tobytes())
    assert len(found) == len(SEEDS)
    contents = [EmulatedDevice(schedule_seed=seed) for seed in SEEDS]
    assert len({d.download(d.alloc(64, "buffer"), np.uint8, (64,)).tobytes() for d in contents}) == len(SEEDS)


# ---- what mistakes look like -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (
            "leaves_before_barrier",
            r"kernel self_test_leaves_before_barrier, block 0, thread \d+, self_test.cpp:\d+",
        ),
        ("two_barriers", r"thread \d+, self_test.cpp:\d+: sync_block, while others wait at line \d+"),
        ("mask_without_itself", r"sync_warp with a mask that leaves out lane 0"),
        ("different_collectives", r"(ballot|any) names lane \d+, which is in (ballot|any) at line \d+"),
        ("misaligned", r"self_test.cpp:\d+: shared memory at an offset that its type is not aligned to"),
        ("wide_atomic_on_shared", r"self_test.cpp:\d+: a 64-bit atomic on shared memory"),
    ],
)
def test_lanes_that_do_not_meet_are_named(kernel, message):
    with pytest.raises(KernelError, match=message):
        Bench(n_output=64).run(kernel, block=64, shared_bytes=64)


def test_who_waits_for_an_absent_lane_is_told():
    with pytest.raises(KernelError) as error:
        Bench(n_output=32).run("mask_with_absent")
    lines = str(error.value).splitlines()
    assert lines[0] == "kernel self_test_mask_with_absent is stuck:"
    assert "threads 0-2 wait in ballot(0xffffffff) at self_test.cpp:" in lines[1]
    assert lines[2] == "  block 0, thread 3 have left the kernel"
    assert "threads 4-31 wait in ballot" in lines[3]


def test_waiting_for_a_block_that_is_not_resident_is_told():
    """Blocks start in drawn order, so over a few seeds two of them wait for others that cannot start."""
    reports = []
    for seed in SEEDS:
        try:
            Bench(numbers(32), 33, wide=np.zeros(32), schedule_seed=seed).run("waits_for_block_number", 32, 1)
        except KernelError as error:
            reports.append(str(error))
    assert len(reports) > len(SEEDS) // 2
    assert all("thread 0 spin at self_test.cpp:" in report for report in reports)


def test_a_shuffle_from_outside_the_mask_reads_poison():
    results = {Bench(n_output=32, schedule_seed=s).run("shuffle_from_outside")[0].tobytes() for s in SEEDS}
    assert len(results) == len(SEEDS)


def test_a_write_past_a_buffer_names_kernel_and_buffer():
    with pytest.raises(
        KernelError, match=r"kernel self_test_writes_past_end: a write 8 bytes past the end of 'output'"
    ):
        Bench(n_output=5, n=7).run("writes_past_end")


def test_a_write_past_shared_memory_is_told():
    with pytest.raises(KernelError, match=r"0 bytes past the end of 'shared memory', which has 128 bytes"):
        Bench().run("writes_past_shared", shared_bytes=128)


def test_guards_are_looked_at_when_memory_is_freed():
    bench = Bench(n_output=5)
    np.frombuffer((ctypes.c_uint8 * 24).from_address(bench.output.address), np.uint8)[20] = 1
    with pytest.raises(KernelError, match="'output'"):
        bench.device.synchronise()
    with pytest.raises(KernelError, match="'output'"):
        bench.device.free(bench.output)


def test_the_device_goes_on_after_a_mistake():
    values = numbers(64)
    bench = Bench(values, 64)
    with pytest.raises(KernelError):
        bench.run("two_barriers", block=64)
    assert (bench.run("reverse", block=64, shared_bytes=256)[0] == values[::-1]).all()


# ---- the protocol ----------------------------------------------------------------------------------------------------


def test_copies_are_booked_and_whole():
    device = EmulatedDevice()
    buffer = device.alloc(800, "buffer")
    with device.ledger.during("there and back") as entry:
        device.upload(buffer, np.arange(90, dtype=np.int64), offset=80)
        assert (device.download(buffer, np.int64, (45, 2), offset=80).ravel() == np.arange(90)).all()
    assert (entry.bytes_up, entry.bytes_down, entry.syncs, entry.launches) == (720, 720, 1, 0)


def test_a_recorded_sequence_runs_when_it_is_replayed():
    bench = Bench(n_output=33, n=32)
    with bench.device.ledger.during("tree") as entry:
        graph = bench.device.record(
            [Launch("self_test_tickets", 1, 16), Launch("self_test_tickets", 1, 16)], bench.state
        )
        assert bench.device.download(bench.output, np.uint32, (33,))[32] == 0
        bench.device.replay(graph)
    assert bench.device.download(bench.output, np.uint32, (33,))[32] == 32
    assert (entry.launches, entry.replays) == (2, 1)
    assert bench.device.ledger.kernels["self_test_tickets"] == 2


def test_memory_is_counted_and_limited():
    device = EmulatedDevice(memory_limit=100, fail_allocation=2)
    first, _ = device.alloc(60, "first"), device.alloc(0, "nothing")
    with pytest.raises(DeviceMemoryError, match="'third': 1 bytes were asked for and 0 are free"):
        device.alloc(1, "third")
    with pytest.raises(DeviceMemoryError, match="'fourth': 41 bytes were asked for and 40 are free"):
        device.alloc(41, "fourth")
    device.free(first)
    assert (device.allocated, device.peak) == (0, 60)
    with pytest.raises(KernelError, match="freed before"):
        device.free(first)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda d, b: d.upload(b, np.zeros(11, np.uint8)), "bytes 0 to 11 of a buffer that has 10"),
        (lambda d, b: d.upload(b, np.zeros((4, 4), np.uint8)[:, :2]), "ascontiguousarray"),
        (lambda d, b: d.download(b, np.uint8, (2,), offset=9), "bytes 9 to 11"),
        (lambda d, b: d.launch(Launch("self_test_names", 1, 32, d.shared_limit + 1), b), "make its tile smaller"),
        (lambda d, b: d.launch(Launch("self_test_names", 1, 1025), b), "1 to 1024 threads"),
        (lambda d, b: d.launch(Launch("self_test_names", 0, 1), b), "at least one block"),
        (lambda d, b: d.launch(Launch("no_such_kernel", 1, 1), b), "no kernel is named 'no_such_kernel'"),
    ],
)
def test_what_cannot_be_done_is_refused(act, message):
    device = EmulatedDevice()
    with pytest.raises((ValueError, KernelError), match=message):
        act(device, device.alloc(10, "buffer"))


def test_a_closed_device_is_closed():
    device = EmulatedDevice()
    buffer = device.alloc(8, "buffer")
    device.close()
    device.close()
    for act in (lambda: device.alloc(1, "more"), lambda: device.clear(buffer), device.synchronise):
        with pytest.raises(DeviceUnavailableError, match="was closed"):
            act()


def test_the_seed_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("DYNO_SCHEDULE_SEED", "12")
    device, expected = open_device("emulated"), EmulatedDevice(schedule_seed=12)
    poison = [d.download(d.alloc(8, "buffer"), np.uint64, (1,)) for d in (device, expected)]
    assert poison[0] == poison[1]


def test_an_emulator_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("DYNO_EMULATOR", "/nowhere/emulator.so")
    with pytest.raises(DeviceUnavailableError, match="no emulator at /nowhere"):
        EmulatedDevice()


def test_self_tests_are_no_part_of_the_product():
    assert kernel_names()
    assert not [name for name in kernel_names() if name.startswith("self_test")]


def test_devices_run_side_by_side_in_threads():
    """A device is the business of one thread at a time, but not always of the same one."""
    values = numbers(256)
    benches = [Bench(values, 256, schedule_seed=seed) for seed in range(2)]
    results = []

    def work(bench):
        for _ in range(20):
            results.append((bench.run("reverse", block=256, shared_bytes=1024)[0] == values[::-1]).all())

    for _ in range(2):
        threads = [threading.Thread(target=work, args=(bench,)) for bench in benches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [True] * 80
